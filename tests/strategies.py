"""Hypothesis strategies for what the equations take: rewards, scores, credit inputs, trajectories.

Shapes stay small, and values come from few choices as often as from a range, because ties and
zeros are where the equations could differ.
"""

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dtca_core.records import TrajectoryBatch

sizes = st.integers(1, 5)
ties = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def floats(low, high):
    """Float32 numbers of a range, or one of few that tie."""
    return st.floats(low, high, width=32) | ties.filter(lambda v: low <= v <= high)


def tensors(shape, elements):
    """Float32 tensors of one shape."""
    return hnp.arrays(np.float32, shape, elements=elements).map(torch.from_numpy)


def bools(shape):
    """Boolean tensors of one shape."""
    return hnp.arrays(np.bool_, shape).map(torch.from_numpy)


@st.composite
def rewards(draw, min_group=1):
    """Rewards [N G]."""
    shape = (draw(sizes), draw(st.integers(min_group, 6)))
    return draw(tensors(shape, floats(-2, 2)))


@st.composite
def scores(draw):
    """Timestep scores [B T], many of them equal or 0."""
    shape = (draw(sizes), draw(st.integers(1, 8)))
    return draw(tensors(shape, floats(0, 4)))


@st.composite
def weighted_sets(draw):
    """Category weights [B S L] and an optimisation set, in places empty."""
    shape = (draw(sizes), draw(sizes), draw(sizes))
    return draw(tensors(shape, floats(0.5, 1.5))), draw(bools(shape))


@st.composite
def entropy_changes(draw):
    """Entropy changes [B S L] and an optimisation set, in places empty."""
    shape = (draw(sizes), draw(sizes), draw(sizes))
    return draw(tensors(shape, floats(-2, 2))), draw(bools(shape))


@st.composite
def trajectories(draw):
    """Trajectories that do not contradict themselves, each with its own number of steps."""
    batch, length = draw(sizes), draw(st.integers(1, 8))
    num_steps = draw(hnp.arrays(np.int64, batch, elements=st.integers(1, length)))
    draws = draw(hnp.arrays(np.int64, (batch, length), elements=st.integers(0, 10_000)))
    return TrajectoryBatch(
        response_ids=torch.from_numpy(draws),
        commit_step=torch.from_numpy(draws % num_steps[:, None]),
        commit_confidence=draw(tensors((batch, length), floats(0, 1))),
        num_steps=torch.from_numpy(num_steps),
        num_response_tokens=torch.from_numpy(
            draw(hnp.arrays(np.int64, batch, elements=st.integers(1, length)))
        ),
        block_length=length,
        num_forwards=int(num_steps.max()),
    )

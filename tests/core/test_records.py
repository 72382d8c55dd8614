"""Tests of the records: schemas as they are written down, and trajectories that hold together."""

import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import DtcaError, RequestError, TrajectoryError
from dtca_core.randomness import stream
from dtca_core.records import (
    CONTRIBUTION_SCHEMA,
    ROLLOUT_SCHEMA,
    TrajectoryBatch,
    num_response_tokens,
)
from tests.strategies import trajectories


def a_batch(**changes):
    values = {
        "response_ids": torch.tensor([[5, 6, 7], [8, 9, 9]]),
        "commit_step": torch.tensor([[0, 2, 1], [0, 0, 1]]),
        "commit_confidence": torch.tensor([[0.5, 0.25, 1.0], [0.1, 0.2, 0.3]]),
        "num_steps": torch.tensor([3, 2]),
        "num_response_tokens": torch.tensor([3, 2]),
        "block_length": 3,
        "num_forwards": 3,
    }
    return TrajectoryBatch(**{**values, **changes})


# --------------------------------------------------------------------------------- schemas


def test_a_rollout_row_is_as_designed():
    # design.md, section 3.
    integers, floats = pa.list_(pa.int32()), pa.list_(pa.float32())
    assert [(field.name, field.type) for field in ROLLOUT_SCHEMA] == [
        ("rollout_id", pa.string()),
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("prompt_ids", integers),
        ("response_ids", integers),
        ("commit_step", integers),
        ("commit_confidence", floats),
        ("num_steps", pa.int32()),
        ("block_length", pa.int32()),
        ("prompt_text", pa.string()),
        ("response_text", pa.string()),
        ("reward", pa.float32()),
        ("extracted_answer", pa.string()),
        ("num_response_tokens", pa.int32()),
    ]
    assert [field.name for field in ROLLOUT_SCHEMA if field.nullable] == ["extracted_answer"]


def test_a_contribution_row_is_as_designed():
    # design.md, section 3.
    assert [(field.name, field.type) for field in CONTRIBUTION_SCHEMA] == [
        ("rollout_id", pa.string()),
        ("position", pa.int32()),
        ("step", pa.int32()),
        ("token_id", pa.int32()),
        ("confidence", pa.float32()),
        ("delta_p", pa.float32()),
        ("num_masked_after", pa.int32()),
        ("char_start", pa.int32()),
        ("char_end", pa.int32()),
    ]
    assert [field.name for field in CONTRIBUTION_SCHEMA if field.nullable] == ["delta_p"]


# ---------------------------------------------------------------------------- trajectories


@pytest.mark.parametrize(("row", "token", "step"), [(1, 2, 2), (0, 1, 3), (1, 0, -1)])
def test_a_commit_outside_the_run_is_refused_with_its_place(row, token, step):
    commit_step = a_batch().commit_step.clone()
    commit_step[row, token] = step
    with pytest.raises(TrajectoryError) as refusal:
        a_batch(commit_step=commit_step)
    assert str(refusal.value) == (
        f"response {row} commits token {token} at step {step}, outside the {[3, 2][row]} steps "
        "that were run. The sampler stopped early or the file mixes two runs; sample it again."
    )
    assert isinstance(refusal.value, DtcaError)
    assert not isinstance(refusal.value, RequestError)


def test_what_follows_the_end_token_is_not_response():
    batch = a_batch()
    assert len(batch) == 2
    assert batch.is_response.tolist() == [[True, True, True], [True, True, False]]


def test_rows_are_chosen_in_order():
    batch = a_batch()
    chosen = batch.rows(torch.tensor([1]))
    assert chosen.response_ids.tolist() == [[8, 9, 9]]
    assert (chosen.num_steps.tolist(), chosen.num_response_tokens.tolist()) == ([2], [2])
    assert (chosen.block_length, chosen.num_forwards) == (3, 3)
    assert batch.rows(torch.tensor([1, 0])).commit_step.tolist() == [[0, 0, 1], [0, 2, 1]]


@given(trajectories(), st.integers(1, 3))
def test_batches_are_put_together_again(batch, size):
    parts = [batch.rows(index) for index in torch.arange(len(batch)).split(size)]
    joined = TrajectoryBatch.concatenate(parts)
    for name in ("response_ids", "commit_step", "commit_confidence", "num_steps"):
        assert torch.equal(getattr(joined, name), getattr(batch, name))
    assert torch.equal(joined.num_response_tokens, batch.num_response_tokens)
    assert joined.block_length == batch.block_length
    assert joined.num_forwards == len(parts) * batch.num_forwards


def test_response_tokens_by_hand():
    # By hand: ends are 7 and 9. The first end counts; without one the whole response does.
    ids = torch.tensor([[1, 7, 9, 7], [9, 1, 1, 1], [1, 1, 1, 7], [1, 2, 3, 4]])
    assert num_response_tokens(ids, (7, 9)).tolist() == [2, 1, 4, 4]
    assert num_response_tokens(ids, (3,)).tolist() == [4, 4, 4, 3]


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4))
def test_response_tokens_are_what_a_loop_counts(rows):
    expected = [row.index(0) + 1 if 0 in row else 4 for row in rows]
    assert num_response_tokens(torch.tensor(rows), (0,)).tolist() == expected


# --------------------------------------------------------------------------------- streams


def test_a_stream_depends_on_its_seed_and_its_name_only():
    torch.manual_seed(1)
    first = torch.rand(3, generator=stream(0, "masks", 3))
    torch.manual_seed(2)
    assert torch.equal(torch.rand(3, generator=stream(0, "masks", 3)), first)
    others = [stream(1, "masks", 3), stream(0, "masks", 4), stream(0, "masks", "3"), stream(0)]
    drawn = {tuple(torch.rand(3, generator=other).tolist()) for other in others}
    assert len(drawn | {tuple(first.tolist())}) == 5


def test_parts_of_a_name_do_not_run_together():
    assert stream(0, 1, 23).initial_seed() != stream(0, 12, 3).initial_seed()
    assert stream(0, "a", "b").initial_seed() != stream(0, "ab").initial_seed()
    assert 0 <= stream(0).initial_seed() < 2**63

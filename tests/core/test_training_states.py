"""Tests of the states that are trained on: what is masked when, and what goes with each state."""

import pytest
import torch
from hypothesis import given

from dtca_core.records import TrajectoryBatch
from dtca_core.training.states import denoising_states
from tests.strategies import trajectories


@pytest.fixture(scope="module")
def two_responses():
    """Two responses of four tokens; the second has two tokens, then end padding."""
    return TrajectoryBatch(
        response_ids=torch.tensor([[10, 11, 12, 13], [20, 5, 5, 5]]),
        commit_step=torch.tensor([[1, 0, 1, 2], [0, 1, 0, 1]]),
        commit_confidence=torch.full((2, 4), 0.5),
        num_steps=torch.tensor([3, 2]),
        num_response_tokens=torch.tensor([4, 2]),
        block_length=4,
        num_forwards=3,
    )


def test_worked_example(golden_predictor, two_responses):
    selected = torch.tensor([[True, False, True], [False, True, False]])
    states = denoising_states(golden_predictor, [[7], [8, 9]], two_responses, selected)
    mask, pad = golden_predictor.mask_id, golden_predictor.pad_id
    # By hand: response 0 before step 0 is all masked, before step 2 only token 3 is, which was
    # committed at step 2. Response 1 before step 1 still masks tokens 1 and 3, which were
    # committed at step 1; token 3 is end padding and stays masked all the same.
    assert states.row.tolist() == [0, 0, 1]
    assert states.slot.tolist() == [0, 1, 0]
    assert states.inputs.tolist() == [
        [pad, 7, mask, mask, mask, mask],
        [pad, 7, 10, 11, 12, mask],
        [8, 9, 20, mask, 5, mask],
    ]
    assert states.attention_mask[:, 0].tolist() == [False, False, True]
    assert states.attention_mask[:, 1:].all()
    assert states.masked.int().tolist() == [[1, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    assert states.committed.int().tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1]]
    assert states.is_response.int().tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert states.target.tolist() == two_responses.response_ids[[0, 0, 1]].tolist()
    assert len(states) == 3


def test_values_go_back_to_their_response_and_slot(golden_predictor, two_responses):
    selected = torch.tensor([[True, False, True], [False, True, False]])
    states = denoising_states(golden_predictor, [[7], [8, 9]], two_responses, selected)
    values = torch.arange(12.0).view(3, 4)
    dense = states.dense(values, (2, 2))
    assert torch.equal(dense[0], values[:2])
    assert torch.equal(dense[1, 0], values[2])
    assert not dense[1, 1].any()
    assert not states.dense(states.masked, (2, 2))[1, 1].any()


@given(trajectories())
def test_a_state_hides_what_the_rollout_had_not_decided_and_nothing_else(
    golden_predictor, trajectory
):
    trajectory = TrajectoryBatch(
        **{**vars(trajectory), "response_ids": trajectory.response_ids % 50}
    )
    num_steps = int(trajectory.num_steps.max())
    selected = torch.arange(num_steps) < trajectory.num_steps[:, None]
    prompts = [[3] * (1 + b) for b in range(len(trajectory))]
    states = denoising_states(golden_predictor, prompts, trajectory, selected)
    length = trajectory.response_ids.shape[1]
    k = 0
    for b in range(len(trajectory)):
        for slot, t in enumerate(range(int(trajectory.num_steps[b]))):
            assert (int(states.row[k]), int(states.slot[k])) == (b, slot)
            for i in range(length):
                is_hidden = int(trajectory.commit_step[b, i]) >= t
                token = int(trajectory.response_ids[b, i])
                expected = golden_predictor.mask_id if is_hidden else token
                assert int(states.inputs[k, i - length]) == expected
                assert bool(states.masked[k, i]) == is_hidden
            k += 1
    assert k == len(states)
    # Each token is committed in exactly one state.
    total = torch.zeros(trajectory.commit_step.shape, dtype=torch.long)
    total.index_add_(0, states.row, states.committed.long())
    assert (total == 1).all()

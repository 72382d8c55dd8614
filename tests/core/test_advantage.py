"""Tests of the response advantage: values worked by hand, then what must always hold."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.advantage import (
    ADVANTAGES,
    group_advantage,
    leave_one_out_advantage,
    mean_only_advantage,
)
from dtca_core.config import TrainConfig
from tests.reference import specification
from tests.strategies import rewards

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
FLOOR = 0.01
variants = st.sampled_from(sorted(ADVANTAGES))


def test_worked_example():
    # By hand: mean 0.5; squared deviations 4 x 0.25 over n - 1 = 3 give std 0.57735.
    # 0.5 / 0.57735 = 0.86603.
    reward = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    expected = torch.tensor([[0.8660254, -0.8660254, -0.8660254, 0.8660254]])
    torch.testing.assert_close(group_advantage(reward), expected)
    assert mean_only_advantage(reward).tolist() == [[0.5, -0.5, -0.5, 0.5]]
    # By hand: the others of the first have mean 1/3, those of the second 2/3.
    torch.testing.assert_close(
        leave_one_out_advantage(reward), torch.tensor([[2 / 3, -2 / 3, -2 / 3, 2 / 3]])
    )


def test_a_small_deviation_is_divided_by_the_floor():
    # By hand: std of (0, 0.002) is 0.0014142, below the floor; 0.001 / 0.01 = 0.1.
    reward = torch.tensor([[0.0, 0.002]])
    torch.testing.assert_close(group_advantage(reward), torch.tensor([[-0.1, 0.1]]))
    # By hand: at floor 0.001 the deviation counts; 0.001 / 0.0014142 = 0.70711.
    torch.testing.assert_close(
        group_advantage(reward, 0.001), torch.tensor([[-0.70710678, 0.70710678]])
    )


@pytest.mark.parametrize("variant", sorted(ADVANTAGES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_group_of_one_and_equal_rewards_give_exactly_zero(variant, dtype):
    advantage = ADVANTAGES[variant]
    assert advantage(torch.tensor([[1.0], [0.0]], dtype=dtype), FLOOR).tolist() == [[0.0], [0.0]]
    equal = torch.full((1, 7), 0.1, dtype=dtype)
    assert advantage(equal, FLOOR).tolist() == [[0.0] * 7]
    assert advantage(torch.zeros(0, 4, dtype=dtype), FLOOR).shape == (0, 4)


def test_every_configured_advantage_exists():
    assert set(ADVANTAGES) == set(get_args(TrainConfig.model_fields["advantage"].annotation))


@given(rewards(), variants)
def test_a_group_adds_up_to_zero_and_flips_with_the_sign(reward, variant):
    advantage = ADVANTAGES[variant](reward, FLOOR)
    assert advantage.isfinite().all()
    assert advantage.sum(-1).abs().max() < TOLERANCE[torch.float32] * (1 + advantage.abs().max())
    torch.testing.assert_close(ADVANTAGES[variant](-reward, FLOOR), -advantage)


@given(rewards(), variants, st.randoms())
def test_permuting_responses_permutes_advantages(reward, variant, random):
    order = random.sample(range(reward.shape[1]), reward.shape[1])
    torch.testing.assert_close(
        ADVANTAGES[variant](reward[:, order], FLOOR), ADVANTAGES[variant](reward, FLOOR)[:, order]
    )


@given(rewards(min_group=2), st.floats(0.5, 8, width=32))
def test_scaling_reward_scales_all_but_the_normalised_advantage(reward, scale):
    scaled = reward * scale
    for advantage in (mean_only_advantage, leave_one_out_advantage):
        torch.testing.assert_close(
            advantage(scaled), advantage(reward) * scale, rtol=1e-4, atol=1e-5
        )
    spread = reward.std(-1) > 2 * FLOOR
    torch.testing.assert_close(
        group_advantage(scaled)[spread], group_advantage(reward)[spread], rtol=1e-4, atol=1e-4
    )


@given(rewards(min_group=2))
def test_leaving_one_out_compares_with_the_mean_of_the_others(reward):
    others = (reward.sum(-1, keepdim=True) - reward) / (reward.shape[1] - 1)
    torch.testing.assert_close(
        leave_one_out_advantage(reward), reward - others, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("variant", sorted(ADVANTAGES))
def test_an_advantage_carries_no_gradient(variant):
    reward = torch.rand(2, 3, requires_grad=True)
    assert not ADVANTAGES[variant](reward, FLOOR).requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (4, 8), (2, 33)])
def test_agrees_with_the_specification(shape, dtype):
    generator = torch.Generator().manual_seed(shape[1])
    for floor in (0.01, 0.4):
        for binary in (False, True):
            reward = torch.rand(shape, generator=generator, dtype=dtype)
            reward = reward.round() if binary else reward
            expected = [specification().group_advantage(r, floor) for r in reward.tolist()]
            torch.testing.assert_close(
                group_advantage(reward, floor),
                torch.tensor(expected, dtype=dtype),
                rtol=TOLERANCE[dtype],
                atol=TOLERANCE[dtype],
            )

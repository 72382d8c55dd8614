"""Tests of credit: each equation by hand, then what must always hold, then the specification."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.credit import (
    limit_timesteps,
    optimised_positions,
    select_timesteps,
    timestep_score,
    token_credit,
    token_signal,
)
from dtca_core.errors import TrajectoryError
from tests.reference import specification
from tests.strategies import bools, floats, scores, sizes, tensors, trajectories, weighted_sets

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
SHAPES = [(1, 1, 1), (2, 3, 7), (3, 1, 16), (2, 8, 33)]
DTYPES = [torch.float32, torch.float64]
fractions = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 0.8, 1.0])


def random_weights(shape, dtype, seed):
    """Weights in [0.8, 1.2], as the weight artifact holds them."""
    generator = torch.Generator().manual_seed(seed)
    return 0.8 + 0.4 * torch.rand(shape, generator=generator, dtype=dtype), generator


# ------------------------------------------------------------------------- timestep score


def test_score_worked_example():
    # By hand: step 0 commits tokens 0 and 2: 0.8 (1 - 0.5) + 1.0 (1 - 0.75) = 0.4 + 0.25 = 0.65.
    # Step 1 commits token 1: 1.2 (1 - 0.25) = 0.9. Step 2 commits token 3, end padding: 0.
    score = timestep_score(
        torch.tensor([[0.8, 1.2, 1.0, 0.0]]),
        torch.tensor([[0.5, 0.25, 0.75, 0.1]]),
        torch.tensor([[0, 1, 0, 2]]),
        num_steps=3,
    )
    expected = torch.tensor([[0.65, 0.9, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(score, expected, rtol=1e-6, atol=1e-7)


@given(trajectories(), st.integers(0, 3))
def test_score_ignores_padding_and_steps_that_were_not_run(trajectory, extra):
    confidence, steps = trajectory.commit_confidence, trajectory.commit_step
    num_steps = int(trajectory.num_steps.max())
    score = timestep_score(torch.ones_like(confidence), confidence, steps, num_steps)
    assert (score >= 0).all()
    pad = (0, extra)
    padded = timestep_score(
        torch.nn.functional.pad(torch.ones_like(confidence), pad, value=0.0),
        torch.nn.functional.pad(confidence, pad, value=0.3),
        torch.nn.functional.pad(steps, pad, value=0),
        num_steps + extra,
    )
    assert torch.equal(padded[:, :num_steps], score)
    assert not padded[:, num_steps:].any()


@given(trajectories(), st.randoms())
def test_score_permutes_with_responses_and_scales_with_weights(trajectory, random):
    confidence, steps = trajectory.commit_confidence, trajectory.commit_step
    num_steps = int(trajectory.num_steps.max())
    score = timestep_score(torch.ones_like(confidence), confidence, steps, num_steps)
    order = random.sample(range(len(steps)), len(steps))
    permuted = timestep_score(
        torch.ones_like(confidence), confidence[order], steps[order], num_steps
    )
    assert torch.equal(permuted, score[order])
    doubled = timestep_score(torch.full_like(confidence, 2.0), confidence, steps, num_steps)
    assert torch.equal(doubled, 2 * score)
    total = (1 - confidence.double()).sum(-1)
    torch.testing.assert_close(score.sum(-1), total)


@pytest.mark.parametrize("step", [-1, 3])
def test_a_commit_outside_the_run_is_refused_with_its_place(step):
    commit_step = torch.tensor([[0, 1, 2], [0, 0, step]])
    with pytest.raises(TrajectoryError, match=f"response 1 commits token 2 at step {step}"):
        timestep_score(torch.ones(2, 3), torch.ones(2, 3), commit_step, num_steps=3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("length", "num_steps"), [(1, 1), (16, 4), (64, 64), (96, 10)])
def test_score_agrees_with_the_specification(length, num_steps, dtype):
    weight, generator = random_weights((3, length), dtype, seed=length)
    confidence = torch.rand(3, length, generator=generator, dtype=dtype)
    commit_step = torch.randint(num_steps, (3, length), generator=generator, dtype=torch.int32)
    score = timestep_score(weight, confidence, commit_step, num_steps)
    for b in range(3):
        for t in range(num_steps):
            at_t = commit_step[b] == t
            expected = specification().timestep_score(
                weight[b, at_t].tolist(), confidence[b, at_t].tolist()
            )
            assert score[b, t].item() == expected  # to the bit: selection compares sums


# ---------------------------------------------------------------------- timestep selection


def test_selection_worked_example():
    # By hand: total 10, so 0.8 asks for 8: 5 (step 1), then 2 (step 0, before its tie step 3) is
    # 7, then 2 (step 3) is 9 >= 8. Step 2 is left out.
    score = torch.tensor([[2.0, 5.0, 1.0, 2.0]])
    assert select_timesteps(score, 0.8).tolist() == [[True, True, False, True]]
    # By hand: 0.7 asks for 7, which is reached without step 3.
    assert select_timesteps(score, 0.7).tolist() == [[True, True, False, False]]


def test_a_total_of_zero_selects_the_first_step():
    score = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert select_timesteps(score, 1.0).tolist() == [[True, False, False], [False, False, True]]
    # Confidences that rounding put above 1 make a total below 0.
    assert select_timesteps(torch.tensor([[-1e-8, 0.0]]), 0.5).tolist() == [[True, False]]
    assert select_timesteps(torch.zeros(0, 3), 0.5).shape == (0, 3)


def test_rounding_does_not_add_a_step():
    # By hand: ten times 0.1 adds up to a little less than 1 in float64, so fraction 1 would ask
    # for one more step than there is; and 0.8 of ten equal steps is eight of them.
    tenth = torch.full((1, 10), 0.1, dtype=torch.float64)
    score = torch.cat([tenth, torch.zeros(1, 2, dtype=torch.float64)], dim=1)
    assert select_timesteps(score, 1.0).sum() == 10
    assert select_timesteps(score, 0.8).nonzero()[:, 1].tolist() == list(range(8))


@given(scores(), fractions)
def test_selection_reaches_the_fraction_and_is_smallest(score, fraction):
    score = score.double()
    selected = select_timesteps(score, fraction)
    assert selected.any(-1).all()
    for row, chosen in zip(score, selected, strict=True):
        total = row.sum().item()
        kept = row[chosen]
        assert kept.sum().item() >= fraction * total - 1e-9
        if total > 0 and len(kept) > 1:
            assert (kept.sum() - kept.min()).item() < fraction * total
        if total > 0 and not chosen.all():
            assert kept.min() >= row[~chosen].max()


@given(scores(), fractions, st.integers(0, 3))
def test_selection_ignores_padding_and_scale(score, fraction, extra):
    selected = select_timesteps(score, fraction)
    padded = select_timesteps(torch.nn.functional.pad(score, (0, extra)), fraction)
    assert torch.equal(padded[:, : score.shape[1]], selected)
    assert not padded[:, score.shape[1] :].any()
    assert torch.equal(select_timesteps(score.double() * 4, fraction), selected)


@given(scores(), fractions)
def test_selection_agrees_with_the_specification(score, fraction):
    for row, selected in zip(score, select_timesteps(score, fraction), strict=True):
        expected = specification().select_timesteps(row.tolist(), fraction)
        assert selected.nonzero().flatten().tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_steps", [1, 7, 64, 256])
def test_selection_agrees_with_the_specification_on_long_runs(num_steps, dtype):
    generator = torch.Generator().manual_seed(num_steps)
    score = torch.rand(6, num_steps, generator=generator, dtype=dtype)
    score[3:] = (score[3:] * 4).round() / 10  # ties, in numbers that binary cannot hold
    for fraction in (0.0, 0.3, 0.8, 1.0):
        for row, selected in zip(score, select_timesteps(score, fraction), strict=True):
            expected = specification().select_timesteps(row.tolist(), fraction)
            assert selected.nonzero().flatten().tolist() == expected


def test_limit_worked_example():
    # By hand: of the selected 2, 5, 2 the highest is step 1; the tie for second goes to step 0.
    score = torch.tensor([[2.0, 5.0, 9.0, 2.0]])
    selected = torch.tensor([[True, True, False, True]])
    assert limit_timesteps(score, selected, 1).tolist() == [[False, True, False, False]]
    assert limit_timesteps(score, selected, 2).tolist() == [[True, True, False, False]]
    assert limit_timesteps(score, selected, 9).tolist() == selected.tolist()
    assert limit_timesteps(score, selected, None).tolist() == selected.tolist()


@given(scores(), fractions, st.integers(1, 9))
def test_limit_keeps_the_highest_of_the_selected(score, fraction, max_steps):
    selected = select_timesteps(score, fraction)
    kept = limit_timesteps(score, selected, max_steps)
    assert torch.equal(kept.sum(-1), selected.sum(-1).clamp(max=max_steps))
    assert not (kept & ~selected).any()
    for row, chosen, dropped in zip(score, kept, selected & ~kept, strict=True):
        if dropped.any():
            assert row[chosen].min() >= row[dropped].max()


# -------------------------------------------------------------------------- optimised set


def test_optimised_worked_example():
    # By hand, at threshold 0.6: token 0 is committed, however unlikely; token 1 is masked at
    # exactly 0.6; token 2 is masked below it; token 3 is likely, but known already; tokens 4 and
    # 5 are end padding, committed and masked.
    committed = torch.tensor([[[True, False, False, False, True, False]]])
    masked = torch.tensor([[[False, True, True, False, False, True]]])
    probability = torch.tensor([[[0.1, 0.6, 0.59, 0.9, 0.9, 0.9]]])
    is_response = torch.tensor([[[True, True, True, True, False, False]]])
    wide = optimised_positions(committed, masked, probability, 0.6, is_response)
    assert wide.tolist() == [[[True, True, False, False, False, False]]]
    narrow = optimised_positions(committed, masked, probability, None, is_response)
    assert narrow.tolist() == [[[True, False, False, False, False, False]]]


@st.composite
def sets_of_positions(draw):
    """Committed, masked, probability and response, committed apart from masked."""
    shape = (draw(sizes), draw(sizes), draw(sizes))
    committed, masked = draw(bools(shape)), draw(bools(shape))
    probability = draw(tensors(shape, floats(0, 1)))
    return committed, masked & ~committed, probability, draw(bools((shape[0], 1, shape[2])))


@given(sets_of_positions(), st.floats(0, 1))
def test_optimised_set_grows_as_the_threshold_falls(sets, threshold):
    committed, masked, probability, is_response = sets
    wide = optimised_positions(committed, masked, probability, threshold, is_response)
    narrow = optimised_positions(committed, masked, probability, None, is_response)
    assert torch.equal(narrow, committed & is_response)
    assert not (narrow & ~wide).any()
    assert not (wide & ~(committed | masked)).any()
    assert not (wide & ~is_response).any()
    everything = optimised_positions(committed, masked, probability, 0.0, is_response)
    assert torch.equal(everything, (committed | masked) & is_response)
    before = optimised_positions(committed, masked | committed, probability, threshold, is_response)
    assert torch.equal(before, wide)


def test_an_undefined_probability_is_below_every_threshold():
    position = torch.ones(1, 1, 1, dtype=torch.bool)
    undefined = torch.full((1, 1, 1), torch.nan)
    assert not optimised_positions(~position, position, undefined, 0.0, position).any()


# --------------------------------------------------------------------------------- credit


def test_credit_worked_example():
    # By hand: the mean over B_t of (0.8, 1.2, 1.0) is 1; of (0.8, 1.2, 1.2, 1.2) it is 1.1, and
    # 0.8 / 1.1 = 0.72727, 1.2 / 1.1 = 1.09091. At the last step B_t is empty.
    weight = torch.tensor([0.8, 1.2, 1.2, 1.2]).expand(1, 3, 4).clone()
    weight[0, 0] = torch.tensor([0.8, 1.2, 99.0, 1.0])
    optimised = torch.ones(1, 3, 4, dtype=torch.bool)
    optimised[0, 0, 2] = False
    optimised[0, 2] = False
    expected = [[[0.8, 1.2, 0.0, 1.0], [8 / 11, 12 / 11, 12 / 11, 12 / 11], [0.0] * 4]]
    torch.testing.assert_close(token_credit(weight, optimised), torch.tensor(expected))


@given(weighted_sets())
def test_credit_has_mean_one_in_the_set_and_is_zero_outside(weighted):
    weight, optimised = weighted
    credit = token_credit(weight, optimised)
    assert not credit[~optimised].any()
    size = optimised.sum(-1)
    mean = credit.sum(-1)[size > 0] / size[size > 0]
    torch.testing.assert_close(mean, torch.ones_like(mean))


@given(weighted_sets(), st.floats(0.5, 4, width=32))
def test_credit_ignores_scale_padding_and_what_lies_outside(weighted, scale):
    weight, optimised = weighted
    credit = token_credit(weight, optimised)
    torch.testing.assert_close(token_credit(weight * scale, optimised), credit)
    for unused in (7.0, torch.nan, torch.inf):
        other = weight.where(optimised, unused)
        assert torch.equal(token_credit(other, optimised), credit)
    padded = token_credit(
        torch.nn.functional.pad(weight, (0, 2), value=1.0),
        torch.nn.functional.pad(optimised, (0, 2), value=False),
    )
    torch.testing.assert_close(padded[..., :-2], credit)


@given(weighted_sets())
def test_equal_weights_are_the_base_method(weighted):
    _, optimised = weighted
    credit = token_credit(torch.full(optimised.shape, 0.9), optimised)
    torch.testing.assert_close(credit, optimised.float())


@given(weighted_sets(), st.randoms())
def test_permuting_responses_permutes_credit(weighted, random):
    weight, optimised = weighted
    order = random.sample(range(len(weight)), len(weight))
    permuted = token_credit(weight[order], optimised[order])
    torch.testing.assert_close(permuted, token_credit(weight, optimised)[order])


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2, 3), (2, 3, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_credit_of_nothing_is_nothing(shape, dtype):
    weight = torch.ones(shape, dtype=dtype)
    credit = token_credit(weight, torch.ones(shape, dtype=torch.bool))
    assert credit.shape == shape
    assert credit.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_credit_and_signal_agree_with_the_specification(shape, dtype):
    weight, generator = random_weights(shape, dtype, seed=shape[-1])
    optimised = torch.rand(shape, generator=generator) < 0.6
    advantage = torch.randn(shape[:2], generator=generator, dtype=dtype)
    credit = token_credit(weight, optimised)
    signal = token_signal(credit, advantage)
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for b, s in optimised.any(-1).nonzero().tolist():
        chosen = optimised[b, s]
        expected = specification().credit(weight[b, s, chosen].tolist())
        torch.testing.assert_close(
            credit[b, s, chosen], torch.tensor(expected, dtype=dtype), **near
        )
        expected = specification().token_signal(expected, advantage[b, s].item())
        torch.testing.assert_close(
            signal[b, s, chosen], torch.tensor(expected, dtype=dtype), **near
        )


# --------------------------------------------------------------------------------- signal


def test_signal_worked_example():
    # By hand: credits (0.5, 1.5) at advantage -2 give (-1, -3), at advantage 0 nothing.
    credit = torch.tensor([[[0.5, 1.5], [0.5, 1.5]]])
    signal = token_signal(credit, torch.tensor([[-2.0, 0.0]]))
    assert signal.tolist() == [[[-1.0, -3.0], [0.0, 0.0]]]


@given(weighted_sets(), floats(-4, 4))
def test_signal_has_mean_advantage_and_flips_with_its_sign(weighted, value):
    weight, optimised = weighted
    advantage = torch.full(weight.shape[:2], value)
    signal = token_signal(token_credit(weight, optimised), advantage)
    mean = signal.sum(-1) / optimised.sum(-1)
    filled = optimised.any(-1)
    torch.testing.assert_close(mean[filled], advantage[filled], rtol=1e-5, atol=1e-6)
    flipped = token_signal(token_credit(weight, optimised), -advantage)
    assert torch.equal(flipped, -signal)


def test_nothing_of_credit_carries_gradient():
    weight = torch.rand(2, 3, requires_grad=True)
    score = timestep_score(weight, weight, torch.zeros(2, 3, dtype=torch.long), num_steps=2)
    credit = token_credit(weight[:, None], torch.ones(2, 1, 3, dtype=torch.bool))
    signal = token_signal(weight[:, None], weight[:, :1])
    assert not any(t.requires_grad for t in (score, credit, signal))

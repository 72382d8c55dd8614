"""Tests of contribution: F by hand, then delta-P against a loop over tokens and states."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dtca_core.config import ContributionConfig, SamplerConfig
from dtca_core.contribution import aggregate_confidence, contributions, num_masked_after
from dtca_core.records import TrajectoryBatch, num_response_tokens
from dtca_core.sampling import sample
from tests.reference import specification
from tests.strategies import bools, sizes, trajectories

SAME = {"rtol": 1e-4, "atol": 1e-5}
"""A difference of sums of probabilities, from batches of another size, float32 logits."""

PROMPTS = [[0, 5, 9], [17, 3, 3, 3, 60, 61, 62], [8], [100, 101]]


def recorded(response_ids, commit_step, *, block_length=None, end=(197,), confidence=0.5):
    """A trajectory with this record, whoever it came from."""
    ids, steps = torch.tensor(response_ids), torch.tensor(commit_step)
    return TrajectoryBatch(
        response_ids=ids,
        commit_step=steps,
        commit_confidence=torch.full(ids.shape, confidence),
        num_steps=steps.amax(1) + 1,
        num_response_tokens=num_response_tokens(ids, end),
        block_length=block_length or ids.shape[1],
        num_forwards=0,
    )


# ------------------------------------------------------------------------------------------ F


def test_aggregate_confidence_by_hand():
    # By hand: the peaks are 0.5, 0.75 and 1; the first and the last are masked: 1.5. In the
    # second response nothing is masked.
    probs = torch.tensor([[[0.5, 0.25, 0.25], [0.75, 0.25, 0.0], [0.0, 0.0, 1.0]]]).repeat(2, 1, 1)
    masked = torch.tensor([[True, False, True], [False, False, False]])
    assert aggregate_confidence(probs, masked).tolist() == [1.5, 0.0]


@given(sizes, sizes, st.integers(2, 6), st.data())
def test_aggregate_confidence_agrees_with_the_specification(batch, length, vocabulary, data):
    seed = data.draw(st.integers(0, 99))
    logits = torch.randn(batch, length, vocabulary, generator=torch.Generator().manual_seed(seed))
    probs, masked = logits.double().softmax(-1), data.draw(bools((batch, length)))
    total = aggregate_confidence(probs, masked)
    for b in range(batch):
        where = masked[b].nonzero().flatten().tolist()
        expected = specification().aggregate_confidence(probs[b].numpy(), where)
        assert total[b].item() == pytest.approx(expected, abs=1e-12)
        assert len(where) / vocabulary - 1e-12 <= total[b].item() <= len(where) + 1e-12


def test_aggregate_confidence_has_a_gradient_at_masked_positions_only():
    probs = torch.tensor([[[0.6, 0.4], [0.3, 0.7]]], requires_grad=True)
    aggregate_confidence(probs, torch.tensor([[True, False]])).sum().backward()
    assert probs.grad.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]


# ---------------------------------------------------------------------------------------- |M_t|


def test_masked_after_by_hand():
    # By hand: step 0 commits tokens 1 and 2 and leaves 3; step 1 leaves 1; step 2 leaves none.
    trajectory = recorded([[1, 2, 3, 4, 5]], [[1, 0, 0, 2, 1]])
    assert num_masked_after(trajectory).tolist() == [[1, 3, 3, 0, 1]]


@given(trajectories())
def test_masked_after_is_what_a_loop_counts(trajectory):
    counted = num_masked_after(trajectory)
    for b, steps in enumerate(trajectory.commit_step.tolist()):
        assert counted[b].tolist() == [sum(later > step for later in steps) for step in steps]


# -------------------------------------------------------------------------------------- delta-P


def confidence_in(probs, masked):
    """F in plain Python."""
    return sum(float(max(probs[j])) for j in masked)


def rise(after, before):
    """delta-P in plain Python."""
    return max(0.0, after - before)


def one_token_at_a_time(
    predictor, prompts, trajectories, scope="response", aggregate=confidence_in, delta=rise
):
    """delta-P with two forwards of their own for each token, as the equation says it."""
    result = np.full(trajectories.commit_step.shape, np.nan)
    for b, prompt in enumerate(prompts):
        final, steps = trajectories.response_ids[b], trajectories.commit_step[b]

        def probabilities(shown, prompt=prompt, final=final):
            state = final.where(shown, predictor.mask_id).tolist()
            logits = predictor.logits(torch.tensor([[*prompt, *state]]))[0, len(prompt) :]
            return logits.detach().double().softmax(-1).numpy()

        for i in range(int(trajectories.num_response_tokens[b])):
            block = range(len(final))
            if scope == "block":
                start = i - i % trajectories.block_length
                block = range(start, start + trajectories.block_length)
            masked_after = [j for j in block if steps[j] > steps[i]]
            if masked_after:
                shown = steps < steps[i]
                with_token = shown.clone()
                with_token[i] = True
                result[b, i] = delta(
                    aggregate(probabilities(with_token), masked_after),
                    aggregate(probabilities(shown), masked_after),
                )
    return torch.from_numpy(result).float()


def assert_agrees(measured, expected):
    torch.testing.assert_close(measured, expected, **SAME, equal_nan=True)


SAMPLERS = {
    "one token a step": {},
    "two tokens a step": {"steps": 4},
    "several in places": {"steps": 6, "block_length": 8},
    "threshold": {"threshold": 0.3, "temperature": 1.0},
    "cached": {"cache": "dual", "steps": 4},
    "stopped": {"stop_at_eos": True, "steps": 4},
}


def sampled(predictor, name):
    options = {"gen_length": 8, "block_length": 4, "steps": 8, **SAMPLERS[name]}
    return sample(predictor, PROMPTS, SamplerConfig(**options), seed=0)


@pytest.mark.parametrize("scope", ["response", "block"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_contributions_are_those_of_the_loop(golden_predictor, name, scope):
    trajectories = sampled(golden_predictor, name)
    measured = contributions(
        golden_predictor, PROMPTS, trajectories, ContributionConfig(scope=scope)
    )
    expected = one_token_at_a_time(golden_predictor, PROMPTS, trajectories, scope)
    assert_agrees(measured, expected)
    assert measured.dtype == torch.float32
    assert not measured.requires_grad
    assert measured[~measured.isnan()].max() > 0


def test_contributions_agree_with_the_specification(golden_predictor):
    trajectories = sampled(golden_predictor, "several in places")
    measured = contributions(golden_predictor, PROMPTS, trajectories, ContributionConfig())
    aggregate, delta = specification().aggregate_confidence, specification().delta_p
    expected = one_token_at_a_time(
        golden_predictor, PROMPTS, trajectories, aggregate=aggregate, delta=delta
    )
    assert_agrees(measured, expected)


@st.composite
def records(draw):
    """What `recorded` takes, with padding, several commits a step and steps of one token."""
    batch, length = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    block_length = draw(st.sampled_from([n for n in range(1, length + 1) if length % n == 0]))
    token = st.integers(0, 199) | st.just(197)
    ids = [draw(st.lists(token, min_size=length, max_size=length)) for _ in range(batch)]
    steps = []
    for _ in range(batch):
        drawn = draw(st.lists(st.integers(0, 4), min_size=length, max_size=length))
        order = sorted(set(drawn))
        steps.append([order.index(step) for step in drawn])
    prompt = st.lists(st.integers(0, 199), min_size=1, max_size=4)
    prompts = [draw(prompt) for _ in range(batch)]
    return prompts, ids, steps, block_length


@given(records(), st.sampled_from(["response", "block"]), st.integers(1, 5))
@settings(max_examples=30)
def test_any_record_is_measured_as_the_loop_does(golden_predictor, record, scope, batch_size):
    prompts, ids, steps, block_length = record
    trajectories = recorded(ids, steps, block_length=block_length)
    config = ContributionConfig(scope=scope, batch_size=batch_size)
    measured = contributions(golden_predictor, prompts, trajectories, config)
    assert_agrees(measured, one_token_at_a_time(golden_predictor, prompts, trajectories, scope))
    assert (measured[~measured.isnan()] >= 0).all()


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_batch_size_changes_nothing(golden_predictor, batch_size):
    trajectories = sampled(golden_predictor, "several in places")
    config = ContributionConfig(batch_size=batch_size)
    measured = contributions(golden_predictor, PROMPTS, trajectories, config)
    usual = contributions(golden_predictor, PROMPTS, trajectories, ContributionConfig())
    assert_agrees(measured, usual)


def test_end_padding_and_the_last_step_are_undefined(golden_predictor):
    # By hand: the text ends at token 2; tokens 3 and 4 are padding, though committed before the
    # end of the run. The last step commits token 1, and then nothing is masked.
    trajectory = recorded([[5, 6, 197, 197, 7]], [[0, 3, 1, 2, 2]])
    measured = contributions(golden_predictor, [[1, 2]], trajectory, ContributionConfig())
    assert measured.isnan().tolist() == [[False, True, False, True, True]]


def test_padding_that_is_still_masked_counts_in_the_response(golden_predictor):
    # M_t is over the whole response: token 0 is measured by the padding behind it alone.
    trajectory = recorded([[197, 197, 197]], [[0, 1, 1]])
    measured = contributions(golden_predictor, [[1, 2]], trajectory, ContributionConfig())
    assert measured.isnan().tolist() == [[False, True, True]]
    # Within its block of one token there is nothing to measure it by.
    narrow = recorded([[197, 197, 197]], [[0, 1, 1]], block_length=1)
    config = ContributionConfig(scope="block")
    assert contributions(golden_predictor, [[1, 2]], narrow, config).isnan().all()


def test_a_response_of_one_step_has_no_contributions_and_needs_no_forward(golden_predictor):
    told = []
    trajectory = recorded([[1, 2, 3]], [[0, 0, 0]])
    measured = contributions(
        golden_predictor, [[1]], trajectory, ContributionConfig(), progress=told.append
    )
    assert measured.isnan().all()
    assert told == []


def test_a_step_of_one_token_needs_no_forward_of_its_own(golden_predictor):
    def states(commit_step):
        told = []
        trajectory = recorded([[1, 2, 3, 4]], [commit_step])
        config = ContributionConfig(batch_size=2)
        contributions(golden_predictor, [[9]], trajectory, config, progress=told.append)
        assert max(told) <= 2
        return sum(told)

    # By hand: x_0, x_1, x_2 and x_3, where the last token has nothing left to raise.
    assert states([0, 1, 2, 3]) == 4
    # By hand: x_0 and each of two tokens alone; the second step is the last.
    assert states([0, 0, 1, 1]) == 3
    # By hand: x_0, two tokens alone, x_1, and x_2 after the single token of step 1.
    assert states([0, 0, 1, 2]) == 5


def test_permuting_responses_permutes_contributions(golden_predictor):
    trajectories = sampled(golden_predictor, "two tokens a step")
    order = [2, 0, 3, 1]
    measured = contributions(golden_predictor, PROMPTS, trajectories, ContributionConfig())
    permuted = contributions(
        golden_predictor,
        [PROMPTS[b] for b in order],
        trajectories.rows(torch.tensor(order)),
        ContributionConfig(),
    )
    assert_agrees(permuted, measured[order])

"""Tests of the signals against a loop over responses, steps and tokens in the plainest form."""

import math

import pytest
import torch

from dtca_core.config import CreditConfig, EntropyConfig
from dtca_core.records import TrajectoryBatch
from dtca_core.training.policy import measure
from dtca_core.training.signals import (
    broadcast_advantage,
    selected_timesteps,
    slots,
    token_signals,
)
from dtca_core.training.states import denoising_states
from tests.reference import specification

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
"""Float32 and many tokens on one side, float64 and loops on the other."""
LENGTH = 8


@pytest.fixture(scope="module")
def batch(golden_predictor):
    """Four random responses with their prompts, weights and advantages; one is mostly padding."""
    generator = torch.Generator().manual_seed(3)
    steps = torch.stack([torch.randperm(LENGTH, generator=generator) // 2 for _ in range(4)])
    trajectories = TrajectoryBatch(
        response_ids=torch.randint(0, 90, (4, LENGTH), generator=generator),
        commit_step=steps,
        commit_confidence=torch.rand(4, LENGTH, generator=generator),
        num_steps=torch.tensor([4, 4, 4, 4]),
        num_response_tokens=torch.tensor([8, 5, 1, 8]),
        block_length=LENGTH,
        num_forwards=4,
    )
    prompts = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]
    weight = 0.8 + 0.4 * torch.rand(4, LENGTH, generator=generator)
    weight = weight.masked_fill(~trajectories.is_response, 0.0)
    advantage = torch.tensor([1.5, -0.5, 0.75, -1.0])
    assert golden_predictor.mask_id not in trajectories.response_ids
    return trajectories, prompts, weight, advantage


def computed(predictor, batch, credit, entropy):
    """Selection, states and signals as the product computes them."""
    trajectories, prompts, weight, advantage = batch
    selected = selected_timesteps(trajectories, weight, credit)
    states = denoising_states(predictor, prompts, trajectories, selected)
    measured = measure(predictor, predictor.mask_id, states, 3)
    signals = token_signals(
        states, measured, weight, broadcast_advantage(advantage, slots(selected)), credit, entropy
    )
    return selected, states, signals


def probabilities(predictor, prompt, response, hidden):
    """The policy at each position of one unpadded state, without the mask token, in float64."""
    tokens = [
        predictor.mask_id if is_hidden else token
        for token, is_hidden in zip(response, hidden, strict=True)
    ]
    logits = predictor.logits(torch.tensor([prompt + tokens]))[0, len(prompt) :].detach().double()
    logits[:, predictor.mask_id] = -math.inf
    return logits.softmax(-1).numpy()


def looped(predictor, batch, credit, entropy):
    """What the product has to find: {(response, step): {position: signal}} and lambda_b."""
    ref = specification()
    trajectories, prompts, weight, advantage = batch
    signals, changes = {}, {}
    for b, prompt in enumerate(prompts):
        response = trajectories.response_ids[b].tolist()
        commit_step = trajectories.commit_step[b].tolist()
        tokens = range(int(trajectories.num_response_tokens[b]))
        score = []
        for t in range(int(trajectories.num_steps[b])):
            at = [i for i in tokens if commit_step[i] == t]
            score.append(
                ref.timestep_score(
                    [float(weight[b, i]) for i in at],
                    [float(trajectories.commit_confidence[b, i]) for i in at],
                )
            )
        for t in ref.select_timesteps(score, credit.fraction):
            p = probabilities(predictor, prompt, response, [step >= t for step in commit_step])
            threshold = credit.low_prob_threshold
            chosen = [
                i
                for i in tokens
                if commit_step[i] == t
                or (threshold is not None and commit_step[i] > t and p[i][response[i]] >= threshold)
            ]
            signals[b, t], changes[b, t] = {}, {}
            if not chosen:
                continue
            shares = ref.credit([float(weight[b, i]) for i in chosen])
            for i, signal in zip(
                chosen, ref.token_signal(shares, float(advantage[b])), strict=True
            ):
                token = response[i]
                if entropy.estimate == "exact":
                    change = ref.entropy_change_exact(signal, p[i], token)
                else:
                    change = ref.entropy_change(signal, p[i][token], ref.entropy(p[i]))
                signals[b, t][i], changes[b, t][i] = signal, change
    return balanced(ref, signals, changes, len(prompts), entropy)


def balanced(ref, signals, changes, num_responses, entropy):
    """The signals after calibration, and lambda of each response."""
    groups = [[key for key in signals if key[0] == b] for b in range(num_responses)]
    if entropy.scope == "batch":
        groups = [list(signals)] * num_responses
    balance = []
    for b, group in enumerate(groups):
        places = [(key, i) for key in group for i in signals[key]]
        lam, factors = ref.entropy_balance([changes[key][i] for key, i in places], entropy.limit)
        balance.append(lam)
        if entropy.calibration:
            for (key, i), factor in zip(places, factors, strict=True):
                if key[0] == b:
                    signals[key][i] *= factor
    return signals, balance


@pytest.mark.parametrize("estimate", ["paper", "exact"])
@pytest.mark.parametrize("scope", ["response", "batch"])
@pytest.mark.parametrize(
    ("fraction", "threshold", "limit", "calibration"),
    [(0.8, 0.6, 0.2, True), (0.5, 0.01, 1.0, True), (1.0, None, 0.2, False), (0.7, 0.0, 0.5, True)],
)
def test_signals_agree_with_the_specification(
    golden_predictor, batch, estimate, scope, fraction, threshold, limit, calibration
):
    credit = CreditConfig(fraction=fraction, low_prob_threshold=threshold)
    entropy = EntropyConfig(estimate=estimate, scope=scope, limit=limit, calibration=calibration)
    expected, balance = looped(golden_predictor, batch, credit, entropy)
    selected, states, signals = computed(golden_predictor, batch, credit, entropy)
    assert {tuple(pair) for pair in selected.nonzero().tolist()} == expected.keys()
    steps = selected.nonzero()[:, 1].tolist()
    for k, (b, t) in enumerate(zip(states.row.tolist(), steps, strict=True)):
        chosen = signals.optimised[k].nonzero().flatten().tolist()
        assert chosen == sorted(expected[b, t])
        wanted = torch.zeros(LENGTH)
        for i, value in expected[b, t].items():
            wanted[i] = value
        torch.testing.assert_close(signals.signal[k], wanted, **TOLERANCE)
    expected_balance = torch.tensor([float(value) for value in balance])
    torch.testing.assert_close(signals.balance, expected_balance, **TOLERANCE)


def test_a_limit_on_steps_keeps_those_of_highest_score(golden_predictor, batch):
    trajectories, _, weight, _ = batch
    every = selected_timesteps(trajectories, weight, CreditConfig(fraction=1.0))
    one = selected_timesteps(trajectories, weight, CreditConfig(fraction=1.0, max_steps=1))
    assert (one.sum(1) == 1).all()
    assert (one & ~every).sum() == 0
    assert slots(one) == 1
    assert slots(every) > 1
    assert slots(every[:0]) == 0


def test_equal_weights_without_calibration_are_the_base_method(golden_predictor, batch):
    trajectories, prompts, _, advantage = batch
    equal = (trajectories, prompts, trajectories.is_response.float(), advantage)
    entropy = EntropyConfig(calibration=False)
    _, states, signals = computed(golden_predictor, equal, CreditConfig(), entropy)
    expected = advantage[states.row][:, None] * signals.optimised
    torch.testing.assert_close(signals.signal, expected)
    assert signals.optimised.any()


def test_scaling_all_weights_changes_nothing_and_reward_scales_the_signal(golden_predictor, batch):
    trajectories, prompts, weight, advantage = batch
    plain = computed(golden_predictor, batch, CreditConfig(), EntropyConfig())
    doubled = computed(
        golden_predictor,
        (trajectories, prompts, 2 * weight, 3 * advantage),
        CreditConfig(),
        EntropyConfig(),
    )
    assert torch.equal(doubled[0], plain[0])
    torch.testing.assert_close(doubled[2].signal, 3 * plain[2].signal)
    torch.testing.assert_close(doubled[2].balance, plain[2].balance)
    torch.testing.assert_close(doubled[2].rise, 3 * plain[2].rise)


def test_end_padding_and_what_is_already_decided_are_never_trained(golden_predictor, batch):
    credit = CreditConfig(fraction=1.0, low_prob_threshold=0.0)
    _, states, signals = computed(golden_predictor, batch, credit, EntropyConfig())
    # With threshold 0, B_t is every masked token of the response.
    assert torch.equal(signals.optimised, states.masked & states.is_response)
    assert not signals.signal[~signals.optimised].any()
    assert not signals.signal.requires_grad
    assert not signals.balance.requires_grad

"""Tests of one update: the gradient of the whole batch, however it is cut, padded or ordered."""

import copy
import math
from dataclasses import replace

import pytest
import torch

from dtca_core.config import CreditConfig, EntropyConfig, TrainConfig
from dtca_core.data.problems import Problem
from dtca_core.evaluation.scoring import Score
from dtca_core.records import TrajectoryBatch
from dtca_core.rollouts import RolloutBatch
from dtca_core.training.update import accumulate, prepare_lesson

TOLERANCE = 1e-6
"""Of each number in a gradient, as a share of the largest one."""
LENGTH = 8
PROBLEM = Problem(problem_id="0", question="?", answer="1", kind="test")
PROMPTS = ((1, 2, 3), (1, 2, 3), (4,), (4,), (5, 6, 7, 8, 9), (5, 6, 7, 8, 9))
REWARDS = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
CONFIG = TrainConfig(samples_per_prompt=2, credit=CreditConfig(low_prob_threshold=0.01))


def batch_of(trajectories, prompts=PROMPTS, rewards=REWARDS):
    """Rollouts of these trajectories; an update reads neither their texts nor their problems."""
    size = len(prompts)
    verdicts = {
        1.0: Score(correct=True, extracted="1", reason="equal"),
        0.0: Score(correct=False, extracted=None, reason="no answer stated"),
    }
    return RolloutBatch(
        problems=(PROBLEM,) * size,
        samples=(0,) * size,
        prompts=prompts,
        trajectories=trajectories,
        texts=("",) * size,
        spans=((),) * size,
        special=((),) * size,
        has_ended=(True,) * size,
        scores=tuple(verdicts[reward] for reward in rewards),
    )


@pytest.fixture(scope="module")
def predictor(golden_predictor):
    """A small model in float64, so that a gradient is exact but for the float32 log-probability."""
    return copy.deepcopy(golden_predictor).double()


@pytest.fixture(scope="module")
def rollouts():
    """Six random responses to three prompts; one is a lone end token, one has some padding."""
    generator = torch.Generator().manual_seed(5)
    order = torch.stack([torch.randperm(LENGTH, generator=generator) for _ in PROMPTS])
    trajectories = TrajectoryBatch(
        response_ids=torch.randint(0, 90, (6, LENGTH), generator=generator),
        commit_step=order // 2,
        commit_confidence=torch.rand(6, LENGTH, generator=generator),
        num_steps=torch.full((6,), 4),
        num_response_tokens=torch.tensor([8, 5, 8, 1, 3, 8]),
        block_length=LENGTH,
        num_forwards=4,
    )
    return batch_of(trajectories)


@pytest.fixture(scope="module")
def weight(rollouts):
    """Category weights of the tokens of `rollouts`."""
    generator = torch.Generator().manual_seed(6)
    weight = 0.8 + 0.4 * torch.rand(6, LENGTH, generator=generator)
    return weight.masked_fill(~rollouts.trajectories.is_response, 0.0)


def chosen_rows(rollouts, index):
    """Some responses of a batch, in the order given."""
    return replace(
        rollouts,
        prompts=tuple(rollouts.prompts[b] for b in index),
        trajectories=rollouts.trajectories.rows(torch.tensor(index)),
        scores=tuple(rollouts.scores[b] for b in index),
    )


def learn(predictor, rollouts, weight, config=CONFIG, reference=None):
    """Return the lesson, the gradient of each parameter, and what was said of the loss."""
    policy = copy.deepcopy(predictor)
    lesson = prepare_lesson(policy, policy, rollouts, weight, config)
    values = accumulate(
        policy, reference, policy.mask_id, lesson, config, lambda loss: loss.backward()
    )
    return lesson, gradients(policy), values


def gradients(policy):
    return {name: weight.grad for name, weight in policy.named_parameters()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    largest = max(gradient.abs().max().item() for gradient in expected.values())
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=TOLERANCE * largest)


def log_p_of(policy, rollouts, row, step):
    """Log-probability of each final token in one unpadded state, the mask token excluded."""
    trajectories = rollouts.trajectories
    hidden = trajectories.commit_step[row] >= step
    response = trajectories.response_ids[row]
    tokens = list(rollouts.prompts[row]) + response.masked_fill(hidden, policy.mask_id).tolist()
    logits = policy.logits(torch.tensor([tokens]))[0, -LENGTH:]
    logits = logits.index_fill(-1, torch.tensor(policy.mask_id), -math.inf)
    return logits.log_softmax(-1).gather(-1, response[:, None]).squeeze(-1)


def looped(predictor, rollouts, lesson, kl_coefficient=0.0, reference=None):
    """The gradient of the loss, written as a loop over the states and tokens of a lesson."""
    policy = copy.deepcopy(predictor)
    steps = lesson_steps(rollouts, lesson)
    count = int(lesson.signals.optimised.sum())
    loss = torch.zeros((), dtype=torch.float64)
    for k, (row, step) in enumerate(steps):
        log_p = log_p_of(policy, rollouts, row, step)
        for i in lesson.signals.optimised[k].nonzero().flatten().tolist():
            loss = loss - lesson.signals.signal[k, i] * log_p[i] / count
            if reference is not None:
                d = log_p_of(reference, rollouts, row, step)[i].detach() - log_p[i]
                loss = loss + kl_coefficient * (d.exp() - d - 1) / count
    loss.backward()
    return gradients(policy), loss.item()


def lesson_steps(rollouts, lesson):
    """Response and denoising step of each state of a lesson that leaves out no response."""
    states = lesson.states
    steps = []
    for k, row in enumerate(states.row.tolist()):
        decided = rollouts.trajectories.commit_step[row].masked_fill(states.masked[k], -1)
        steps.append((row, int(decided.max()) + 1))
    return steps


# ------------------------------------------------------------------------------------- the gradient


def test_the_gradient_is_that_of_the_loss_written_as_a_loop(predictor, rollouts, weight):
    lesson, found, values = learn(predictor, rollouts, weight)
    expected, loss = looped(predictor, rollouts, lesson)
    assert_same(found, expected)
    assert values["loss"] == pytest.approx(loss, abs=1e-6)
    assert values["kl"] == 0.0
    assert any(gradient.abs().max() > 1e-3 for gradient in found.values())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_gradient_does_not_depend_on_micro_batches(predictor, rollouts, weight, size):
    _, expected, values = learn(predictor, rollouts, weight)
    config = CONFIG.model_copy(update={"micro_batch_size": size})
    _, found, same = learn(predictor, rollouts, weight, config)
    assert_same(found, expected)
    assert same["loss"] == pytest.approx(values["loss"], abs=1e-6)


@pytest.mark.parametrize("order", [[5, 4, 3, 2, 1, 0], [2, 3, 0, 1, 5, 4]])
def test_the_gradient_does_not_depend_on_the_order_of_responses(predictor, rollouts, weight, order):
    _, expected, _ = learn(predictor, rollouts, weight)
    _, found, _ = learn(predictor, chosen_rows(rollouts, order), weight[order])
    assert_same(found, expected)


def test_the_padding_of_shorter_prompts_changes_nothing(predictor, rollouts, weight):
    # Each group alone has no padding; together, the gradients weigh by their trained tokens.
    _, together, _ = learn(predictor, rollouts, weight)
    alone = []
    for index in ([0, 1], [2, 3], [4, 5]):
        lesson, found, _ = learn(predictor, chosen_rows(rollouts, index), weight[index])
        assert lesson.states.attention_mask.all()
        alone.append((int(lesson.signals.optimised.sum()), found))
    total = sum(count for count, _ in alone)
    expected = {
        name: sum(count * found[name] for count, found in alone) / total for name in together
    }
    assert_same(together, expected)


def test_no_gradient_flows_through_weights_or_balance(predictor, rollouts, weight):
    carrying = weight.clone().requires_grad_()
    lesson, found, _ = learn(predictor, rollouts, carrying)
    assert carrying.grad is None
    assert not lesson.signals.signal.requires_grad
    assert not lesson.signals.balance.requires_grad
    assert_same(found, learn(predictor, rollouts, weight)[1])


# ------------------------------------------------------------------------------- what is left out


def test_groups_without_advantage_are_left_out(predictor, rollouts, weight):
    scores = rollouts.scores[:2] + (rollouts.scores[0],) * 2 + rollouts.scores[4:]
    flat = replace(rollouts, scores=scores)
    lesson, found, _ = learn(predictor, flat, weight)
    assert lesson.metrics["responses_trained"] == 4
    others = [0, 1, 4, 5]
    expected = learn(predictor, chosen_rows(rollouts, others), weight[others])[1]
    assert_same(found, expected)


def test_nothing_is_learnt_where_no_group_has_an_advantage(predictor, rollouts, weight):
    flat = replace(rollouts, scores=(rollouts.scores[0],) * 6)
    assert prepare_lesson(predictor, predictor, flat, weight, CONFIG) is None
    keeping = CONFIG.model_copy(update={"kl_coefficient": 0.1})
    lesson = prepare_lesson(predictor, predictor, flat, weight, keeping)
    assert lesson is not None
    assert lesson.metrics["responses_trained"] == 6
    assert not lesson.signals.signal.any()


def test_a_response_of_only_end_tokens_is_finite(predictor, rollouts, weight):
    trajectories = rollouts.trajectories.rows(torch.tensor([0, 0]))
    end = predictor.eos_id
    empty = replace(
        trajectories,
        response_ids=torch.full((2, LENGTH), end),
        num_response_tokens=torch.tensor([1, 1]),
        # Certain throughout: no step is worth more than another, and the first one commits
        # nothing but padding in the second response.
        commit_confidence=torch.ones(2, LENGTH),
        commit_step=torch.tensor([[0, 0, 1, 1, 2, 2, 3, 3], [3, 3, 2, 2, 1, 1, 0, 0]]),
    )
    config = CONFIG.model_copy(update={"credit": CreditConfig(low_prob_threshold=None)})
    batch = batch_of(empty, PROMPTS[:2], (1.0, 0.0))
    lesson, found, values = learn(predictor, batch, empty.is_response.float(), config)
    assert lesson.signals.optimised.sum() == 1
    assert all(math.isfinite(value) for value in [*values.values(), *lesson.metrics.values()])
    assert all(gradient.isfinite().all() for gradient in found.values())
    second = batch_of(empty.rows(torch.tensor([1, 1])), PROMPTS[:2], (1.0, 0.0))
    lesson, found, values = learn(predictor, second, empty.is_response.float(), config)
    assert values == {"loss": 0.0, "kl": 0.0}
    assert all(math.isfinite(value) for value in lesson.metrics.values())
    assert all(gradient is None for gradient in found.values())


# ------------------------------------------------------------------------- divergence and metrics


def test_divergence_is_added_where_asked_and_leaves_its_reference_alone(
    predictor, rollouts, weight
):
    reference = copy.deepcopy(predictor)
    config = CONFIG.model_copy(update={"kl_coefficient": 0.5})
    plain = learn(predictor, rollouts, weight)
    _, same, values = learn(predictor, rollouts, weight, config, reference)
    # The start diverges from itself by nothing, and so does its gradient.
    assert values["kl"] == pytest.approx(0.0, abs=1e-6)
    assert_same(same, plain[1])

    moved = copy.deepcopy(predictor)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.mul_(1.01)
    before = {name: value.clone() for name, value in reference.state_dict().items()}
    lesson, found, values = learn(moved, rollouts, weight, config, reference)
    expected, loss = looped(moved, rollouts, lesson, 0.5, reference)
    assert_same(found, expected)
    assert values["loss"] == pytest.approx(loss, abs=1e-5)
    assert values["kl"] > 0
    assert all(torch.equal(value, before[name]) for name, value in reference.state_dict().items())
    assert all(parameter.grad is None for parameter in reference.parameters())


@pytest.mark.parametrize("scope", ["response", "batch"])
def test_metrics_say_how_often_the_balance_is_clipped_or_one_sided(
    predictor, rollouts, weight, scope
):
    def metrics_at(limit):
        entropy = EntropyConfig(scope=scope, limit=limit)
        config = CONFIG.model_copy(update={"entropy": entropy})
        lesson = prepare_lesson(predictor, predictor, rollouts, weight, config)
        return lesson.metrics, lesson.signals

    literal, signals = metrics_at(1.0)
    rise, fall = signals.rise, signals.fall
    if scope == "batch":
        rise, fall = rise.sum().expand(6), fall.sum().expand(6)
    two_sided = (rise > 0) & (fall > 0)
    raw = ((fall - rise) / (fall + rise)).where(two_sided, 0.0)
    assert literal["lambda_one_sided"] == pytest.approx((~two_sided).float().mean().item())
    assert literal["lambda_clipped"] == 0.0
    assert literal["lambda"] == pytest.approx(raw.mean().item(), abs=1e-6)
    limit = raw.abs().median().item() - 1e-3
    clipped, _ = metrics_at(max(limit, 0.0))
    assert clipped["lambda_clipped"] == pytest.approx(
        (two_sided & (raw.abs() > limit)).float().mean().item()
    )
    assert literal["tokens_trained"] == int(signals.optimised.sum())
    assert literal["entropy"] > 0

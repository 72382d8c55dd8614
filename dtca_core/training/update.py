"""One on-policy update: measure, give signals, then accumulate gradients.

Two passes, because the balance and the number of trained tokens concern the whole batch: the
first measures without gradient, the second learns with every weight known. So the gradient is
the same however the micro-batches fall.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dtca_core.advantage import ADVANTAGES
from dtca_core.config import TrainConfig
from dtca_core.models import MaskPredictor
from dtca_core.objective import k3_kl, policy_loss
from dtca_core.rollouts import RolloutBatch
from dtca_core.training.policy import measure, micro_batches, statistics_at
from dtca_core.training.signals import (
    Signals,
    broadcast_advantage,
    selected_timesteps,
    slots,
    token_signals,
)
from dtca_core.training.states import DenoisingStates, denoising_states


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What an update teaches: states, their signals, and statistics of both."""

    states: DenoisingStates
    signals: Signals
    metrics: dict[str, int | float]


def prepare_lesson(
    policy: nn.Module,
    predictor: MaskPredictor,
    rollouts: RolloutBatch,
    weight: Float[Tensor, "B L"],
    config: TrainConfig,
) -> Lesson | None:
    """Return what there is to learn from these rollouts, or None if there is nothing.

    Responses whose advantage is 0 teach nothing and are left out, unless a divergence from the
    start is to be kept small too.
    """
    reward = torch.tensor(rollouts.rewards).view(-1, config.samples_per_prompt)
    advantage = ADVANTAGES[config.advantage](reward, config.advantage_floor).flatten()
    is_active = (advantage != 0) | (config.kl_coefficient > 0)
    active = is_active.nonzero().flatten()
    if not len(active):
        return None
    trajectories = rollouts.trajectories.rows(active)
    weight, advantage = weight[active], advantage[active]
    selected = selected_timesteps(trajectories, weight, config.credit)
    prompts = [rollouts.prompts[b] for b in active.tolist()]
    states = denoising_states(predictor, prompts, trajectories, selected)
    measured = measure(policy, predictor.mask_id, states, config.micro_batch_size)
    signals = token_signals(
        states,
        measured,
        weight,
        broadcast_advantage(advantage, slots(selected)),
        config.credit,
        config.entropy,
    )
    return Lesson(
        states=states,
        signals=signals,
        metrics=_metrics(signals, measured, selected, config.entropy.scope),
    )


def _metrics(
    signals: Signals,
    measured: dict[str, Float[Tensor, "K L"]],
    selected: Bool[Tensor, "B T"],
    scope: str,
) -> dict[str, int | float]:
    rise, fall = signals.rise, signals.fall
    if scope == "batch":
        rise, fall = rise.sum().expand_as(rise), fall.sum().expand_as(fall)
    is_empty = (rise == 0) | (fall == 0)
    unclipped = (fall - rise) / (fall + rise)
    is_clipped = ~is_empty & (signals.balance.abs() < unclipped.abs() - 1e-6)
    count = int(signals.optimised.sum())
    return {
        "responses_trained": len(signals.balance),
        "steps_selected": selected.sum(1).float().mean().item(),
        "tokens_trained": count,
        "entropy": measured["entropy"][signals.optimised].sum().item() / max(count, 1),
        "entropy_rise": signals.rise.mean().item(),
        "entropy_fall": signals.fall.mean().item(),
        "lambda": signals.balance.mean().item(),
        "lambda_clipped": is_clipped.float().mean().item(),
        "lambda_one_sided": is_empty.float().mean().item(),
    }


def accumulate(
    policy: nn.Module,
    reference: nn.Module | None,
    mask_id: int,
    lesson: Lesson,
    config: TrainConfig,
    backward: Callable[[Tensor], None],
) -> dict[str, float]:
    """Add the gradient of the whole lesson to the policy's, and return loss and divergence."""
    states, signals = lesson.states, lesson.signals
    count = int(signals.optimised.sum())
    loss_sum = kl_sum = 0.0
    for index in micro_batches(len(states), config.micro_batch_size):
        chosen = signals.optimised[index]
        if not chosen.any():
            continue
        log_p = statistics_at(policy, mask_id, states, index, chosen).log_p
        signal = signals.signal[index][chosen].to(log_p)
        loss = policy_loss(signal, log_p, torch.ones_like(log_p, dtype=torch.bool), count)
        if reference is not None:
            with torch.no_grad():
                log_ref = statistics_at(reference, mask_id, states, index, chosen).log_p
            kl = k3_kl(log_p, log_ref).sum() / count
            loss = loss + config.kl_coefficient * kl
            kl_sum += kl.item()
        backward(loss)
        loss_sum += loss.item()
    return {"loss": loss_sum, "kl": kl_sum}

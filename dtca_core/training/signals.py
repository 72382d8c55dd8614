"""From rollouts to the signal of every token: select steps, give credit, balance entropy.

The seam between the base method and DTCA is the one tensor made here: the loss consumes it and
does not ask where it came from.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from dtca_core.config import CreditConfig, EntropyConfig
from dtca_core.credit import (
    limit_timesteps,
    optimised_positions,
    select_timesteps,
    timestep_score,
    token_credit,
    token_signal,
)
from dtca_core.entropy import (
    balance_factor,
    batch_entropy_balance,
    entropy_balance,
    entropy_change,
    entropy_change_exact,
    entropy_flows,
)
from dtca_core.records import TrajectoryBatch
from dtca_core.training.states import DenoisingStates


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What each token of each state learns, and what is worth knowing of it."""

    optimised: Bool[Tensor, "K L"]
    """True in B_t."""
    signal: Float[Tensor, "K L"]
    """A_{t,i} after entropy calibration; 0 outside B_t."""
    rise: Float[Tensor, " B"]
    """P_b, in nats per unit of learning rate."""
    fall: Float[Tensor, " B"]
    """N_b, likewise."""
    balance: Float[Tensor, " B"]
    """lambda_b."""


def selected_timesteps(
    trajectories: TrajectoryBatch, weight: Float[Tensor, "B L"], config: CreditConfig
) -> Bool[Tensor, "B T"]:
    """Return the denoising steps of each response that are trained on."""
    num_steps = int(trajectories.num_steps.max())
    # End padding is no token of the response: it does not make a step worth training on.
    weight = weight.masked_fill(~trajectories.is_response, 0.0)
    score = timestep_score(
        weight, trajectories.commit_confidence, trajectories.commit_step, num_steps
    )
    selected = select_timesteps(score, config.fraction)
    return limit_timesteps(score, selected, config.max_steps)


def token_signals(
    states: DenoisingStates,
    measured: dict[str, Float[Tensor, "K L"]],
    weight: Float[Tensor, "B L"],
    advantage: Float[Tensor, "B S"],
    credit_config: CreditConfig,
    entropy_config: EntropyConfig,
) -> Signals:
    """Return the signal of every token of the states.

    Args:
        states: the selected states of B responses.
        measured: what the current policy says of them, as `policy.measure` returns it.
        weight: w_{c_i} of each token.
        advantage: A_t of each response at each of its selected steps.
        credit_config: threshold of B_t.
        entropy_config: estimate, scope and limit of the balance.
    """
    shape = (len(weight), advantage.shape[1])
    log_p, entropy, collision = (
        states.dense(measured[name], shape) for name in ("log_p", "entropy", "collision")
    )
    optimised = optimised_positions(
        states.dense(states.committed, shape),
        states.dense(states.masked, shape),
        log_p.exp(),
        credit_config.low_prob_threshold,
        states.dense(states.is_response, shape),
    )
    credit = token_credit(weight[:, None].expand_as(log_p), optimised)
    signal = token_signal(credit, advantage)
    if entropy_config.estimate == "exact":
        change = entropy_change_exact(signal, log_p, entropy, collision)
    else:
        change = entropy_change(signal, log_p, entropy)
    rise, fall = entropy_flows(change, optimised)
    balance = _balance(change, optimised, entropy_config)
    if entropy_config.calibration:
        signal = signal * balance_factor(change, balance)
    return Signals(
        optimised=optimised[states.row, states.slot],
        signal=signal[states.row, states.slot],
        rise=rise,
        fall=fall,
        balance=balance,
    )


def _balance(
    change: Float[Tensor, "B S L"], optimised: Bool[Tensor, "B S L"], config: EntropyConfig
) -> Float[Tensor, " B"]:
    if config.scope == "batch":
        return batch_entropy_balance(change, optimised, config.limit)
    return entropy_balance(change, optimised, config.limit)


def broadcast_advantage(
    advantage: Float[Tensor, " B"], num_slots: int
) -> Float[Tensor, "B {num_slots}"]:
    """Return A_t = A^(b): the response's advantage at each of its selected steps."""
    return advantage[:, None].expand(-1, num_slots).contiguous()


def slots(selected: Bool[Tensor, "B T"]) -> int:
    """Return S, the most steps that any response has selected."""
    return int(selected.sum(1).max()) if len(selected) else 0

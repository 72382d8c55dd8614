"""Entropy balance: keep updates from draining, or flooding, entropy.

The learning rate is left out of every estimate: it cancels in the balance.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def entropy_change(
    signal: Float[Tensor, "*shape"],
    log_p: Float[Tensor, "*shape"],
    entropy: Float[Tensor, "*shape"],
) -> Float[Tensor, "*shape"]:
    """Return the paper's estimate of how much one update changes each token's entropy.

        dH = -A_{t,i} (1 - p)^2 (log p + H).

    Args:
        signal: A_{t,i}, scaled by credit.
        log_p: log-probability of the token under the current policy, at most 0.
        entropy: H of the current policy at the position, in nats.

    Returns:
        nats per unit of learning rate, without gradient: a weight, not an objective. It is 0
        where the token is certain.
    """
    signal, log_p, entropy = signal.detach(), log_p.detach(), entropy.detach()
    # expm1, because 1 - exp(log_p) has no digits left where p is close to 1.
    return -signal * torch.expm1(log_p).square() * (log_p + entropy)


def entropy_change_exact(
    signal: Float[Tensor, "*shape"],
    log_p: Float[Tensor, "*shape"],
    entropy: Float[Tensor, "*shape"],
    collision: Float[Tensor, "*shape"],
) -> Float[Tensor, "*shape"]:
    """Return the exact first-order change of each token's entropy in one softmax update.

        dH = -A_{t,i} [p (log p + H) - sum_k p_k^2 (log p_k + H)].

    Args:
        signal: A_{t,i}, scaled by credit.
        log_p: log-probability of the token under the current policy, at most 0.
        entropy: H of the current policy at the position, in nats.
        collision: the sum over the vocabulary, as `objective.token_statistics` returns it.

    Returns:
        nats per unit of learning rate, without gradient: a weight, not an objective. It is 0
        where the policy is certain or uniform.
    """
    signal, log_p, entropy = signal.detach(), log_p.detach(), entropy.detach()
    return -signal * (log_p.exp() * (log_p + entropy) - collision.detach())


def entropy_flows(
    change: Float[Tensor, "B S L"], optimised: Bool[Tensor, "B S L"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return P_b and N_b, the sum of the rises and of the falls of entropy in each response.

        P_b = sum of dH over dH > 0,    N_b = sum of |dH| over dH < 0.

    Both float32, at least 0, in the units of `change`, without gradient.

    Args:
        change: estimated entropy change of each token at each selected step.
        optimised: True in the optimisation set B_t; other entries are ignored.
    """
    change = change.detach().float().masked_fill(~optimised, 0.0)
    rise = change.clamp(min=0).sum((-2, -1))
    fall = (-change).clamp(min=0).sum((-2, -1))
    return rise, fall


def entropy_balance(
    change: Float[Tensor, "B S L"], optimised: Bool[Tensor, "B S L"], limit: float = 0.2
) -> Float[Tensor, " B"]:
    """Return lambda_b, the balance of entropy change in each response.

    With P_b the sum of the rises and N_b of the falls of response b, over all its steps,

        lambda_b = clip((N_b - P_b) / (N_b + P_b), -limit, limit).

    Rises are to be weighted by 1 + lambda_b and falls by 1 - lambda_b; at limit 1 they cancel.

    Args:
        change: estimated entropy change of each token at each selected step, in nats.
        optimised: True in the optimisation set B_t; other entries are ignored.
        limit: largest absolute lambda_b, in [0, 1].

    Returns:
        float32, without gradient: a weight, not an objective. It is 0 where a response has
        only rises or only falls, because a weight of 0 would erase the response.
    """
    rise, fall = entropy_flows(change, optimised)
    two_sided = (rise > 0) & (fall > 0)
    # Divide only where there is something to balance: an epsilon would bias small changes.
    total = (rise + fall).where(two_sided, 1.0)
    return ((fall - rise) / total).where(two_sided, 0.0).clamp(-limit, limit)


def batch_entropy_balance(
    change: Float[Tensor, "B S L"], optimised: Bool[Tensor, "B S L"], limit: float = 0.2
) -> Float[Tensor, " B"]:
    """Return lambda, the balance of entropy change over all responses, once for each of them.

    As `entropy_balance` of one response that holds the steps of all; same arguments and edges.
    """
    balance = entropy_balance(change.flatten(0, 1)[None], optimised.flatten(0, 1)[None], limit)
    return balance.expand(len(change))


def balance_factor(
    change: Float[Tensor, "B S L"], balance: Float[Tensor, " B"]
) -> Float[Tensor, "B S L"]:
    """Return g_{t,i}, the factor that balances the entropy change of each token.

        g_{t,i} = 1 + lambda_b where dH > 0, 1 - lambda_b where dH < 0, 1 where dH = 0.

    Args:
        change: estimated entropy change of each token; only its sign counts.
        balance: lambda_b, in [-1, 1].

    Returns:
        in [0, 2], dtype of `balance`, without gradient.
    """
    balance = balance.detach()
    direction = (change > 0).to(balance.dtype) - (change < 0).to(balance.dtype)
    return 1.0 + direction * balance[:, None, None]

"""The objective: log-probabilities weighted by signals, and the divergence from the start.

Left out: ratios and clipping. One update per batch of rollouts is strictly on-policy, so the
ratio is 1. Where a signal came from is not asked here.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float32, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class TokenStatistics:
    """What a policy says of K tokens, each at a masked position of some state x_t."""

    log_p: Float32[Tensor, " K"]
    """Log-probability of the token, at most 0, in nats; the only field with gradient."""
    entropy: Float32[Tensor, " K"]
    """H = -sum_k p_k log p_k at the position, at least 0, in nats."""
    collision: Float32[Tensor, " K"]
    """sum_k p_k^2 (log p_k + H) at the position; the exact entropy change needs it."""


def token_statistics(
    logits: Float[Tensor, "K V"], token: Int[Tensor, " K"], mask_id: int
) -> TokenStatistics:
    """Return log-probability, entropy and collision of each token under its row of logits.

    The softmax is over the vocabulary without the mask token, in float32 whatever the dtype of
    the logits; 0 log 0 is 0. Gradient flows from `log_p` to `logits`, never to the mask token's.

    Args:
        logits: one row per token; finite.
        token: id of each token; never `mask_id`, whose probability is 0.
        mask_id: id of the mask token.
    """
    is_mask = torch.arange(logits.shape[-1], device=logits.device) == mask_id
    log_p = logits.float().masked_fill(is_mask, -torch.inf).log_softmax(-1)
    with torch.no_grad():
        p = log_p.exp()
        # 0 times the lowest float is 0, where 0 times -inf would be NaN.
        finite_log_p = log_p.clamp(min=torch.finfo(log_p.dtype).min)
        entropy = (p * -finite_log_p).sum(-1)
        collision = (p.square() * (finite_log_p + entropy[:, None])).sum(-1)
    chosen = log_p.gather(-1, token.long()[:, None]).squeeze(-1)
    return TokenStatistics(log_p=chosen, entropy=entropy, collision=collision)


def policy_loss(
    signal: Float[Tensor, "*shape"],
    log_p: Float[Tensor, "*shape"],
    optimised: Bool[Tensor, "*shape"],
    count: int,
) -> Float[Tensor, ""]:
    """Return the loss, the negative of the objective that the signals describe.

        loss = -(1 / count) sum over optimised tokens of S_i log p_i.

    Losses of micro-batches that share one `count` add up to the loss of the whole batch.

    Args:
        signal: S_i, by which each token's log-probability is weighted; taken without gradient.
        log_p: log-probability of each token under the policy that is updated.
        optimised: True in the optimisation set B_t; other entries are ignored, whatever they hold.
        count: number of optimised tokens of the whole batch; where it is 0 the loss is 0.
    """
    weight = signal.detach().masked_fill(~optimised, 0.0)
    return -(weight * log_p.masked_fill(~optimised, 0.0)).sum() / max(count, 1)


def k3_kl(
    log_p: Float[Tensor, "*shape"], log_ref: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """Return the k3 estimate of KL(p || ref) at each token.

        k3 = exp(d) - d - 1,    d = log ref - log p.

    In nats, 0 where the two agree and above 0 elsewhere; infinite where the reference finds the
    token more than about e^88 times likelier (float32). Gradient flows to `log_p` only.

    Args:
        log_p: log-probability of each token under the policy that is updated.
        log_ref: the same under the frozen reference.
    """
    d = log_ref.detach() - log_p
    # expm1, because exp(d) - 1 has no digits left where d is small.
    return torch.expm1(d) - d

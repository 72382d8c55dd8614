"""Which masked positions of a block leave the mask at a step.

Every rule commits at least one position of a row that has any, and breaks ties by position.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from dtca_core.config import SamplerConfig


def committed_positions(
    confidence: Float[Tensor, "B K"], masked: Bool[Tensor, "B K"], step: int, config: SamplerConfig
) -> Bool[Tensor, "B K"]:
    """Return the positions of the block to commit at this step of the block.

    Args:
        confidence: probability of each proposal; ignored where not masked.
        masked: True where the block is still to be decided.
        step: 0-based step within the block; only the quota looks at it.
        config: its threshold or factor decides, else the quota of its steps.
    """
    ranked, order = confidence.masked_fill(~masked, -1.0).sort(dim=1, descending=True, stable=True)
    if config.threshold is not None:
        accepted = ranked >= config.threshold
    elif config.factor is not None:
        accepted = _leading_run(ranked, config.factor)
    else:
        accepted = (torch.arange(ranked.shape[1]) < quota(step, config)).expand_as(ranked).clone()
    accepted[:, 0] = True
    return torch.zeros_like(masked).scatter(1, order, accepted) & masked


def quota(step: int, config: SamplerConfig) -> int:
    """Return how many positions the step commits: block_length / steps, larger ones first."""
    share, rest = divmod(config.block_length, config.steps_per_block)
    return share + (step < rest)


def _leading_run(ranked: Float[Tensor, "B K"], factor: float) -> Bool[Tensor, "B K"]:
    """Accept rank n = 1, 2, ... while its confidence is at least 1 - factor / (n + 1)."""
    rank = torch.arange(1, ranked.shape[1] + 1, dtype=torch.float64)
    passes = ranked >= 1 - factor / (rank + 1)
    passes[:, 0] = True
    return passes.int().cumprod(dim=1).bool()

"""The masked-diffusion loss of LLaDA's fine-tuning: the prompt is shown, the response is masked."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def noise_levels(count: int, generator: torch.Generator) -> Float[Tensor, " B"]:
    """Return mask probabilities in (0, 1], spread evenly over the batch to quieten the loss."""
    offset = torch.rand((), generator=generator)
    return 1 - (offset + torch.arange(count) / count) % 1


def masked_at(
    level: Float[Tensor, " B"], length: int, generator: torch.Generator
) -> Bool[Tensor, "B L"]:
    """Return True where the response is masked, each position with its row's probability."""
    return torch.rand(len(level), length, generator=generator) < level[:, None]


def masked_diffusion_loss(
    logits: Float[Tensor, "K V"],
    target: Int[Tensor, " K"],
    level: Float[Tensor, " K"],
    num_tokens: int,
) -> Float[Tensor, ""]:
    """Return the sum over masked tokens of -log p / level, per response token of the batch.

    Args:
        logits: predictions at the masked positions.
        target: the tokens behind the mask.
        level: mask probability of the row that each position belongs to.
        num_tokens: response tokens of the batch, masked or not.
    """
    return (F.cross_entropy(logits, target, reduction="none") / level).sum() / num_tokens

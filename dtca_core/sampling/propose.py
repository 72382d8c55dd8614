"""What a masked position would become, and how sure the model is of it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor


def propose(
    logits: Float[Tensor, "K V"],
    *,
    forbidden: Sequence[int],
    suppressed: Sequence[int],
    temperature: float,
    generators: Sequence[tuple[torch.Generator, int]],
) -> tuple[Int[Tensor, " K"], Float[Tensor, " K"]]:
    """Return a proposal for each position and its noise-free probability, float64.

    Gumbel noise is drawn in float64: in lower precision it samples another distribution.

    Args:
        logits: one row per masked position, grouped by response.
        forbidden: tokens that are never proposed but keep their share of the probability.
        suppressed: tokens that are taken out of the distribution.
        temperature: 0 takes the most probable token.
        generators: the stream of each response and how many of the positions are its own.
    """
    wide = logits.to(torch.float64, copy=True)
    wide[:, list(suppressed)] = -torch.inf
    scores = wide.clone()
    scores[:, list(forbidden)] = -torch.inf
    if temperature > 0:
        noise = [_gumbel(count, wide.shape[1], generator) for generator, count in generators]
        scores += temperature * torch.cat(noise).to(scores.device)
    proposal = scores.argmax(dim=1)
    chosen = wide.gather(1, proposal[:, None])
    return proposal, (chosen - wide.logsumexp(dim=1, keepdim=True)).exp().squeeze(1)


def _gumbel(rows: int, columns: int, generator: torch.Generator) -> Float[Tensor, "R V"]:
    uniform = torch.rand(rows, columns, generator=generator, dtype=torch.float64)
    return -(-uniform.log()).log()

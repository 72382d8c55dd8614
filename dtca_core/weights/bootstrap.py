"""How far estimates would move with other responses: a bootstrap over responses.

Tokens of one response are not independent draws, responses are taken to be. So whole responses are
drawn again, and an interval is wider than one from tokens. Left out: responses to the same
problem, which are alike as well; a contribution row does not say which these are.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

_LEVEL = 0.95
_CHUNK = 100
"""Resamples drawn at a time; bounds the memory and decides nothing."""
_SIGNIFICANT_BITS = 52


def resampled_totals(
    totals: Float[Tensor, "B C"], num_samples: int, generator: torch.Generator
) -> Float[Tensor, "K C"]:
    """Return the totals of `num_samples` resamples of B responses, drawn with replacement.

    Every sum is exact, so that neither the order of the additions nor the number of threads
    shows; for that the totals are rounded to about 15 digits of the largest sum that can be.

    Args:
        totals: what each response adds to each total, float64, at least 0.
        num_samples: K.
        generator: decides the draws.
    """
    grid = _exact_grid(totals)
    on_grid = (totals / grid).round()
    chunks = [times_drawn @ on_grid for times_drawn in _draws(len(totals), num_samples, generator)]
    return torch.cat(chunks) * grid


def percentile_intervals(values: Float[Tensor, "K C"]) -> list[list[float]]:
    """Return [low, high] of the middle 95 % of each column; NaN is left out.

    A column needs one value at least.
    """
    tail = (1 - _LEVEL) / 2
    ends = torch.tensor([tail, 1 - tail], dtype=values.dtype)
    return torch.nanquantile(values, ends, dim=0).T.tolist()


def cluster_standard_error(sums: Sequence[float], counts: Sequence[int]) -> float | None:
    """Return the standard error of a mean over tokens, with responses as the unit.

    With s_b the sum and n_b the tokens of response b, m = sum s / sum n, and G responses,

        sqrt( G / (G - 1) * sum_b (s_b - m n_b)^2 ) / sum n.

    Where each response has one token it is the usual error of a mean, with G - 1. None of a
    single response.
    """
    responses, total = len(sums), sum(counts)
    if responses < 2:
        return None
    mean = math.fsum(sums) / total
    squares = math.fsum([(s - mean * n) ** 2 for s, n in zip(sums, counts, strict=True)])
    return (responses / (responses - 1) * squares) ** 0.5 / total


def _draws(
    size: int, num_samples: int, generator: torch.Generator
) -> Iterator[Float[Tensor, "k B"]]:
    """Yield how often each of `size` responses is in each resample, some resamples at a time."""
    for first in range(0, num_samples, _CHUNK):
        rows = min(_CHUNK, num_samples - first)
        drawn = torch.randint(size, (rows, size), generator=generator)
        times = torch.zeros(rows, size, dtype=torch.float64)
        yield times.scatter_add_(1, drawn, torch.ones_like(times))


def _exact_grid(totals: Float[Tensor, "B C"]) -> Float[Tensor, " C"]:
    """Return the step of the grid on which float64 holds every sum of B entries exactly."""
    largest = (totals.amax(0) * len(totals)).clamp(min=torch.finfo(torch.float64).tiny)
    return torch.exp2(torch.ceil(torch.log2(largest)) - _SIGNIFICANT_BITS)

"""From contributions and their categories to the weight artifact."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dtca_core.categories import Tagger
from dtca_core.config import WeightsConfig
from dtca_core.errors import DataError
from dtca_core.randomness import stream
from dtca_core.weights.artifact import CategoryEstimate, WeightArtifact
from dtca_core.weights.bootstrap import (
    cluster_standard_error,
    percentile_intervals,
    resampled_totals,
)
from dtca_core.weights.normalisation import configured_weights

_Seen = Mapping[str, Mapping[str, Sequence[float]]]
"""Contributions by category, and in it by response."""


def estimate_weights(
    delta_p: Iterable[float | None],
    category: Iterable[str],
    response: Iterable[str],
    config: WeightsConfig,
    tagger: Tagger,
) -> WeightArtifact:
    """Return the weight artifact of contributions and their categories.

    Categories seen at least `min_count` times decide the scale. All others, and those never
    seen, get the mean weight of the tokens of these; where no category was seen often enough,
    every weight is the midpoint of [low, high], which is the base method. Errors and intervals
    take responses, not tokens, as the unit. The result does not depend on the order of the
    tokens.

    Args:
        delta_p: contribution of each token, a list or a column; null where it is undefined, and
            then left out.
        category: category of each token.
        response: name of the response that each token is of.
        config: normalisation, bounds, `min_count`, and the bootstrap.
        tagger: what gave the categories, for the record.
    """
    seen = _by_category(delta_p, category, response)
    tokens = {c: [value for values in of.values() for value in values] for c, of in seen.items()}
    counts = {c: len(values) for c, values in tokens.items()}
    means = {c: math.fsum(values) / counts[c] for c, values in tokens.items()}
    frequent = [c for c in sorted(seen) if counts[c] >= config.min_count]
    weights, mean_weight = configured_weights({c: means[c] for c in frequent}, counts, config)
    intervals = _intervals(seen, frequent, config)
    return WeightArtifact(
        tagger=tagger.name,
        tagger_version=tagger.version,
        normalisation=config.normalisation,
        low=config.low,
        high=config.high,
        min_count=config.min_count,
        categories={
            c: CategoryEstimate(
                weight=weights.get(c, mean_weight),
                weight_interval=intervals[c].weight,
                mean_delta_p=means[c],
                mean_interval=intervals[c].mean,
                standard_error=_standard_error(seen[c]),
                count=counts[c],
                num_responses=len(seen[c]),
            )
            for c in sorted(seen)
        },
        unseen_weight=mean_weight,
    )


def _by_category(
    delta_p: Iterable[float | None], category: Iterable[str], response: Iterable[str]
) -> _Seen:
    """Return the defined contributions, which have to be finite and >= 0."""
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, (value, name, of) in enumerate(zip(delta_p, category, response, strict=True)):
        if value is None:
            continue
        if not 0.0 <= value < math.inf:
            raise DataError(
                f"token {row} ({name}) has delta_p={value}; it is a finite number of at least 0, "
                "or null where it is undefined. Measure the contributions again."
            )
        seen[name][of].append(float(value))
    return seen


def _standard_error(values: Mapping[str, Sequence[float]]) -> float | None:
    return cluster_standard_error(
        [math.fsum(of) for of in values.values()], [len(of) for of in values.values()]
    )


class _Intervals(NamedTuple):
    mean: list[float] | None
    weight: list[float] | None


def _intervals(
    seen: _Seen, frequent: Sequence[str], config: WeightsConfig
) -> dict[str, _Intervals]:
    """Return the bootstrap intervals of m_c and w_c, each None where one response has c.

    In each resample the categories that decide the scale are the same; one of which it has no
    token has neither mean nor weight in it.
    """
    names = sorted(seen)
    if not names:
        return {}
    totals = torch.cat(_totals(seen, names), dim=1)
    drawn = resampled_totals(totals, config.bootstrap_samples, stream(config.seed, "bootstrap"))
    sums, counts = drawn.split(len(names), dim=1)
    # 0 / 0 is NaN, which the quantiles leave out.
    means = percentile_intervals(sums / counts)
    weights = percentile_intervals(_resampled_weights(sums, counts, names, frequent, config))
    return {
        c: _Intervals(mean, weight) if len(seen[c]) > 1 else _Intervals(None, None)
        for c, mean, weight in zip(names, means, weights, strict=True)
    }


def _totals(seen: _Seen, names: Sequence[str]) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]]:
    """Return sum and number of the contributions of each response in each category."""
    # Sorted, so that the draws do not depend on the order of the tokens.
    responses = sorted({response for of in seen.values() for response in of})
    values = [[seen[c].get(response, ()) for c in names] for response in responses]
    sums = [[math.fsum(cell) for cell in row] for row in values]
    counts = [[float(len(cell)) for cell in row] for row in values]
    return torch.tensor(sums, dtype=torch.float64), torch.tensor(counts, dtype=torch.float64)


def _resampled_weights(
    sums: Float[Tensor, "K C"],
    counts: Float[Tensor, "K C"],
    names: Sequence[str],
    frequent: Sequence[str],
    config: WeightsConfig,
) -> Float[Tensor, "K C"]:
    """Return w_c of each resample, scaled as the weights themselves are; NaN where unknown."""
    rows: list[list[float]] = []
    for sum_row, count_row in zip(sums.tolist(), counts.tolist(), strict=True):
        number = dict(zip(names, count_row, strict=True))
        total = dict(zip(names, sum_row, strict=True))
        means = {c: total[c] / number[c] for c in frequent if number[c]}
        weights, mean_weight = configured_weights(means, number, config)
        unknown = dict.fromkeys(frequent, math.nan)
        rows.append([weights.get(c, unknown.get(c, mean_weight)) for c in names])
    return torch.tensor(rows, dtype=torch.float64)

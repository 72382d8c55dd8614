"""From mean contributions m_c to weights w_c: by min-max, or by the ratio to the mean."""

import math
from collections.abc import Mapping

from dtca_core.config import WeightsConfig


def category_weights(
    means: Mapping[str, float], low: float = 0.8, high: float = 1.2
) -> dict[str, float]:
    """Return w_c, the mean contributions scaled onto [low, high].

        w_c = low + (high - low) (m_c - min m) / (max m - min m)

    All are the midpoint where all m_c are equal, so also where there is one category.

    Args:
        means: mean contribution m_c of each category.
        low: weight of the smallest mean.
        high: weight of the largest mean.
    """
    if not means:
        return {}
    smallest, largest = min(means.values()), max(means.values())
    if largest == smallest:
        return dict.fromkeys(means, (low + high) / 2)
    return {c: low + (high - low) * (m - smallest) / (largest - smallest) for c, m in means.items()}


def ratio_weights(
    means: Mapping[str, float], mean: float, low: float = 0.8, high: float = 1.2
) -> dict[str, float]:
    """Return w_c = clip(m_c / mean, low, high); 1, clipped alike, where the mean is 0.

    Args:
        means: mean contribution m_c of each category.
        mean: mean contribution of a token, whatever its category.
        low: smallest weight.
        high: largest weight.
    """
    return {c: min(max(m / mean if mean else 1.0, low), high) for c, m in means.items()}


def configured_weights(
    means: Mapping[str, float], counts: Mapping[str, int | float], config: WeightsConfig
) -> tuple[dict[str, float], float]:
    """Return w_c by the configured normalisation, and the weight of any other category.

    That is the mean weight of the tokens of these categories; the midpoint of [low, high] where
    there are none, which is the base method.

    Args:
        means: mean contribution of the categories that decide the scale.
        counts: tokens of each, above 0.
        config: normalisation and bounds.
    """
    if not means:
        return {}, (config.low + config.high) / 2
    if config.normalisation == "minmax":
        weights = category_weights(means, config.low, config.high)
    else:
        weights = ratio_weights(means, _token_mean(means, counts), config.low, config.high)
    return weights, _token_mean(weights, counts)


def _token_mean(values: Mapping[str, float], counts: Mapping[str, int | float]) -> float:
    """Return the mean over the tokens of these categories of a value of their category."""
    total = math.fsum(counts[c] for c in values)
    return math.fsum(counts[c] * value for c, value in values.items()) / total

"""How sure an accuracy is, and whether one of two models is better on the same problems.

Problems are taken as independent draws. Several responses per problem, which are not, are left
out, and so are corrections for many comparisons.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from dtca_core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Two evaluations of the same problems, compared problem by problem."""

    total: int
    """Problems compared."""
    gained: int
    """Problems that became right."""
    lost: int
    """Problems that became wrong."""
    difference: float
    """Accuracy after minus accuracy before, in [-1, 1]; 0 without problems."""
    interval: tuple[float, float]
    """Confidence interval of the difference."""
    p_value: float
    """Two-sided, exact; 1 where nothing changed."""


def wilson_interval(successes: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share of successes, within [0, 1].

    With p = successes / total and z the normal quantile of (1 + level) / 2,

        (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).

    Without trials nothing is known: (0, 1).
    """
    if not 0 <= successes <= total:
        raise DataError(
            f"{successes} successes of {total} trials are impossible; count both over the same "
            "problems."
        )
    z = _quantile(level)
    if total == 0:
        return 0.0, 1.0
    share = successes / total
    spread = z * sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    centre, scale = share + z * z / (2 * total), 1 + z * z / total
    # The formula reaches the ends exactly; rounding does not.
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if successes == total else min(1.0, (centre + spread) / scale)
    return low, high


def paired_test(
    before: Sequence[bool], after: Sequence[bool], level: float = 0.95
) -> PairedComparison:
    """Return how the second of two evaluations differs from the first on the same problems.

    The p-value is McNemar's exact one: under no difference, each changed problem is as likely
    gained as lost. The interval is Newcombe's square-and-add of two Wilson intervals with their
    correlation (1998, method 10). The two rest on different approximations and may disagree
    about significance at the border.
    """
    if len(before) != len(after):
        raise DataError(
            f"{len(before)} and {len(after)} verdicts cannot be paired; evaluate both models on "
            "the same problems, in the same order."
        )
    pairs = list(zip(before, after, strict=True))
    gained, lost = pairs.count((False, True)), pairs.count((True, False))
    total = len(pairs)
    return PairedComparison(
        total=total,
        gained=gained,
        lost=lost,
        difference=(gained - lost) / total if total else 0.0,
        interval=_difference_interval(pairs.count((True, True)), gained, lost, total, level),
        p_value=_mcnemar(gained, lost),
    )


def _quantile(level: float) -> float:
    if not 0 < level < 1:
        raise DataError(f"level={level} is no confidence level; use one between 0 and 1.")
    return NormalDist().inv_cdf((1 + level) / 2)


def _mcnemar(gained: int, lost: int) -> float:
    """Return twice the binomial tail P(X <= min(gained, lost)), X ~ B(gained + lost, 1/2).

    In integers until the last division, so that thousands of changes neither round nor underflow.
    """
    changed = gained + lost
    tail, term = 0, 1
    for k in range(min(gained, lost) + 1):
        tail += term
        term = term * (changed - k) // (k + 1)
    return min(1.0, 2 * tail / 2**changed)


def _difference_interval(
    both: int, gained: int, lost: int, total: int, level: float
) -> tuple[float, float]:
    """Return Newcombe's interval of the difference of two paired shares, within [-1, 1]."""
    if total == 0:
        return -1.0, 1.0
    before, after = both + lost, both + gained
    before_low, before_high = wilson_interval(before, total, level)
    after_low, after_high = wilson_interval(after, total, level)
    phi = _correlation(both, gained, lost, total)
    p, q = before / total, after / total
    # The squares are of distances; rounding must not turn their sum negative.
    below = _side(q - after_low, before_high - p, phi)
    above = _side(after_high - q, p - before_low, phi)
    difference = (gained - lost) / total
    return max(-1.0, difference - below), min(1.0, difference + above)


def _side(one: float, other: float, phi: float) -> float:
    return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def _correlation(both: int, gained: int, lost: int, total: int) -> float:
    """Return phi of the 2 x 2 table, drawn towards 0 by n/2 where positive, as Newcombe has it."""
    neither = total - both - gained - lost
    margins = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    if margins == 0:
        return 0.0
    excess = both * neither - gained * lost
    return (max(0.0, excess - total / 2) if excess > 0 else float(excess)) / sqrt(margins)

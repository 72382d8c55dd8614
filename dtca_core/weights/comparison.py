"""Two weight artifacts side by side: which categories moved by more than noise.

What is tested is the mean contribution. Weights are shown beside it: they are fixed by the means
of all categories together, so that one category can change the weights of the others. Left out:
an exact test for a handful of responses; such categories are not tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from dtca_core.weights.artifact import CategoryEstimate, WeightArtifact

SIGNIFICANCE = 0.05
"""Chance that any category at all is said to have moved when none has."""
FEWEST_RESPONSES = 10
"""In each artifact, for a category to be tested: with fewer the normal law is too sure."""


@dataclass(frozen=True, kw_only=True)
class CategoryChange:
    """One category in two weight artifacts."""

    category: str
    before: CategoryEstimate | None
    """None where the first artifact does not list it."""
    after: CategoryEstimate | None
    """None where the second artifact does not list it."""
    difference: float | None
    """m_c after minus before; None where one does not list it."""
    standard_error: float | None
    """Of the difference; None where it is not tested."""
    p_value: float | None
    """Two-sided, corrected for the number of categories; None where it is not tested."""

    @property
    def has_moved(self) -> bool:
        """Whether the difference is more than noise."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE


@dataclass(frozen=True, kw_only=True)
class WeightsComparison:
    """What differs between two weight artifacts."""

    changes: tuple[CategoryChange, ...]
    """Every category of either, by name."""
    caveats: tuple[str, ...]
    """Sentences about what the two do not have in common, or have too much of."""


def compare_weights(
    before: WeightArtifact, after: WeightArtifact, *, share_responses: bool
) -> WeightsComparison:
    """Return how mean contributions and weights of the second differ from those of the first.

    With m and e the mean and standard error of a category in each, z = (m2 - m1) /
    sqrt(e1^2 + e2^2) is compared with the normal law, and the p-values of all tested categories
    are corrected by Holm. A category is tested if both artifacts have it at least `min_count`
    times and in at least `FEWEST_RESPONSES` responses.

    Args:
        before: the first.
        after: the second.
        share_responses: whether both were estimated from the same contributions.
    """
    names = sorted(before.categories.keys() | after.categories.keys())
    tested = [name for name in names if _is_sure(before, name) and _is_sure(after, name)]
    errors = {name: _error(before.categories[name], after.categories[name]) for name in tested}
    moves = {name: _difference(before, after, name) for name in names}
    raw = [_p_value(moves[name] or 0.0, errors[name]) for name in tested]
    p_values = dict(zip(tested, holm(raw), strict=True))
    changes = tuple(
        CategoryChange(
            category=name,
            before=before.categories.get(name),
            after=after.categories.get(name),
            difference=moves[name],
            standard_error=errors.get(name),
            p_value=p_values.get(name),
        )
        for name in names
    )
    return WeightsComparison(changes=changes, caveats=_caveats(before, after, share_responses))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm, in the same order.

    The k-th smallest of n, counted from 0, is multiplied by n - k; none is smaller than one
    before it, nor above 1. To call those below a level significant is wrong about any of them
    with at most that chance, whatever their dependence.
    """
    corrected, floor = [0.0] * len(p_values), 0.0
    for k, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        floor = max(floor, min(1.0, (len(p_values) - k) * p_values[i]))
        corrected[i] = floor
    return corrected


def _is_sure(artifact: WeightArtifact, category: str) -> bool:
    estimate = artifact.categories.get(category)
    return (
        estimate is not None
        and estimate.standard_error is not None
        and estimate.count >= artifact.min_count
        and (estimate.num_responses or 0) >= FEWEST_RESPONSES
    )


def _error(before: CategoryEstimate, after: CategoryEstimate) -> float:
    return sqrt((before.standard_error or 0.0) ** 2 + (after.standard_error or 0.0) ** 2)


def _difference(before: WeightArtifact, after: WeightArtifact, name: str) -> float | None:
    if name not in before.categories or name not in after.categories:
        return None
    return after.categories[name].mean_delta_p - before.categories[name].mean_delta_p


def _p_value(difference: float, error: float) -> float:
    """Return the two-sided p-value of a difference; without noise any difference is one."""
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return 2 * NormalDist().cdf(-abs(difference) / error)


def _caveats(
    before: WeightArtifact, after: WeightArtifact, share_responses: bool
) -> tuple[str, ...]:
    sentences: list[str] = []
    if before.tagger_version != after.tagger_version:
        sentences.append(
            f"The taggers differ ({before.tagger_version}; {after.tagger_version}): a category "
            "need not hold the same words in both."
        )
    scales = [(a.normalisation, a.low, a.high, a.min_count) for a in (before, after)]
    if scales[0] != scales[1]:
        said = [
            f"{name} [{low:g}, {high:g}] min_count {count}" for name, low, high, count in scales
        ]
        sentences.append(
            f"The scales differ ({said[0]}; {said[1]}): means can be compared, weights cannot."
        )
    if share_responses:
        sentences.append(
            "Both were estimated from the same contributions and are not independent: the errors "
            "of the differences are overstated, so that fewer categories are marked than moved."
        )
    return tuple(sentences)

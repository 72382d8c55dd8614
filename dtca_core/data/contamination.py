"""Which training problems are evaluation problems: word for word, but for looks, or reworded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from dtca_core.data.near_duplicates import near_duplicates
from dtca_core.data.normalisation import problem_key

MatchKind = Literal["exact", "normalised", "near"]
"""How two problems are the same, from the surest on: as they stand, after `normalise_problem`,
or by `near_duplicates`."""

MATCH_KINDS: tuple[MatchKind, ...] = get_args(MatchKind)


@dataclass(frozen=True, kw_only=True)
class Match:
    """A training problem that is an evaluation problem."""

    train: int
    """Index of the training problem."""
    evaluation: int
    """Index of the first evaluation problem that it is."""
    kind: MatchKind
    """How the two are the same; the surest kind that holds."""


def contaminated(train: Sequence[str], evaluation: Sequence[str]) -> list[Match]:
    """Return each training problem that is an evaluation problem, in the order of training.

    Each is compared with every evaluation problem through an index, in about linear time.
    """
    as_it_stands = _first(evaluation)
    normalised = _first([problem_key(text) for text in evaluation])
    reworded = dict(near_duplicates(train, evaluation))
    matches: list[Match] = []
    for index, text in enumerate(train):
        found: dict[MatchKind, int | None] = {
            "exact": as_it_stands.get(text),
            "normalised": normalised.get(problem_key(text)),
            "near": reworded.get(index),
        }
        for kind, other in found.items():
            if other is not None:
                matches.append(Match(train=index, evaluation=other, kind=kind))
                break
    return matches


def _first(texts: Sequence[str]) -> dict[str, int]:
    """Return where each text comes first."""
    first: dict[str, int] = {}
    for index, text in enumerate(texts):
        first.setdefault(text, index)
    return first

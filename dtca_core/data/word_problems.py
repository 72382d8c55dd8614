"""Word problems in natural language, with the answers that the embedded model learns from.

Six kinds of one and two steps, over varied names, nouns, verbs and numbers, so that parts of
speech mean something. An answer is either worked step by step, and right, or a hasty guess, and
mostly wrong. Two-step kinds are mostly answered hastily: like a real model, the embedded one has
an ability that is not yet its habit, and that reinforcement learning can bring out.
"""

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dtca_core.data.problems import Problem, problem_id
from dtca_core.errors import DataError

Split = Literal["train", "validation", "test"]

_NAMES = {"he": ("Tom", "Ben", "Sam", "Leo", "Max", "Paul"),
          "she": ("Mia", "Anna", "Lucy", "Emma", "Sara", "Kate")}  # fmt: skip
_THINGS = ("apples", "books", "coins", "pens", "cards", "shells", "stamps", "eggs", "cups", "toys")
_ADJECTIVES = ("red", "small", "old", "new", "blue", "big")
_GAINS = ("buys", "finds", "gets", "wins", "picks")
_LOSSES = ("loses", "sells", "breaks", "uses", "drops")
_CONTAINERS = ("boxes", "bags", "baskets", "jars", "drawers")


@dataclass(frozen=True, kw_only=True)
class WordProblem:
    """A generated problem."""

    kind: str
    """Which of the kinds it is."""
    question: str
    """The problem in words."""
    working: str
    """The steps in words and numbers, without the final sentence."""
    answer: int
    """The right answer, 1 to 99."""
    slip: int
    """What a hasty reader takes for the answer: a step is left out."""

    @property
    def worked_answer(self) -> str:
        """The response that works step by step; it is right."""
        return f"{self.working} The answer is \\boxed{{{self.answer}}}."

    def hasty_answer(self, rng: random.Random) -> str:
        """Return a response without working; it is right one time in ten."""
        guess = self.answer if rng.random() < 0.1 else self.slip
        return f"I guess it is \\boxed{{{guess}}}."


@dataclass(frozen=True)
class _Scene:
    """The words of one problem."""

    name: str
    he: str
    thing: str
    adjective: str
    gain: str
    loss: str
    container: str


def _gain(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(2, 20), rng.randint(2, 9)
    return WordProblem(
        kind="gain",
        question=f"{s.name} has {a} {s.adjective} {s.thing}. {s.he.capitalize()} "
        f"{s.gain} {b} more. "
        f"How many {s.thing} does {s.he} have now?",
        working=f"{s.name} {s.gain} more, so {s.he} has {a}+{b}={a + b} {s.thing}.",
        answer=a + b,
        slip=a,
    )


def _loss(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(8, 25), rng.randint(2, 6)
    return WordProblem(
        kind="loss",
        question=f"{s.name} has {a} {s.adjective} {s.thing} and {s.loss} {b} of them. "
        f"How many {s.thing} are left?",
        working=f"{s.name} {s.loss} some, so {a}-{b}={a - b} {s.thing} are left.",
        answer=a - b,
        slip=b,
    )


def _groups(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    return WordProblem(
        kind="groups",
        question=f"There are {b} {s.thing} in each of the {a} {s.adjective} {s.container} of "
        f"{s.name}. How many {s.thing} are there?",
        working=f"The {s.adjective} {s.container} hold {a}*{b}={a * b} {s.thing}.",
        answer=a * b,
        slip=a + b,
    )


def _gain_and_loss(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(6, 18), rng.randint(2, 6)
    c = rng.randint(2, 6)
    return WordProblem(
        kind="gain-and-loss",
        question=f"{s.name} has {a} {s.thing} and {s.gain} {b} {s.adjective} ones. Then {s.he} "
        f"{s.loss} {c}. How many {s.thing} does {s.he} have in the end?",
        working=f"First {s.name} has {a}+{b}={a + b} {s.thing}. Then {s.he} {s.loss} some and has "
        f"{a + b}-{c}={a + b - c}.",
        answer=a + b - c,
        slip=a + b,
    )


def _groups_and_loss(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(2, 5), rng.randint(4, 6)
    c = rng.randint(2, 6)
    return WordProblem(
        kind="groups-and-loss",
        question=f"{s.name} fills {a} {s.container} with {b} {s.adjective} {s.thing} each. "
        f"Later {s.he} {s.loss} {c}. How many {s.thing} remain?",
        working=f"The {s.container} hold {a}*{b}={a * b} {s.thing}. After {s.he} {s.loss} some, "
        f"{a * b}-{c}={a * b - c} remain.",
        answer=a * b - c,
        slip=a * b,
    )


def _together(s: _Scene, rng: random.Random) -> WordProblem:
    a, b = rng.randint(2, 12), rng.randint(2, 6)
    other = rng.choice([name for name in _NAMES["he"] + _NAMES["she"] if name != s.name])
    return WordProblem(
        kind="together",
        question=f"{s.name} has {a} {s.adjective} {s.thing}. {other} has {b} more than {s.name}. "
        f"How many {s.thing} do they have together?",
        working=f"{other} has {a}+{b}={a + b} {s.thing}. Together they have "
        f"{a + b}+{a}={a + b + a}.",
        answer=a + b + a,
        slip=a + b,
    )


_KINDS: Mapping[str, Callable[[_Scene, random.Random], WordProblem]] = {
    "gain": _gain,
    "loss": _loss,
    "groups": _groups,
    "gain-and-loss": _gain_and_loss,
    "groups-and-loss": _groups_and_loss,
    "together": _together,
}

HASTE: Mapping[str, float] = {
    "gain": 0.25,
    "loss": 0.25,
    "groups": 0.25,
    "gain-and-loss": 0.6,
    "groups-and-loss": 0.6,
    "together": 0.6,
}
"""Share of the answers in the corpus that are hasty, by kind."""


def word_problems(split: Split, seed: int) -> Iterator[WordProblem]:
    """Yield problems of one split without end; the splits have no problem in common.

    The split of a problem is decided by the digest of its question, whatever the seed:
    80 % of all problems are for training, 10 % for validation and 10 % for test.
    """
    rng = random.Random(f"word problems, seed {seed}")
    while True:
        problem = rng.choice(list(_KINDS.values()))(_scene(rng), rng)
        if split_of(problem.question) == split:
            yield problem


def generated_problems(split: Split, size: int, seed: int) -> list[Problem]:
    """Return the first distinct problems of a split of the generator."""
    found: dict[str, Problem] = {}
    # A small split may run dry of new problems; give up when ten in a row of its size are old.
    for generated in itertools.islice(word_problems(split, seed), 10 * size + 1000):
        problem = Problem(
            problem_id=problem_id(generated.question),
            question=generated.question,
            answer=str(generated.answer),
            kind=generated.kind,
        )
        found.setdefault(problem.problem_id, problem)
        if len(found) == size:
            return list(found.values())
    raise DataError(
        f"the generator has {len(found)} distinct {split} problems, {size} were asked for; "
        f"lower data.num_{split}."
    )


def split_of(question: str) -> Split:
    """Return the split that a question belongs to."""
    first = hashlib.sha256(question.encode()).digest()[0]
    return "train" if first < 205 else "validation" if first < 230 else "test"


def corpus(seed: int) -> Iterator[tuple[str, str]]:
    """Yield training questions with an answer, worked or hasty, without end."""
    rng = random.Random(f"corpus, seed {seed}")
    for problem in word_problems("train", seed):
        is_hasty = rng.random() < HASTE[problem.kind]
        yield problem.question, problem.hasty_answer(rng) if is_hasty else problem.worked_answer


def _scene(rng: random.Random) -> _Scene:
    he = rng.choice(("he", "she"))
    words = (_THINGS, _ADJECTIVES, _GAINS, _LOSSES, _CONTAINERS)
    return _Scene(rng.choice(_NAMES[he]), he, *(rng.choice(choices) for choices in words))

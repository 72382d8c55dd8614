r"""Is a response right? Its answer is found as the protocol says, then judged.

Rational numbers, lists of them and words are judged here, exactly, while they are short; everything
else by algebra in worker processes with a limit on time and memory. What they could not decide
counts as wrong and is counted apart. A bug in the judge is a crash, never a silent zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtca_core.errors import DataError
from dtca_core.evaluation import d1
from dtca_core.evaluation.equivalence import ExactCalculator, NeedsAlgebraError, agree
from dtca_core.evaluation.extraction import boxed_answer, last_boxed, stated_answer
from dtca_core.evaluation.judges import Judges, shared_judges
from dtca_core.evaluation.latex import is_balanced
from dtca_core.evaluation.protocols import Task, find_setup, task_of

MAX_EXACT = 200
"""Characters; a longer answer is judged by a worker, whatever its form."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The verdict on one response."""

    correct: bool
    """Whether the answer agrees with the reference."""
    extracted: str | None
    """The answer as the response states it; None where there is none."""
    reason: str
    """Why, in a few words."""
    undecided: bool = False
    """Whether the limits on time and memory were reached before a verdict; then not correct."""
    boxed: bool = False
    r"""Whether the answer stands in a `\boxed`."""


def score_answers(
    outputs: list[str],
    references: list[str],
    *,
    protocol: str = "drift",
    task: Task | None = None,
) -> list[Score]:
    r"""Return the verdict on each response, read as the protocol says.

    Whether a right answer has to stand in a `\boxed` is not asked here; see `demand_box`.

    Args:
        outputs: responses, without their prompts.
        references: right answers, in the same order.
        protocol: a name in `PROTOCOLS`.
        task: what answers look like; None: as all these references together say.
    """
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} outputs and {len(references)} references were given; each output "
            "needs the one reference of its problem, in the same order."
        )
    task = task or task_of(references)
    if find_setup(protocol, task).reading == "d1":
        return [_d1_score(*pair, task) for pair in zip(outputs, references, strict=True)]
    answers = [stated_answer(output) for output in outputs]
    expected = [reference_answer(reference) for reference in references]
    verdicts = judge(answers, expected, shared_judges())
    return [
        _score(output, answer, reference, verdict)
        for output, answer, reference, verdict in zip(
            outputs, answers, expected, verdicts, strict=True
        )
    ]


def demand_box(scores: Sequence[Score]) -> list[Score]:
    r"""Return scores in which a right answer outside of a `\boxed` does not count."""
    return [
        replace(score, correct=False, reason="equal, but not in a \\boxed{}")
        if score.correct and not score.boxed
        else score
        for score in scores
    ]


def _d1_score(output: str, reference: str, task: Task) -> Score:
    """Return the verdict of d1's own reading and comparison."""
    if task == "gsm8k":
        answer, same = d1.number_answer(output), d1.same_number
    else:
        answer, same = d1.math_answer(output), d1.same_text
    verdict = answer is not None and same(answer, reference)
    return _score(output, answer, reference, verdict)


def reference_answer(reference: str) -> str:
    r"""Return the answer that a reference states: its last box if it has one, else all of it."""
    return last_boxed(reference) or reference


def judge(
    answers: Sequence[str | None], references: Sequence[str], judges: Judges
) -> list[bool | str]:
    """Return whether each answer agrees with its reference, or why that is undecided."""
    verdicts = [
        False if answer is None or not is_balanced(reference) else _exact(answer, reference)
        for answer, reference in zip(answers, references, strict=True)
    ]
    hard = list(
        dict.fromkeys(
            (answers[i], references[i]) for i, verdict in enumerate(verdicts) if verdict is None
        )
    )
    replies = judges.ask([{"answer": str(answer), "reference": ref} for answer, ref in hard])
    decided = {
        pair: reply["agree"] if "agree" in reply else str(reply["undecided"])
        for pair, reply in zip(hard, replies, strict=True)
    }
    return [
        decided[answers[i], references[i]] if verdict is None else verdict
        for i, verdict in enumerate(verdicts)
    ]


def _exact(answer: str, reference: str) -> bool | None:
    """Return the verdict of exact arithmetic, None where a worker has to tell.

    Here nothing bounds the time, so that a long answer is not even read.
    """
    if len(answer) > MAX_EXACT:
        return None
    try:
        return agree(answer, reference, ExactCalculator())
    except NeedsAlgebraError:
        return None


def _score(output: str, answer: str | None, reference: str, verdict: bool | str) -> Score:
    if answer is None:
        return Score(correct=False, extracted=None, reason="no answer stated")
    boxed = boxed_answer(output) is not None
    if isinstance(verdict, str):
        reason = f"undecided, {verdict}: is {_short(answer)} equal to {_short(reference)}?"
        return Score(correct=False, extracted=answer, reason=reason, undecided=True, boxed=boxed)
    reason = "equal" if verdict else f"{_short(answer)} is not {_short(reference)}"
    return Score(correct=verdict, extracted=answer, reason=reason, boxed=boxed)


def _short(text: str, limit: int = 60) -> str:
    text = " ".join(text[: 2 * limit].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def unreadable_references(references: Sequence[str]) -> list[int]:
    """Return which references no answer may ever be paid for, because they cannot be read.

    Each is judged against itself, and each expression in it has to parse. One whose parsing
    reaches the limits can still be answered by its own text, and is not listed.
    """
    texts = [reference_answer(reference) for reference in references]
    verdicts = judge(texts, texts, shared_judges())
    replies = shared_judges().ask([{"reference": text} for text in texts])
    return [
        index
        for index, (verdict, reply) in enumerate(zip(verdicts, replies, strict=True))
        if verdict is False or reply.get("unreadable")
    ]

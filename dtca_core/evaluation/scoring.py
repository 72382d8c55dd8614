r"""Is a response right? Its answer is found as the protocol says, then judged.

Rational numbers, lists of them and words are judged here, exactly; everything else by algebra in
worker processes with a limit on time and memory. What they could not decide counts as wrong
and is counted apart. A bug in the judge is a crash, never a silent zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dtca_core.errors import DataError
from dtca_core.evaluation.equivalence import ExactCalculator, NeedsAlgebraError, agree
from dtca_core.evaluation.extraction import EXTRACTIONS, last_boxed
from dtca_core.evaluation.judges import Judges, shared_judges
from dtca_core.evaluation.latex import is_balanced
from dtca_core.evaluation.protocols import find_protocol


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


def score_answers(
    outputs: list[str], references: list[str], *, protocol: str = "drift"
) -> list[Score]:
    """Return the verdict on each response, read as the protocol says.

    Args:
        outputs: responses, without their prompts.
        references: right answers, in the same order.
        protocol: a name in `PROTOCOLS`.
    """
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} outputs and {len(references)} references were given; each output "
            "needs the one reference of its problem, in the same order."
        )
    extract = EXTRACTIONS[find_protocol(protocol).extraction]
    absent = "no complete \\boxed{}" if protocol == "drift" else "no answer stated"
    answers = [extract(output) for output in outputs]
    expected = [reference_answer(reference) for reference in references]
    verdicts = judge(answers, expected, shared_judges())
    return [
        _score(answer, reference, verdict, absent)
        for answer, reference, verdict in zip(answers, expected, verdicts, strict=True)
    ]


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
    """Return the verdict of exact arithmetic, None where it takes algebra."""
    try:
        return agree(answer, reference, ExactCalculator())
    except NeedsAlgebraError:
        return None


def _score(answer: str | None, reference: str, verdict: bool | str, absent: str) -> Score:
    if answer is None:
        return Score(correct=False, extracted=None, reason=absent)
    if isinstance(verdict, str):
        reason = f"undecided, {verdict}: is {_short(answer)} equal to {_short(reference)}?"
        return Score(correct=False, extracted=answer, reason=reason, undecided=True)
    if verdict:
        return Score(correct=True, extracted=answer, reason="equal")
    reason = f"{_short(answer)} is not {_short(reference)}"
    return Score(correct=False, extracted=answer, reason=reason)


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

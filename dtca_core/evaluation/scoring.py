r"""Is a response right? Exact, in this process, and free of evaluation.

Two rational numbers are compared exactly, everything else as normalised text. Algebra (roots,
powers, expanded forms, intervals against inequalities) is left out; `answers_agree` is where a
judge that knows it comes in. 50% is one half and never 50; a rounded decimal is wrong.
"""

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from dtca_core.errors import DataError
from dtca_core.evaluation.extraction import EXTRACTIONS, last_boxed
from dtca_core.evaluation.latex import normal_text, quantity, tidy
from dtca_core.evaluation.protocols import find_protocol

_NAME = re.compile(r"\s*([a-zA-Z](?:\([a-z]\))?)\s*=(?!=)")
_SEPARATOR = re.compile(r",? ?\\text ?\{,? ?(?:and|or) ?\} ?|,? (?:and|or) |,")


@dataclass(frozen=True, kw_only=True)
class Score:
    """The verdict on one response."""

    correct: bool
    """Whether the answer agrees with the reference."""
    extracted: str | None
    """The answer as the response states it; None where there is none."""
    reason: str
    """Why, in a few words."""


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
    absent = "no complete \\boxed{}" if extract is EXTRACTIONS["boxed"] else "no answer stated"
    return [
        _score(extract(output), reference, absent)
        for output, reference in zip(outputs, references, strict=True)
    ]


def _score(answer: str | None, reference: str, absent: str) -> Score:
    if answer is None:
        return Score(correct=False, extracted=None, reason=absent)
    expected = last_boxed(reference) or reference
    if answers_agree(answer, expected):
        return Score(correct=True, extracted=answer, reason="equal")
    reason = f"{_short(answer)} is not {_short(expected)}"
    return Score(correct=False, extracted=answer, reason=reason)


def _short(text: str, limit: int = 60) -> str:
    text = " ".join(text[: 2 * limit].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def answers_agree(answer: str, reference: str) -> bool:
    """Return whether two answers are the same, as far as that is certain; an empty one never is.

    A unit on one side only is ignored; two different ones disagree. Lists and sets are
    unordered and complete; pairs, tuples and intervals are ordered. "x = 5" agrees with "5".
    """
    answer, reference = tidy(answer), tidy(reference)
    found, wanted = quantity(answer), quantity(reference)
    if found is not None and wanted is not None:
        units = {found.unit, wanted.unit} - {""}
        return found.value == wanted.value and len(units) < 2
    if _is_set(answer) and _is_set(reference):
        answer, reference = answer[2:-2], reference[2:-2]
    if ("=" in answer) != ("=" in reference):
        answer, reference = _without_name(answer), _without_name(reference)
    keys = _keys(answer)
    return "" not in keys and keys == _keys(reference)


def _is_set(tidied: str) -> bool:
    return tidied.startswith("\\{") and tidied.endswith("\\}")


def _without_name(tidied: str) -> str:
    """Return "a = 1, a = 2" as "1, 2"; two different names stay, for they tell values apart."""
    parts = _parts(tidied)
    names = [match[1] if (match := _NAME.match(part)) else None for part in parts]
    if len(set(names)) > 1:
        return tidied
    return ",".join(_NAME.sub("", part, count=1) for part in parts)


def _parts(tidied: str) -> list[str]:
    """Return the members of a list, split at the commas that no bracket holds."""
    parts: list[str] = []
    depth = start = 0
    for match in re.finditer(rf"[(\[{{]|[)\]}}]|{_SEPARATOR.pattern}", tidied):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
        elif depth == 0:
            parts.append(tidied[start : match.start()])
            start = match.end()
    return [*parts, tidied[start:]]


def _keys(tidied: str) -> Counter[Fraction | str]:
    """Return each member of a list as an exact number or as normal text, with its count."""
    values: list[Fraction | str] = []
    for part in _parts(tidied):
        number = quantity(part.strip())
        values.append(normal_text(part) if number is None or number.unit else number.value)
    return Counter(values)

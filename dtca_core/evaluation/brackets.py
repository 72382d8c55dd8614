"""Splitting an answer at the commas and operators that no bracket holds."""

import re

from dtca_core.evaluation.latex import STYLE

OPERATOR = r"\\(?:le|ge|ne|in|approx|equiv|sim|to)(?![a-zA-Z])|:=|=+|[<>]"
"""What joins the sides of an equation or inequality."""

_OPENING = r"\\?[(\[{]"
_CLOSING = r"\\?[)\]}]"
_AND = r"(?:and|or)"
_SEPARATOR = (
    rf"[,;]?\s*{STYLE}\s*\{{\s*,?\s*{_AND}\s*\}}\s*"
    rf"|(?:[,;]\s*)?(?<![a-zA-Z]){_AND}(?![a-zA-Z])\s*"
    r"|[,;]\s*"
)
_LIST_TOKEN = re.compile(rf"(?P<open>{_OPENING})|(?P<close>{_CLOSING})|(?P<split>{_SEPARATOR})|\\.")
_TUPLE_TOKEN = re.compile(rf"(?P<open>{_OPENING})|(?P<close>{_CLOSING})|(?P<split>[,;])")
_SIDE_TOKEN = re.compile(rf"(?P<open>{_OPENING})|(?P<close>{_CLOSING})|(?P<split>{OPERATOR})")
_THOUSANDS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")


def split_list(text: str) -> list[str]:
    """Return the members of a list, split at commas, semicolons, `and` and `or`.

    A comma between groups of three digits is no separator.
    """
    held = {index for match in _THOUSANDS.finditer(text) for index in range(*match.span())}
    return _split(text, _LIST_TOKEN, held)[0]


def split_tuple(text: str) -> list[str]:
    """Return the members of a tuple; here every comma and semicolon separates."""
    return _split(text, _TUPLE_TOKEN, set())[0]


def split_sides(text: str) -> tuple[list[str], list[str]]:
    """Return the sides of an equation or inequality, and the operators between them."""
    sides, operators = _split(text, _SIDE_TOKEN, set())
    return sides, ["=" if operator in (":=", "==") else operator for operator in operators]


def closing_bracket(text: str) -> int:
    """Return where the bracket at the start of a text closes, -1 where it does not.

    Brackets need not be of one kind, for intervals are half open.
    """
    depth = 0
    for match in re.finditer(rf"(?P<open>{_OPENING})|{_CLOSING}", text):
        depth += 1 if match["open"] else -1
        if depth == 0:
            return match.start()
    return -1


def _split(text: str, token: re.Pattern[str], held: set[int]) -> tuple[list[str], list[str]]:
    """Return the parts between separators outside of brackets, and these separators."""
    parts, separators, depth, start = list[str](), list[str](), 0, 0
    for match in token.finditer(text):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        elif match["split"] and depth == 0 and match.start() not in held:
            parts.append(text[start : match.start()].strip())
            separators.append(match[0])
            start = match.end()
    return [*parts, text[start:].strip()], separators

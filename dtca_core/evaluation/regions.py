r"""Sets of real numbers: unions of intervals, inequalities in one variable, `\mathbb{R}`."""

import re
from collections.abc import Callable, Sequence

from dtca_core.evaluation.brackets import split_sides
from dtca_core.evaluation.forms import Answer, Piece, Quantity, Region, Span, Values
from dtca_core.evaluation.latex import normal_text, without_style

Read = Callable[[str], Answer]
"""Reads a part of an answer."""

_WHOLE_LINE = Piece(low="-\\infty", high="\\infty", low_open=True, high_open=True)
_REALS = re.compile(r"\\mathbb\s*\{?R\}?|(?:all )?real(?: number)?s")
_UNION = re.compile(r"\\cup(?![a-zA-Z])")
_REALS_WITHOUT = re.compile(r"\\mathbb\s*\{?R\}?\s*(?:\\setminus|\\backslash|-)\s*(\\\{.*\\\})")
_SYMBOL = re.compile(r"(?:[a-zA-Z]|\\(?!infty|pi)[a-z]+)(?:_(?:\w|\{\w+\}))?")


def read_region(text: str, read: Read) -> Answer | None:
    r"""Return `\mathbb{R}`, the empty set or a union of intervals, None where it is none."""
    if text == "\\emptyset":
        return Values(items=())
    if _REALS.fullmatch(without_style(text).strip()):
        return Region(pieces=(_WHOLE_LINE,))
    if removed := _REALS_WITHOUT.fullmatch(text):
        return line_without(read(removed[1]))
    if not _UNION.search(text):
        return None
    regions = [_part_of_line(read(part)) for part in _UNION.split(text)]
    return joined([region for region in regions if region], len(regions))


def _part_of_line(answer: Answer) -> Region | None:
    """Return a region, or the numbers of a set as intervals of one point each."""
    if not isinstance(answer, Values):
        return as_region(answer)
    points = [item.text for item in answer.items if isinstance(item, Quantity)]
    if len(points) < len(answer.items):
        return None
    return Region(
        pieces=tuple(Piece(low=p, high=p, low_open=False, high_open=False) for p in points)
    )


def joined(regions: Sequence[Region], expected: int) -> Region | None:
    """Return the union of regions, None where some are lacking or their variables differ."""
    variables = {region.variable for region in regions}
    if len(regions) != expected or len(variables) != 1:
        return None
    pieces = tuple(piece for region in regions for piece in region.pieces)
    return Region(pieces=pieces, variable=variables.pop())


def overlap(regions: Sequence[Region]) -> Region | None:
    """Return what two half-lines in opposite directions share; None for anything else."""
    union = joined(regions, 2)
    if union is None or len(union.pieces) != 2:
        return None
    below = [piece for piece in union.pieces if piece.low == "-\\infty"]
    above = [piece for piece in union.pieces if piece.high == "\\infty"]
    if len(below) != 1 or len(above) != 1 or below == above:
        return None
    (upper,), (lower,) = below, above
    piece = Piece(
        low=lower.low, high=upper.high, low_open=lower.low_open, high_open=upper.high_open
    )
    return Region(pieces=(piece,), variable=union.variable)


def line_without(removed: Answer, variable: str = "") -> Region | None:
    """Return the real line without one number."""
    items = removed.items if isinstance(removed, Values) else (removed,)
    if len(items) != 1 or not isinstance(items[0], Quantity):
        return None
    point = items[0].text
    below = Piece(low="-\\infty", high=point, low_open=True, high_open=True)
    above = Piece(low=point, high="\\infty", low_open=True, high_open=True)
    return Region(pieces=(below, above), variable=variable)


def as_region(answer: Answer) -> Region | None:
    """Return a region, or a pair in brackets as the interval that it also is; else None."""
    if isinstance(answer, Region):
        return answer
    if isinstance(answer, Span) and len(answer.items) == 2:
        low, high = answer.texts
        low_open, high_open = answer.opening == "(", answer.closing == ")"
        if ("\\infty" in low and not low_open) or ("\\infty" in high and not high_open):
            return None  # infinity is no real number
        piece = Piece(low=low, high=high, low_open=low_open, high_open=high_open)
        return Region(pieces=(piece,))
    return None


def member(name: str, container: Answer) -> Answer:
    r"""Return what `x \in ...` says of x: a region with its variable, or a list of values."""
    region = as_region(container)
    return (region and Region(pieces=region.pieces, variable=normal_text(name))) or container


def is_symbol(text: str) -> bool:
    """Return whether a text is one variable, with or without an index."""
    return _SYMBOL.fullmatch(text.strip()) is not None


def read_inequality(text: str) -> Region | None:
    """Return `x < b`, `a > x` or `a < x <= b` as a region, x one symbol; else None."""
    sides, operators = split_sides(text)
    if not 2 <= len(sides) <= 3 or not {"<", ">", "\\le", "\\ge"}.issuperset(operators):
        return None
    falls = [operator in (">", "\\ge") for operator in operators]
    if len(set(falls)) != 1:
        return None
    is_open = [operator in ("<", ">") for operator in operators]
    if falls[0]:
        sides, is_open = sides[::-1], is_open[::-1]
    symbols = [is_symbol(side) for side in sides]
    if symbols == [True, False]:
        sides, is_open = ["-\\infty", *sides], [True, *is_open]
    elif symbols == [False, True]:
        sides, is_open = [*sides, "\\infty"], [*is_open, True]
    elif len(sides) != 3 or not symbols[1]:
        return None
    low, variable, high = sides
    piece = Piece(low=low, high=high, low_open=is_open[0], high_open=is_open[1])
    return Region(pieces=(piece,), variable=normal_text(variable))

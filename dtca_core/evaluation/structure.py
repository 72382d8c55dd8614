r"""Reading what an answer is: a number with its unit, a list, a tuple or interval, words.

Reading is by form alone; nothing is evaluated, and nothing refused: what has no other form is
words, which are compared as text.
"""

import re
from functools import partial

from dtca_core.evaluation.brackets import closing_bracket, split_list, split_sides, split_tuple
from dtca_core.evaluation.forms import (
    Answer,
    Choice,
    Compound,
    Marked,
    Matrix,
    Quantity,
    Region,
    Relation,
    Span,
    Values,
    Words,
)
from dtca_core.evaluation.latex import normal_text, tidy, without_outer_braces, without_style
from dtca_core.evaluation.names import is_name
from dtca_core.evaluation.rational import rational
from dtca_core.evaluation.regions import (
    Read,
    is_symbol,
    joined,
    line_without,
    member,
    overlap,
    read_inequality,
    read_region,
)
from dtca_core.evaluation.units import split_unit
from dtca_core.evaluation.words import is_words

MAX_LENGTH = 2000
"""A longer answer is compared as text only."""
MAX_DEPTH = 20
"""So is what is nested deeper."""

_MATRIX = re.compile(
    r"[(\[]?\s*\\begin\{(?P<kind>[pbB]?matrix|smallmatrix|array)\}(?:\{[lcr|]*\})?(?P<body>.*)"
    r"\\end\{(?P=kind)\}\s*[)\]]?"
)
_SET_BUILDER = re.compile(r"[a-zA-Z]\s*(?:\\in\s*\\mathbb\{R\}\s*)?(?:\\mid|:|\|)\s*(.*)")
_JOIN = re.compile(r"(?<![a-zA-Z])(and|or)(?![a-zA-Z])")
_CHOICE = re.compile(
    r"(?:\(\s*(?P<fenced>[A-Za-z])\s*\)[.:]?|(?P<marked>[A-Z])[).:])(?:\s+(?P<value>.*))?"
    r"|(?:[Oo]ption|[Cc]hoice)\s+(?P<named>[A-Z])"
)
_BASED = re.compile(
    r"(-?(?=[A-Z]*[0-9])[0-9A-Z]+(?:\.[0-9A-Z]+)?)\s*_\s*\{?\s*(?:base\s*)?(\w+)\s*\}?"
)
_BASE_NAMES = "two three four five six seven eight nine ten eleven twelve"
_BASES = {str(base): str(base) for base in range(2, 37)} | {
    name: str(base) for base, name in enumerate(_BASE_NAMES.split(), start=2)
}
_COLON = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:\s*:\s*[0-9]+(?:\.[0-9]+)?)+)\s*([a-zA-Z. ]*)")
_TWO_SIGNS = re.compile(r"\\(?:pm|mp)(?![a-zA-Z])")
_COMPOUND_PART = re.compile(r"([0-9][0-9.,/]*)\s*([a-zA-Z]+)\.?(?:\s+and\s+|,\s*|\s+|$)")


def read_answer(text: str) -> Answer:
    """Return what an answer is, from its text as it stands."""
    if len(text) > 4 * MAX_LENGTH:
        return Words(text=text.strip())
    return _read(tidy(text), MAX_DEPTH)


def _read(text: str, depth: int) -> Answer:
    text = without_outer_braces(text.strip()).strip()
    if len(text) > MAX_LENGTH or depth == 0 or "\\ldots" in text:
        return Words(text=normal_text(text))
    read = partial(_read, depth=depth - 1)
    for form in (_matrix, _list, _group, read_region, _relation, _choice, _marked, _two_signs):
        answer = form(text, read)
        if answer is not None:
            return answer
    return _compound(text) or _quantity(text)


def _matrix(text: str, read: Read) -> Answer | None:
    match = _MATRIX.fullmatch(text)
    if match is None or "\\begin" in match["body"]:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", match["body"]) if row.strip()]
    return Matrix(rows=tuple(tuple(read(tidy(cell)) for cell in row.split("&")) for row in rows))


def _list(text: str, read: Read) -> Answer | None:
    """Read a list whose members no bracket holds."""
    parts = split_list(text)
    if len(parts) == 1:
        return None
    if not all(parts):
        return Words(text=normal_text(text))
    items = [read(part) for part in parts]
    regions = [item for item in items if isinstance(item, Region) and item.variable]
    if len(regions) == len(items) and (join := _JOIN.search(text)):
        region = joined(regions, len(items)) if join[1] == "or" else overlap(regions)
        if region is not None:
            return region
    name, is_equation, first = parts[0].rpartition("=")
    if is_equation and is_name(name.split("=")[0]) and "=" not in "".join(parts[1:]):
        # "x = 1 or 2" names the variable once.
        items[0] = read(first)
    return _values(items)


def _values(items: list[Answer]) -> Values:
    """Return a list in which a list among its members, such as a plus-minus, is taken apart."""
    return Values(
        items=tuple(
            inner
            for item in items
            for inner in (item.items if isinstance(item, Values) else (item,))
        )
    )


def _group(text: str, read: Read) -> Answer | None:
    """Read what one pair of brackets encloses: a set, a tuple, an interval."""
    if text.startswith("\\{") and closing_bracket(text) == len(text) - 2:
        return _set(text[2:-2].strip(), read)
    text = re.sub(r"\\langle(?![a-zA-Z])", "(", re.sub(r"\\rangle(?![a-zA-Z])", ")", text))
    if not text.startswith(("(", "[")) or closing_bracket(text) != len(text) - 1:
        return None
    parts = split_tuple(text[1:-1])
    if len(parts) < 2 or not all(parts):
        return None
    return Span(
        opening=text[0],
        items=tuple(read(part) for part in parts),
        closing=text[-1],
        texts=tuple(parts),
    )


def _set(inside: str, read: Read) -> Answer:
    if condition := _SET_BUILDER.fullmatch(inside):
        return read(condition[1])
    return _values([read(part) for part in split_list(inside)])


def _relation(text: str, read: Read) -> Answer | None:
    """Read an equation, an inequality or a membership."""
    sides, operators = split_sides(text)
    if not operators:
        return None
    if not all(sides):
        return Words(text=normal_text(text))
    if operators == ["\\in"] and is_symbol(sides[0]):
        return member(sides[0], read(sides[1]))
    if operators == ["\\ne"] and is_symbol(sides[0]):
        return line_without(read(sides[1]), normal_text(sides[0]))
    return read_inequality(text) or Relation(sides=tuple(sides), operators=tuple(operators))


def _choice(text: str, read: Read) -> Answer | None:
    """Read (C), C), C. 12 and their like; a bare letter may as well be a variable."""
    match = _CHOICE.fullmatch(" ".join(without_style(text).split()))
    if match is None:
        return None
    letter = match["fenced"] or match["marked"] or match["named"]
    is_variable = letter.islower() and not match["value"] and text == f"({letter})"
    return None if is_variable else Choice(letter=letter.upper())


def _marked(text: str, read: Read) -> Answer | None:
    """Read a number in a stated base, a ratio, a clock time."""
    plain = " ".join(without_style(text).split())
    based = _BASED.fullmatch(plain)
    if based and (base := _BASES.get(based[2].casefold())):
        return Marked(mark=base, digits=(based[1].lstrip("0"),))
    if colon := _COLON.fullmatch(plain):
        digits = tuple(part.strip().lstrip("0") for part in colon[1].split(":"))
        return Marked(mark=":", digits=digits, unit=re.sub(r"[\s.]", "", colon[2]).casefold())
    return None


def _two_signs(text: str, read: Read) -> Answer | None:
    r"""Read `a \pm b` as its two values; of several signs in one it is not known which go with."""
    parts = _TWO_SIGNS.split(text)
    if len(parts) != 2:
        return None
    head, tail = parts
    return Values(items=(read(f"{head}+{tail}"), read(f"{head}-{tail}")))


def _compound(text: str) -> Compound | None:
    """Read `5 hours 30 minutes`: two or more numbers, each with its unit."""
    plain = " ".join(without_style(text).split())
    parts = _COMPOUND_PART.findall(plain)
    if len(parts) < 2 or _COMPOUND_PART.sub("", plain):
        return None
    quantities = [_quantity(f"{number.rstrip(',')} {name}") for number, name in parts]
    known = [part for part in quantities if isinstance(part, Quantity) and part.unit]
    if len(known) < len(quantities) or any(part.value is None for part in known):
        return None
    return Compound(parts=tuple(known))


def _quantity(text: str) -> Quantity | Words:
    """Read one value with or without a unit; words where it is neither."""
    value, unit = split_unit(text)
    number = rational(value)
    if number is None and is_words(value):
        return Words(text=normal_text(text))
    return Quantity(text=value, unit=unit, value=number)


def expressions(answer: Answer) -> list[str]:
    """Return every part of an answer that has to be a mathematical expression to have a value."""
    match answer:
        case Quantity():
            return [answer.text] if answer.value is None else []
        case Values() | Span():
            return [leaf for item in answer.items for leaf in expressions(item)]
        case Matrix():
            return [leaf for row in answer.rows for item in row for leaf in expressions(item)]
        case Region():
            ends = [end for piece in answer.pieces for end in (piece.low, piece.high)]
            return [end for end in ends if rational(end) is None]
        case Relation():
            return [side for side in answer.sides if rational(side) is None]
        case _:
            return []

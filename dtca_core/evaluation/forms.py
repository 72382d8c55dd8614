r"""What an answer can be. `structure` reads these forms; `equivalence` compares them."""

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, kw_only=True)
class Words:
    """Anything that is compared as text: words, dates, sequences with dots."""

    text: str
    """Normal text; empty where nothing was written."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A letter of a multiple-choice question, with or without its value."""

    letter: str
    """Upper case."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One value and its unit."""

    text: str
    """The tidied value, without its unit."""
    unit: str = ""
    """The one name of the unit; empty where none is stated."""
    value: Fraction | None = None
    """The exact value where the text is a rational number; a percentage is not divided by 100."""


@dataclass(frozen=True, kw_only=True)
class Compound:
    """Several quantities that make up one, such as 5 hours 30 minutes."""

    parts: tuple[Quantity, ...]


@dataclass(frozen=True, kw_only=True)
class Marked:
    """Numbers whose mark changes their meaning: a base, or the colons of a ratio or a time."""

    mark: str
    """The base in decimal, or a colon."""
    digits: tuple[str, ...]
    """Digits without leading zeros."""
    unit: str = ""
    """What follows a time, such as pm."""


@dataclass(frozen=True, kw_only=True)
class Values:
    """A list or a set: complete, and without order."""

    items: tuple["Answer", ...]


@dataclass(frozen=True, kw_only=True)
class Span:
    """A pair, a longer tuple or an interval: in order, with its brackets."""

    opening: str
    items: tuple["Answer", ...]
    closing: str
    texts: tuple[str, ...] = field(compare=False)
    """The members as text."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    r"""An interval of real numbers; its ends are tidied text, such as `-\infty`."""

    low: str
    high: str
    low_open: bool
    high_open: bool


@dataclass(frozen=True, kw_only=True)
class Region:
    """A set of real numbers: a union of intervals, or an inequality in one variable."""

    pieces: tuple[Piece, ...]
    variable: str = ""
    """The variable of an inequality or membership; empty where none is named."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """Sides with an operator between each two: an equation, or another inequality."""

    sides: tuple[str, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Rows of a matrix or a vector."""

    rows: tuple[tuple["Answer", ...], ...]


Answer = Words | Choice | Quantity | Compound | Marked | Values | Span | Region | Relation | Matrix

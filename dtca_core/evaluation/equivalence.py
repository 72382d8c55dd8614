"""Are two answers the same? The rules of agreement, over what `structure` reads.

Values are compared by a `Calculator`: exact rational arithmetic here, algebra in a worker. The
rules are symmetric. What the product decided where the sources are silent: a percentage
agrees with its fraction, and with the bare number of percent where that is above 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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
from dtca_core.evaluation.latex import normal_text, tidy
from dtca_core.evaluation.names import is_name
from dtca_core.evaluation.rational import rational
from dtca_core.evaluation.regions import as_region
from dtca_core.evaluation.structure import read_answer
from dtca_core.evaluation.units import DEGREE, PERCENT

MAX_TEXT = 10_000
"""Longer answers are compared character by character."""


class NeedsAlgebraError(Exception):
    """Exact rational arithmetic cannot tell; a worker has to."""


@runtime_checkable
class Calculator(Protocol):
    """Compares what has a value."""

    def same_value(self, one: str, other: str) -> bool:
        """Return whether two tidied expressions are equal, exactly."""
        ...

    def same_region(self, one: Region, other: Region) -> bool:
        """Return whether two sets of real numbers are equal, whatever their variables."""
        ...

    def same_relation(self, one: Relation, other: Relation) -> bool:
        """Return whether two relations are equal up to a nonzero factor."""
        ...


class ExactCalculator:
    """Knows rational numbers only and says so where they are not enough."""

    def same_value(self, one: str, other: str) -> bool:
        """Return whether two rational numbers are equal."""
        x, y = rational(one), rational(other)
        if x is None or y is None:
            if normal_text(one) == normal_text(other):
                return True
            raise NeedsAlgebraError
        return x == y

    def same_region(self, one: Region, other: Region) -> bool:
        """Return whether two intervals with rational ends are equal."""
        if len(one.pieces) != 1 or len(other.pieces) != 1:
            raise NeedsAlgebraError
        p, q = one.pieces[0], other.pieces[0]
        same_ends = [self.same_value(p.low, q.low), self.same_value(p.high, q.high)]
        return all(same_ends) and (p.low_open, p.high_open) == (q.low_open, q.high_open)

    def same_relation(self, one: Relation, other: Relation) -> bool:
        """Leave every relation to algebra."""
        raise NeedsAlgebraError


def agree(answer: str, reference: str, calculator: Calculator) -> bool:
    """Return whether two answers are the same; an empty one never is.

    Raises:
        NeedsAlgebraError: by the exact calculator alone.
    """
    if max(len(answer), len(reference)) > MAX_TEXT:
        return bool(answer.strip()) and answer.strip() == reference.strip()
    same_text = normal_text(tidy(answer))
    if not same_text:
        return False
    if same_text == normal_text(tidy(reference)):
        return True
    one, other = read_answer(answer), read_answer(reference)
    if _Rules(calculator).agree(one, other):
        return True
    # 100,200 is a number, unless the reference is the list 100, 200.
    if isinstance(one, Quantity) and isinstance(other, Values) and ",0" not in one.text:
        items = tuple(read_answer(part) for part in one.text.split(","))
        return len(items) > 1 and _Rules(calculator).agree(Values(items=items), other)
    return False


@dataclass(frozen=True)
class _Rules:
    calculator: Calculator

    def agree(self, one: Answer, other: Answer) -> bool:
        one, other = _in_one_form(one, other)
        return self._same_members(one, other) or self._same_single(one, other)

    def _same_members(self, one: Answer, other: Answer) -> bool:
        """Compare what is made of answers."""
        match one, other:
            case (Values(), Values()):
                # Different names tell values apart: x = 5, y = 3 is not the list 5, 3.
                same_kind = _has_names(one) == _has_names(other)
                return same_kind and self._matching(one.items, other.items)
            case (Span(), Span()):
                brackets = (one.opening, one.closing) == (other.opening, other.closing)
                return brackets and self._in_order(one.items, other.items)
            case (Matrix(), Matrix()):
                return len(one.rows) == len(other.rows) and all(
                    self._in_order(row, partner)
                    for row, partner in zip(one.rows, other.rows, strict=True)
                )
            case (Compound(), Compound()):
                return self._in_order(one.parts, other.parts)
            case _:
                return False

    def _same_single(self, one: Answer, other: Answer) -> bool:
        """Compare what is not."""
        match one, other:
            case (Quantity(), Quantity()):
                return self._same_quantity(one, other)
            case (Region(), Region()):
                named = {one.variable, other.variable} - {""}
                return len(named) < 2 and self.calculator.same_region(one, other)
            case (Relation(), Relation()):
                return self._same_relation(one, other)
            case (Marked(), Marked()):
                units = {one.unit, other.unit} - {""}
                same = (one.mark, one.digits) == (other.mark, other.digits)
                return same and len(units) < 2
            case (Choice() | Words(), Choice() | Words()):
                return one == other != Words(text="")
            case _:
                return False

    def _in_order(self, ones: Sequence[Answer], others: Sequence[Answer]) -> bool:
        return len(ones) == len(others) and all(map(self.agree, ones, others))

    def _matching(self, ones: Sequence[Answer], others: Sequence[Answer]) -> bool:
        """Return whether members pair off. Agreement is transitive, so the first match will do."""
        if len(ones) != len(others):
            return False
        left = list(others)
        for item in ones:
            partner = self._index(left, item)
            if partner is None:
                return False
            del left[partner]
        return True

    def _index(self, others: Sequence[Answer], item: Answer) -> int | None:
        return _first(lambda i: self.agree(item, others[i]), range(len(others)))

    def _same_quantity(self, one: Quantity, other: Quantity) -> bool:
        if one.unit == other.unit:
            return self._same_value(one, other)
        if PERCENT in (one.unit, other.unit):
            percent, plain = (one, other) if one.unit == PERCENT else (other, one)
            return not plain.unit and self._same_share(percent, plain)
        one_says_less = _says_less(one.unit, other.unit) or _says_less(other.unit, one.unit)
        return one_says_less and self._same_value(one, other)

    def _same_value(self, one: Quantity, other: Quantity) -> bool:
        if one.value is not None and other.value is not None:
            return one.value == other.value
        return self.calculator.same_value(one.text, other.text)

    def _same_share(self, percent: Quantity, plain: Quantity) -> bool:
        if percent.value is not None and plain.value is not None:
            above_one = abs(plain.value) > 1 and percent.value == plain.value
            return above_one or percent.value / 100 == plain.value
        return self.calculator.same_value(f"\\frac{{{percent.text}}}{{100}}", plain.text)

    def _same_relation(self, one: Relation, other: Relation) -> bool:
        names = normal_text(one.sides[0]), normal_text(other.sides[0])
        are_named = one.operators == other.operators == ("=",) and is_name(one.sides[0])
        if are_named and names[0] == names[1]:
            return self.agree(read_answer(one.sides[1]), read_answer(other.sides[1]))
        return self.calculator.same_relation(one, other)


def _says_less(unit: str, other: str) -> bool:
    """Return whether a unit leaves open what another says: none at all, or degrees of no scale."""
    return unit in ("", DEGREE) and other.startswith(unit)


def _first(test: Callable[[int], bool], indices: Sequence[int]) -> int | None:
    return next((index for index in indices if test(index)), None)


def _in_one_form(one: Answer, other: Answer) -> tuple[Answer, Answer]:
    """Return two answers in the form in which they can be compared."""
    one, other = _single(one), _single(other)
    one, other = _without_name(one, other), _without_name(other, one)
    if isinstance(one, Region) != isinstance(other, Region):
        one, other = as_region(one) or one, as_region(other) or other
    return _as_choice(one, other), _as_choice(other, one)


def _has_names(values: Values) -> bool:
    return any(isinstance(item, Relation) for item in values.items)


def _single(answer: Answer) -> Answer:
    return answer.items[0] if isinstance(answer, Values) and len(answer.items) == 1 else answer


def _without_name(answer: Answer, partner: Answer) -> Answer:
    """Return "x = 5" as 5 beside an answer without a name, and a list of such alike."""
    if isinstance(answer, Relation) and not isinstance(partner, Relation):
        value = _named_value(answer)
        return answer if value is None else value
    if isinstance(answer, Values) and isinstance(partner, Values):
        relations = [item for item in answer.items if isinstance(item, Relation)]
        if len(relations) != len(answer.items) or any(
            isinstance(item, Relation) for item in partner.items
        ):
            return answer
        values = [_named_value(item) for item in relations]
        # The roots x_1 and x_2 are a list of values; x and y are not.
        names = {normal_text(item.sides[0]).partition("_")[0] for item in relations}
        if len(names) == 1 and None not in values:
            return Values(items=tuple(value for value in values if value is not None))
    return answer


def _named_value(relation: Relation) -> Answer | None:
    """Return what an equation says of a name: what stands on the other side of the last sign."""
    if set(relation.operators) != {"="}:
        return None
    first, *_, last = relation.sides
    if is_name(last) and not is_name(first):
        return read_answer(first)
    computed = len(relation.sides) == 2 and rational(first) is None and not _has_letter(first)
    if is_name(first) or computed:
        return read_answer(last)
    return None


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in normal_text(text))


def _as_choice(answer: Answer, partner: Answer) -> Answer:
    """Return a lone letter as a choice beside one."""
    if isinstance(partner, Choice) and isinstance(answer, Words | Quantity):
        text = answer.text.strip()
        if len(text) == 1 and text.isalpha():
            return Choice(letter=text.upper())
    return answer

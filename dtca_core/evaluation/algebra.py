r"""Algebra: are two expressions equal? Slow, and only ever called inside a worker process.

Two expressions are unequal where they differ at a sample point, and equal where they agree at
all of them to many digits; no tolerance is in it, for 10^-7 is not 0. What cannot be evaluated is
left to math-verify itself.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
from math_verify import verify

from dtca_core.evaluation.forms import Region, Relation
from dtca_core.evaluation.parsing import parsed
from dtca_core.evaluation.powers import prime_exponents

CONSTANT_DIGITS = 400
"""Decimal digits to which constants are compared: more than 2^-1000 or 1/100! needs."""
SAMPLE_DIGITS = 60
"""Decimal digits to which expressions with variables are compared at a sample point."""
_SAMPLES = ("0.731", "1.618", "2.442", "-0.577", "5.773", "-3.359", "17.32", "0.0915")
"""Values of the first variable; further ones take them in turn, scaled."""
_NEEDED_POINTS = 3
_MAX_DIGITS = 10_000
"""A value with more digits before its point is not compared by digits."""


class AlgebraError(Exception):
    """Comparing failed at expressions that had been read; the comparison is undecided."""


class AlgebraCalculator:
    """Compares expressions, sets of real numbers and equations by algebra.

    Every method raises AlgebraError where a library fails.
    """

    def same_value(self, one: str, other: str) -> bool:
        """Return whether two expressions are equal wherever both are defined."""
        with _library():
            x, y = parsed(one), parsed(other)
            return x is not None and y is not None and _equal(x, y)

    def same_region(self, one: Region, other: Region) -> bool:
        """Return whether two unions of intervals hold the same real numbers."""
        with _library():
            sets = _set(one), _set(other)
        if None not in sets:
            return bool(sets[0] == sets[1])
        # Ends that cannot be ordered are compared one by one.
        return len(one.pieces) == len(other.pieces) and all(
            (p.low_open, p.high_open) == (q.low_open, q.high_open)
            and self.same_value(p.low, q.low)
            and self.same_value(p.high, q.high)
            for p, q in zip(one.pieces, other.pieces, strict=True)
        )

    def same_relation(self, one: Relation, other: Relation) -> bool:
        """Return whether left minus right of one is a nonzero constant times that of the other.

        For inequalities the constant has to be positive, or negative with the other direction.
        """
        if len(one.operators) != 1 or len(other.operators) != 1:
            return False
        with _library():
            factor = _constant_ratio(one, other)
        if factor is None:
            return False
        if one.operators == other.operators:
            return one.operators == ("=",) or bool(factor > 0)
        return bool(factor < 0) and _FLIPPED.get(one.operators[0]) == other.operators[0]


_FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}


@contextmanager
def _library() -> Generator[None, None, None]:
    """Turn what a library raises, at an input that it cannot handle, into AlgebraError."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise AlgebraError(f"{type(error).__name__} in algebra: {str(error)[:200]}") from error


def _equal(x: sympy.Expr, y: sympy.Expr) -> bool:
    if x == y:
        return True
    factors = prime_exponents(x), prime_exponents(y)
    if None not in factors:
        return factors[0] == factors[1]
    symbols = sorted(x.free_symbols | y.free_symbols, key=str)
    verdict = _agree_at_samples(x, y, symbols) if symbols else _same_constant(x, y)
    if verdict is not None:
        return verdict
    # Neither has a number: unknown functions, derivatives. math-verify compares symbolically.
    return verify(x, y, float_rounding=15, numeric_precision=60, strict=True, timeout_seconds=None)


def _same_constant(x: sympy.Expr, y: sympy.Expr) -> bool | None:
    if x.is_infinite or y.is_infinite:
        return bool(x == y)
    values = _values(x, y, {}, CONSTANT_DIGITS)
    if values is None:
        return None
    one, other = values
    if _close(one, other, CONSTANT_DIGITS):
        # Digits do not tell 1 - 1/2010! from 1; exact arithmetic does, where it knows the value.
        difference = (x - y).doit()
        return bool(difference == 0) if difference.is_Rational else True
    # Nor do they tell a difference that vanishes from a tiny one; algebra does.
    tiny = max(abs(one), abs(other)) < sympy.Float(10, 30) ** -(CONSTANT_DIGITS // 2)
    return bool((x - y).equals(0)) if tiny else False


def _agree_at_samples(x: sympy.Expr, y: sympy.Expr, symbols: Sequence[Any]) -> bool | None:
    """Return whether two expressions agree where both are defined; None where that is nowhere.

    Points at which both are real count; complex ones only where no point is real.
    """
    at_complex_points: list[bool] = []
    at_real_points: list[bool] = []
    for point in _points(symbols):
        values = _values(x, y, point, SAMPLE_DIGITS)
        if values is None:
            continue
        one, other = values
        same = _close(one, other, SAMPLE_DIGITS)
        if one.is_real == other.is_real:
            (at_real_points if one.is_real else at_complex_points).append(same)
        elif _is_rational_function(x) and _is_rational_function(y):
            return False  # these are defined everywhere, so that no branch is to be chosen
        if not all(at_real_points) or len(at_real_points) == 2 * _NEEDED_POINTS:
            break
    if len(at_real_points) >= _NEEDED_POINTS or not all(at_real_points):
        return all(at_real_points)
    return all(at_complex_points) if at_complex_points else None


def _is_rational_function(expression: sympy.Expr) -> bool:
    return bool(expression.is_rational_function())


def _points(symbols: Sequence[Any]) -> list[dict[Any, Any]]:
    """Return values for all symbols, no two alike at a point."""
    return [
        {
            symbol: sympy.Float(_SAMPLES[(k + n) % len(_SAMPLES)], SAMPLE_DIGITS)
            + sympy.Rational(n, 7).evalf(SAMPLE_DIGITS)
            for n, symbol in enumerate(symbols)
        }
        for k in range(len(_SAMPLES))
    ]


def _values(
    x: sympy.Expr, y: sympy.Expr, point: dict[Any, Any], digits: int
) -> tuple[Any, Any] | None:
    """Return both values at a point, None where there is none or its digits are too many.

    They have `digits` digits, and as many after the point where they are large: 3^2007 + 1 is not
    3^2007.
    """
    one, other = (_number(side, point, digits) for side in (x, y))
    if one is None or other is None:
        return None
    size = max(abs(one), abs(other))
    whole = int(sympy.log(size, 10).evalf(15)) if size > 1 else 0
    if whole > _MAX_DIGITS:
        return None
    if whole > 1:
        one, other = (_number(side, point, digits + whole) for side in (x, y))
    return one, other


def _number(expression: sympy.Expr, point: dict[Any, Any], digits: int) -> Any:
    """Return the value at a point as a number, None where there is none."""
    try:
        value = expression.evalf(digits, subs=point, maxn=4 * digits)
        if not value.is_number or not value.is_finite or value.has(sympy.Sum, sympy.Limit):
            value = expression.doit().evalf(digits, subs=point, maxn=4 * digits)
    except (TypeError, ValueError, ZeroDivisionError, NotImplementedError, AttributeError):
        return None
    real, imaginary = value.as_real_imag()
    if not (real.is_Number and imaginary.is_Number and value.is_finite):
        return None
    # A tiny imaginary part is rounding.
    if abs(imaginary) <= abs(real) * sympy.Float(10, digits) ** (10 - digits):
        return real
    return value


def _close(one: Any, other: Any, digits: int) -> bool:
    """Return whether two values agree to all but a few of their digits, those after the point."""
    size = max(abs(one), abs(other))
    return bool(abs(one - other) <= min(size, 1) * sympy.Float(10, digits) ** (15 - digits))


def _set(region: Region) -> sympy.Set | None:
    """Return a region as a set of sympy's, None where an end is not known to be real."""
    intervals: list[sympy.Set] = []
    for piece in region.pieces:
        ends = [parsed(end) for end in (piece.low, piece.high)]
        low, high = (end if end is None else sympy.simplify(end.doit()) for end in ends)
        if low is None or high is None or not (low.is_extended_real and high.is_extended_real):
            return None
        intervals.append(sympy.Interval(low, high, piece.low_open, piece.high_open))
    return sympy.Union(*intervals)


def _difference(relation: Relation) -> sympy.Expr | None:
    left, right = map(parsed, relation.sides)
    return None if left is None or right is None else left - right


def _constant_ratio(one: Relation, other: Relation) -> Any:
    """Return the factor between the differences of the sides of two relations.

    None unless it is the same nonzero real number at every sample point.
    """
    x, y = _difference(one), _difference(other)
    if x is None or y is None:
        return None
    ratio, points = None, 0
    for point in _points(sorted(x.free_symbols | y.free_symbols, key=str)):
        above, below = (_number(side, point, SAMPLE_DIGITS) for side in (x, y))
        if above is None or below is None or not above.is_real or not below.is_real:
            continue
        if not point or above == 0 or below == 0:
            return None
        current = above / below
        if ratio is not None and not _close(current, ratio, SAMPLE_DIGITS):
            return None
        ratio, points = current, points + 1
    return ratio if points >= _NEEDED_POINTS else None

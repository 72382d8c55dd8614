r"""Algebra: are two expressions equal? Slow, and only ever called inside a worker process.

An expression is parsed by math-verify's LaTeX parser. Two expressions are then unequal where
they differ at a sample point, and equal where they agree at all of them to many digits; no
tolerance is in it, for 10^-7 is not 0. What cannot be evaluated is left to math-verify itself.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from math_verify import verify
from sympy.core.function import AppliedUndef

from dtca_core.evaluation.forms import Region, Relation
from dtca_core.evaluation.latex import STYLE, is_balanced
from dtca_core.evaluation.rational import rational

CONSTANT_DIGITS = 400
"""Decimal digits to which constants are compared: more than 2^-1000 or 1/100! needs."""
SAMPLE_DIGITS = 60
"""Decimal digits to which expressions with variables are compared at a sample point."""
_SAMPLES = ("0.731", "1.618", "2.442", "-0.577", "5.773", "-3.359", "17.32", "0.0915")
"""Values of the first variable; further ones take them in turn, scaled."""
_NEEDED_POINTS = 3

_PARSER = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
_NAMES = (
    "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|max|min|gcd|lcm|det|"
    "pi|theta|alpha|beta|gamma|infty"
)
_PLAIN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (rf"{STYLE}\s*\{{\s*({_NAMES})\s*\}}", r"\\\1 "),
        (rf"{STYLE}\s*\{{([^{{}}]*)\}}", r"{\1}"),
        (r"\\dollar", ""),
        (r"([_^])\s*([0-9a-zA-Z])", r"\1{\2}"),
        (r"\\bmod(?![a-zA-Z])", r"\\mod "),
        (r"\*\*", "^"),
        (r"(?<![a-zA-Z\\])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"(?<![a-zA-Z\\])cbrt\s*\(([^()]*)\)", r"\\sqrt[3]{\1}"),
        (rf"(?<![a-zA-Z\\])({_NAMES})(?![a-zA-Z])", r"\\\1 "),
        (r"(?<![a-zA-Z\\])(?:infinity|inf|oo)(?![a-zA-Z])", r"\\infty "),
        (r"\*", r"\\cdot "),
        (r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", ""),
        # A decimal is the fraction that it says, not the nearest float.
        (r"(?<![0-9.])([0-9]+)\.(?![0-9])", r"\1"),
        (r"([0-9]+)\s*(\\frac\s*\{[0-9]+\}\s*\{[0-9]+\})", r"(\1+\2)"),
        (r"([0-9.]+)\s*\^\\circ", r"(\1\\cdot\\frac{\\pi}{180})"),
        (r"\{?\s*([^{}\\]+?)\s*\\choose\s*([^{}\\]+?)\s*(?:\}|$)", r"\\binom{\1}{\2}"),
        # The parser takes 2(3) for a mixed number and \pi(3) for a function.
        (r"((?<![\^_0-9.a-zA-Z])[0-9]+|\\pi)\s*(?=\()", r"\1\\cdot "),
        (r"\)\s*(?=\()", r")\\cdot "),
        (r"\^\s*\\cdot", "^"),
        (r"\{\{([^{}]*)\}\}", r"{\1}"),
    ]
]

# Repeated factorials and numbers side by side; the parser makes something of either.
_NO_MEANING = re.compile(r"!!|[0-9] +[0-9]")


class UnreadableError(Exception):
    """A text that is no mathematical expression."""


class AlgebraError(Exception):
    """A library failed at an expression that it had read; the comparison is undecided."""


def is_readable(text: str) -> bool:
    """Return whether a tidied text is a mathematical expression with a meaning."""
    return _parsed(text) is not None


class AlgebraCalculator:
    """Compares expressions, sets of real numbers and equations by algebra.

    Every method raises AlgebraError where a library fails.
    """

    def same_value(self, one: str, other: str) -> bool:
        """Return whether two expressions are equal wherever both are defined."""
        with _library():
            x, y = _parsed(one), _parsed(other)
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


def _parsed(text: str) -> sympy.Expr | None:
    try:
        return _parse(text)
    except UnreadableError:
        return None


@lru_cache(maxsize=4096)
def _parse(text: str) -> sympy.Expr:
    """Return the expression of a tidied text, unevaluated.

    Raises:
        UnreadableError: the text is no expression, or it has no value, such as 1/0.
    """
    number = rational(text)
    if number is not None:
        return sympy.Rational(number.numerator, number.denominator)
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    if _NO_MEANING.search(text) or not is_balanced(text):
        raise UnreadableError(text)
    text = re.sub(r"[0-9]+\.[0-9]+|\.[0-9]+", _as_fraction, text)
    try:
        parsed = latex2sympy(text, normalization_config=None, conversion_config=_PARSER)
    except MemoryError:
        raise
    except Exception:  # which is what the parser raises
        raise UnreadableError(text) from None
    if not isinstance(parsed, sympy.Expr) or parsed.has(sympy.zoo, sympy.nan):
        raise UnreadableError(text)
    return _with_constants(parsed)


def _as_fraction(decimal: re.Match[str]) -> str:
    value = rational(decimal[0])
    assert value is not None, "a decimal is a rational number"
    return f"{{\\frac{{{value.numerator}}}{{{value.denominator}}}}}"


def _with_constants(expression: sympy.Expr) -> sympy.Expr:
    """Return an expression in which i is the imaginary unit and f(2) is a quantity of its own."""
    constants: dict[Any, Any] = {
        symbol: sympy.I for symbol in expression.free_symbols if str(symbol) == "i"
    }
    for call in expression.atoms(AppliedUndef):
        constants[call] = sympy.Symbol(str(call))
    replaced: Any = expression.xreplace(constants)
    return replaced


def _equal(x: sympy.Expr, y: sympy.Expr) -> bool:
    if x == y:
        return True
    symbols = sorted(x.free_symbols | y.free_symbols, key=str)
    verdict = _agree_at_samples(x, y, symbols) if symbols else _same_constant(x, y)
    if verdict is not None:
        return verdict
    # Neither has a number: unknown functions, derivatives. math-verify compares symbolically.
    return verify(x, y, float_rounding=15, numeric_precision=60, strict=True, timeout_seconds=None)


def _same_constant(x: sympy.Expr, y: sympy.Expr) -> bool | None:
    if x.is_infinite or y.is_infinite:
        return bool(x == y)
    one, other = (_number(side, {}, CONSTANT_DIGITS) for side in (x, y))
    if one is None or other is None:
        return None
    if _close(one, other, CONSTANT_DIGITS):
        return True
    # Digits do not tell a difference that vanishes from a tiny one; algebra does.
    tiny = max(abs(one), abs(other)) < sympy.Float(10, 30) ** -(CONSTANT_DIGITS // 2)
    return bool((x - y).equals(0)) if tiny else False


def _agree_at_samples(x: sympy.Expr, y: sympy.Expr, symbols: Sequence[Any]) -> bool | None:
    """Return whether two expressions agree where both are defined; None where that is nowhere.

    Points at which both are real count; complex ones only where no point is real.
    """
    at_complex_points: list[bool] = []
    at_real_points: list[bool] = []
    for point in _points(symbols):
        one, other = (_number(side, point, SAMPLE_DIGITS) for side in (x, y))
        if one is None or other is None:
            continue
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
    """Return whether two values agree to all but a few of their digits."""
    size = max(abs(one), abs(other))
    return bool(abs(one - other) <= size * sympy.Float(10, digits) ** (15 - digits))


def _set(region: Region) -> sympy.Set | None:
    """Return a region as a set of sympy's, None where an end is not known to be real."""
    intervals: list[sympy.Set] = []
    for piece in region.pieces:
        ends = [_parsed(end) for end in (piece.low, piece.high)]
        low, high = (end if end is None else sympy.simplify(end.doit()) for end in ends)
        if low is None or high is None or not (low.is_extended_real and high.is_extended_real):
            return None
        intervals.append(sympy.Interval(low, high, piece.low_open, piece.high_open))
    return sympy.Union(*intervals)


def _difference(relation: Relation) -> sympy.Expr | None:
    left, right = map(_parsed, relation.sides)
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

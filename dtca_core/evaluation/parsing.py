r"""Parsing LaTeX into sympy's expressions, by math-verify's parser. Slow: for workers only."""

import re
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from sympy.core.function import AppliedUndef

from dtca_core.evaluation.latex import STYLE, is_balanced
from dtca_core.evaluation.powers import divisor_or_multiple
from dtca_core.evaluation.rational import rational

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
        # The parser would leave primes out.
        (r"(?<=[a-zA-Z])''(?!')", r"_{\\prime\\prime}"),
        (r"(?<=[a-zA-Z])'(?!')", r"_{\\prime}"),
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
        # As functions it does not know: it would multiply their arguments out to evaluate them.
        (r"\\(gcd|lcm)(?![a-zA-Z])\s*", r"\\text{\1}"),
    ]
]

# Other primes, repeated factorials, numbers side by side or with an index; the parser makes
# something of each.
_NO_MEANING = re.compile(r"'|!!|[0-9] +[0-9]|(?:[0-9]|\^\{[^{}]*\})\s*_")


class UnreadableError(Exception):
    """A text that is no mathematical expression."""


def parsed(text: str) -> sympy.Expr | None:
    """Return the expression of a tidied text, unevaluated; None where it is none."""
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
        value = divisor_or_multiple(call)
        constants[call] = sympy.Symbol(str(call)) if value is None else value
    replaced: Any = expression.xreplace(constants)
    return replaced


def is_readable(text: str) -> bool:
    """Return whether a tidied text is a mathematical expression with a meaning."""
    return parsed(text) is not None

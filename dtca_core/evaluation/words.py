"""Telling words of a natural language from mathematics."""

import re

from dtca_core.evaluation.latex import STYLE

_NAMES = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp sqrt cbrt pi max "
    "min gcd lcm det mod infty infinity inf theta alpha beta gamma delta lambda mu sigma phi omega "
    "floor ceil abs"
)
_FUNCTIONS = frozenset(_NAMES.split())
"""Names that stand for mathematics although they are spelled out."""
_TWO_LETTERS = "no on am pm an as at be by do go he if in is it me my of or so to up us we ok"
_SHORT_WORDS = frozenset(_TWO_LETTERS.split())
_WORD = re.compile(r"[^\W\d_]{2,}")
_PRODUCT = re.compile(r"(?<=[0-9})])[a-zA-Z]{2,4}(?![a-zA-Z])|(?<![a-zA-Z])[a-zA-Z]{2,4}(?=[\^_])")
_STYLED = re.compile(rf"{STYLE}\s*\{{([^{{}}]*)\}}")
_COMMAND = re.compile(r"\\(?:begin|end|math[a-z]+|overline|vec|hat|bar)\s*\{[^{}]*\}|\\[a-zA-Z]+")


def is_words(text: str) -> bool:
    """Return whether a tidied text is in a natural language rather than mathematics.

    Words are three letters in a row, two that are a common word, two of a script that is not
    Latin, or two inside a style command. Names of functions are not, nor is a product of a few
    variables that a number or an exponent gives away.
    """
    styled = {word.casefold() for part in _STYLED.findall(text) for word in _WORD.findall(part)}
    return bool(styled - _FUNCTIONS) or any(map(_is_word, _WORD.findall(_without_commands(text))))


def _without_commands(text: str) -> str:
    return _PRODUCT.sub(" ", _COMMAND.sub(" ", _STYLED.sub(" ", text)))


def _is_word(letters: str) -> bool:
    name = letters.casefold()
    is_short = len(letters) == 2 and letters.isascii()
    return name in _SHORT_WORDS if is_short else name not in _FUNCTIONS

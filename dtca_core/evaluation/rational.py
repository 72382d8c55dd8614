"""Rational numbers as answers write them, read exactly.

Read are integers, decimals, repeating decimals, fractions, mixed numbers, powers of ten and
number words such as million. Everything else, also 2 + 1 or a root, is for algebra.
"""

import re
from fractions import Fraction

MAX_NUMBER_LENGTH = 500
"""A longer text is not read as a number: its arithmetic would cost more than it tells."""
MAX_EXPONENT = 300

_DECIMAL = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s*(?:(?:(?P<whole>[0-9]+)\s*)?"
    rf"\\frac\s*\{{\s*(?P<up>[+-]?\s*{_DECIMAL})\s*\}}\s*\{{\s*(?P<down>[+-]?\s*{_DECIMAL})\s*\}}"
    rf"|(?:(?P<whole_>[0-9]+)(?: | and ))?(?P<up_>{_DECIMAL})\s*/\s*(?P<down_>-?{_DECIMAL})"
    r"|(?P<start>[0-9]*\.[0-9]*)\\(?:overline|bar|dot)\s*\{?(?P<repeated>[0-9]+)\}?"
    rf"|(?P<decimal>{_DECIMAL})(?:(?:[eE]|\s*(?:\\times|\\cdot|\*)\s*10\s*\^\s*)"
    r"(?:(?P<exponent>[+-]?[0-9]{1,4})|\{(?P<exponent_>[+-]?[0-9]{1,4})\}))?)"
    r"(?:\s+(?P<word>hundred|thousand|million|billion|trillion|dozen))?",
    re.IGNORECASE,
)
_WORDS = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}


def rational(text: str) -> Fraction | None:
    """Return a tidied text as the number that it is, or None where it is anything else.

    A zero denominator and a number of absurd size are not read.
    """
    if len(text) > MAX_NUMBER_LENGTH or (match := _NUMBER.fullmatch(text.strip())) is None:
        return None
    value = _magnitude(match)
    if value is None:
        return None
    value *= _WORDS[match["word"].lower()] if match["word"] else 1
    return -value if match["sign"] == "-" else value


def _magnitude(match: re.Match[str]) -> Fraction | None:
    """Return the exact value of a matched number without its sign, None where it has none."""
    if match["repeated"]:
        return _repeating(match["start"], match["repeated"])
    if match["decimal"]:
        exponent = int(match["exponent"] or match["exponent_"] or 0)
        if abs(exponent) > MAX_EXPONENT:
            return None
        return _decimal(match["decimal"]) * Fraction(10) ** exponent
    up = _decimal(match["up"] or match["up_"])
    down = _decimal(match["down"] or match["down_"])
    whole = match["whole"] or match["whole_"]
    if down == 0 or (whole and up / down < 0):
        return None
    return Fraction(int(whole or 0)) + up / down


def _repeating(start: str, repeated: str) -> Fraction:
    """Return a decimal whose last digits repeat for ever: 0.1 and 6 are 0.1666... = 1/6."""
    shift = Fraction(1, 10 ** len(start.partition(".")[2]))
    return _decimal(start + "0") + shift * Fraction(int(repeated), 10 ** len(repeated) - 1)


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(r"[,\s]", "", text))

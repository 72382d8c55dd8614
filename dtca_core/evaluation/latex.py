"""How an answer written in LaTeX is read: its braces, its tidy form, its exact value.

Only what is certain is read: a plain rational number with at most one unit. Everything else
stays text. Evaluating expressions (roots, powers, algebra) is left out.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

MAX_NUMBER_LENGTH = 500
"""A longer text is not read as a number: its arithmetic would cost more than it tells."""
MAX_EXPONENT = 300

_SYMBOLS = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
    # Not plain commas: between digits those may group thousands.
    "\uff0c": ", ",
    "\u3001": ", ",
    "\u3002": ".",
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63", "-"),
    **dict.fromkeys("\u2009\u202f", "\\,"),
    **dict.fromkeys("\u200b\ufeff", ""),
    "\u00a0": " ",
    "°": "^\\circ ",
    "²": "^2",
    "³": "^3",
    "\u00d7": "\\times ",
    "π": "\\pi ",
    "∞": "\\infty ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "±": "\\pm ",
}
_SYMBOLS.update(
    {
        mark: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", mark).split("\u2044"))
        for mark in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
    }
)
_TRANSLATION = str.maketrans(_SYMBOLS)

_STYLE = r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt)|mbox|operatorname)"
_TIDY = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"√\s*([0-9]+|[a-zA-Z])", r"\\sqrt{\1}"),
        (r"\\?\$", ""),
        (r"(?<!\\)\\[()\[\]]", ""),
        (r"\\(?:left|right)(?![a-zA-Z])", ""),
        (r"\\displaystyle(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\le(?:q|qslant)(?![a-zA-Z])", r"\\le"),
        (r"\\ge(?:q|qslant)(?![a-zA-Z])", r"\\ge"),
        (r"\\%", "%"),
        (r"\{,\}", ","),
        (r",\\!\s*", ","),
        (r"(?<!\\)\\!", ""),
        (r"(?<=[0-9])\\,(?=[0-9]{3}(?![0-9]))", ""),
        (r"(?<!\\)\\[,;: ]|~|\\q?quad(?![a-zA-Z])", " "),
        (r"\\frac\s*([0-9])\s*([0-9])", r"\\frac{\1}{\2}"),
        (r"\\frac\s*([0-9])\s*\{", r"\\frac{\1}{"),
        (r"\\frac\s*(\{[^{}]*\})\s*([0-9])", r"\\frac\1{\2}"),
        (r"\\sqrt\s*([0-9])", r"\\sqrt{\1}"),
    ]
]

_DECIMAL = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s*(?:(?:(?P<whole>[0-9]+)\s*)?"
    rf"\\frac\s*\{{\s*(?P<up>[+-]?\s*{_DECIMAL})\s*\}}\s*\{{\s*(?P<down>[+-]?\s*{_DECIMAL})\s*\}}"
    rf"|(?:(?P<whole_>[0-9]+)\s+)?(?P<up_>{_DECIMAL})\s*/\s*(?P<down_>{_DECIMAL})"
    rf"|(?P<decimal>{_DECIMAL})(?:[eE](?P<exponent>[+-]?[0-9]{{1,4}}))?)(?![0-9])\s*"
)
_UNIT = re.compile(
    r"\^\s*\{?\s*\\circ\s*\}?"
    r"|" + _STYLE + r"\s*\{[^{}0-9,]*(?:\^[0-9])?\}(?:\s*\^\s*(?:[0-9]|\{[0-9]\}))?"
    r"|(?P<bare>(?:[a-zA-Z]{3,}|[ckm]m|[km]g|m[lL]|ft|lb|oz|hr)(?: [a-zA-Z]+)*)"
)
# Words that change the value, or say that what stands before them is not the whole answer.
_NO_UNITS = re.compile(
    r"\b(?:hundred|thousand|million|billion|trillion|dozen|score|half|quarter|point|percent|base|"
    r"factorial|squared|cubed|plus|minus|times|over|mod|modulo|choose|remainder|sqrt|pi|infinity|"
    r"or|and|to|than|more|less|by|not|e|i|j)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A rational number and its unit."""

    value: Fraction
    """The exact value; x% is x/100."""
    unit: str
    """The unit as written, without style and spaces; empty where none is stated."""


def brace_pairs(text: str) -> dict[int, int]:
    """Return the position of the closing brace of each opening one, in linear time.

    Escaped braces are text. Braces without a partner are left out.
    """
    pairs: dict[int, int] = {}
    unclosed: list[int] = []
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if match[0] == "{":
            unclosed.append(match.start())
        elif match[0] == "}" and unclosed:
            pairs[unclosed.pop()] = match.start()
    return pairs


def tidy(text: str) -> str:
    r"""Return an answer in one spelling of symbols, spacing, fractions and outer braces.

    Spaces and `\text` stay, for they tell 2 2/3 from 22/3 and a unit from a variable.
    """
    text = text.translate(_TRANSLATION)
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    text = re.sub(r"(?<!\.)\.$", "", " ".join(text.split()))
    styled = re.match(_STYLE + r" ?(?=\{)", text)
    if styled and brace_pairs(text).get(styled.end()) == len(text) - 1:
        text = text[styled.end() :]
    return _without_outer_braces(text).strip()


def _without_outer_braces(text: str) -> str:
    """Return the text inside the braces that enclose all of it, however many there are."""
    pairs = brace_pairs(text)
    depth = 0
    while pairs.get(depth) == len(text) - 1 - depth:
        depth += 1
    return text[depth : len(text) - depth]


def quantity(tidied: str) -> Quantity | None:
    """Return a tidied answer as a number with its unit, or None where it is anything else.

    Read are integers, decimals, a/b, fractions, mixed numbers and percentages. A zero
    denominator, a number of absurd size and a unit that changes the value are not.
    """
    if len(tidied) > MAX_NUMBER_LENGTH:
        return None
    currency = tidied[0] if tidied[:1] in ("€", "£", "¥") else ""
    number = _NUMBER.match(tidied, len(currency))
    if number is None or (value := _value(number)) is None:
        return None
    rest = tidied[number.end() :]
    if rest.lower() in ("%", "percent"):
        return Quantity(value=value / 100, unit=currency)
    unit = _unit(rest, spaced=tidied[number.end() - 1] == " ") if rest else ""
    return None if unit is None else Quantity(value=value, unit=currency + unit)


def _value(number: re.Match[str]) -> Fraction | None:
    """Return the exact value of a matched number, None where it has none."""
    sign = -1 if number["sign"] == "-" else 1
    if number["decimal"]:
        exponent = int(number["exponent"] or 0)
        if abs(exponent) > MAX_EXPONENT:
            return None
        return sign * _decimal(number["decimal"]) * Fraction(10) ** exponent
    up = _decimal(number["up"] or number["up_"])
    down = _decimal(number["down"] or number["down_"])
    whole = number["whole"] or number["whole_"]
    if down == 0 or (whole and up / down < 0):
        return None
    return sign * (Fraction(int(whole or 0)) + up / down)


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(r"[,\s]", "", text))


def _unit(rest: str, *, spaced: bool) -> str | None:
    """Return what follows a number as a unit, or None where it is not one.

    A bare word is a unit only after a space: 5x is a product.
    """
    match = _UNIT.fullmatch(rest)
    if match is None or (match["bare"] and not spaced):
        return None
    if "\\circ" in rest:
        return "degree"
    plain = re.sub(_STYLE + r"|[{}]", "", rest)
    if _NO_UNITS.search(plain):
        return None
    name = re.sub(r"[\s.]", "", plain)
    return name.removesuffix("s") if len(name) > 3 else name


def normal_text(tidied: str) -> str:
    r"""Return a tidied answer without style commands and spaces, words in lower case.

    A space between two digits stays. A choice letter loses its parentheses.
    """
    text = _without_style(tidied)
    text = re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", _without_outer_braces(text.strip()))
    if re.fullmatch(r"\([A-Z]\)", text):
        return text[1]
    return text.casefold() if len(text) > 1 and text.isalpha() else text


def _without_style(text: str) -> str:
    r"""Return the text with `\text{...}` and its kin replaced by their content between spaces."""
    pairs = brace_pairs(text)
    characters = list(text)
    for match in re.finditer(_STYLE + r"\s*(?=\{)", text):
        if (opening := match.end()) in pairs:
            characters[match.start() : opening + 1] = [" "] * (opening + 1 - match.start())
            characters[pairs[opening]] = " "
    return "".join(characters)

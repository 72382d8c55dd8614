r"""Units: cutting them off a value, and telling whether two of them are the same."""

import re

from dtca_core.evaluation.latex import STYLE

PERCENT = "percent"
DEGREE = "degree"

_CURRENCIES = {"\\dollar": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
_CURRENCY = re.compile(r"(-?)\s*(\\dollar|[€£¥₹])\s*(?=[-0-9.\\])")
_SAME = {
    name: names.split()[0]
    for names in (
        "mm millimeter millimetre",
        "cm centimeter centimetre",
        "m meter metre",
        "km kilometer kilometre",
        "in inch inche",
        "ft foot feet",
        "yd yard",
        "mi mile",
        "mg milligram",
        "g gram",
        "kg kilogram",
        "pound lb",
        "oz ounce",
        "ml milliliter millilitre",
        "l liter litre",
        "s sec second",
        "min minute",
        "h hr hour",
        "yr year",
        "mph",
        "dollar usd buck",
        "cent ¢",
        "euro eur",
        "unit",
        "degree deg",
        "c celsiu",
        "f fahrenheit",
        "percent %",
    )
    for name in names.split()
}
_ABBREVIATIONS = "mm cm km in ft yd mi mg kg lbs lb oz ml mL hrs hr min sec yr mph am pm AM PM"
_KNOWN = "|".join(_ABBREVIATIONS.split())
# Words that change the value, or say that what stands before them is not the whole answer.
_NO_UNIT = re.compile(
    r"\b(?:hundred|thousand|million|billion|trillion|dozen|score|half|quarter|point|base|"
    r"factorial|squared?\s*root|plus|minus|times|over|mod|modulo|choose|remainder|sqrt|pi|infinity|"
    r"below|above|or|and|to|than|more|less|not|if|when|where|for|sin|cos|tan|log|ln|exp|gcd|lcm)\b"
)
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])")
_EXPONENT = r"(?:\s*\^\s*(?:[0-9]|\{-?[0-9]\}))?"
# Every text matches in one way only, or a row of them would take exponential time.
_STYLED = rf"{STYLE}\s*\{{[^{{}}0-9,^]*(?:\^[0-9][^{{}}0-9,^]*)?\}}{_EXPONENT}"
_TAIL = re.compile(
    rf"(?:\s*\^\\circ\s*(?:[CF]|{_STYLED})?|\s*\\?%|\s+percent"
    rf"|(?:\s*(?:(?:/|\\cdot)\s*)?{_STYLED})++"
    r"|(?<=[0-9)}])\s*[\u3040-\u9fff\uac00-\ud7af]{1,4}"
    rf"|(?<=[0-9])\s*(?:{_KNOWN}){_EXPONENT}(?:\s*/\s*[a-z]+)?"
    rf"|(?<=[0-9)\}}\]i])\s+[a-zA-Z]{{2,}}\.?(?:[ -][a-zA-Z./]+)*{_EXPONENT})$"
)


def split_unit(tidied: str) -> tuple[str, str]:
    """Return a value and its unit by one name; an empty name where none is stated.

    A bare word is a unit only after a space and a number, for 5x is a product.
    """
    currency = _CURRENCY.match(tidied)
    unit = _CURRENCIES[currency[2]] if currency else ""
    value = currency[1] + tidied[currency.end() :] if currency else tidied
    tail = _TAIL.search(value)
    name = unit_name(tail[0]) if tail and value[: tail.start()].strip() else None
    if tail is None or name is None or (name == DEGREE and _TRIGONOMETRY.search(value)):
        return value.strip(), unit
    return value[: tail.start()].strip(), f"{unit}{name}" if unit != name else unit


def unit_name(text: str) -> str | None:
    """Return the one name of a unit as written, or None where it is not a unit."""
    if "\\circ" in text:
        scale = re.search(r"\\circ.*([CF])", text)
        return DEGREE + scale[1].casefold() if scale else DEGREE
    plain = re.sub(rf"{STYLE}|[{{}}()]|\\cdot", " ", text).casefold()
    plain = re.sub(r"\b(?:squared?|sq\.?)\s+(\w+)", r"\1^2", plain)
    plain = re.sub(r"\bcubed?\s+(\w+)|\bcubic\s+(\w+)", r"\1\2^3", plain)
    if _NO_UNIT.search(plain) or plain.strip() in ("squared", "cubed"):
        return None
    words = re.findall(r"[^\W\d_]+(?:\^-?[0-9])?|[%¢/]|\^[0-9]", re.sub(r"\bper\b", "/", plain))
    if not words:
        return None
    return "".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    name, power, exponent = word.partition("^")
    if len(name) > 2 and not name.endswith("ss"):
        name = name.removesuffix("s")
    return _SAME.get(name, name) + power + exponent

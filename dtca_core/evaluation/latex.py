r"""How an answer written in LaTeX or plain text is brought into one spelling.

Only spelling: what an answer is (a list, an interval, a number) is for `structure`.
"""

import re
import unicodedata

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi - pi rho - sigma tau "
    "upsilon phi chi psi omega"
)
_SYMBOLS = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
    # Not plain commas: between digits those may group thousands.
    "\uff0c": ", ",
    "\u3001": ", ",
    "\u3002": ".",
    "\uff04": "\\$",
    "\uff05": "%",
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63", "-"),
    **dict.fromkeys("\u2009\u202f", "\\,"),
    **dict.fromkeys("\u200b\u200e\u200f\u2061\u2062\ufeff", ""),
    **dict.fromkeys("\u00a0\u3000\u2002\u2003\t\r\n", " "),
    **dict.fromkeys("\u2018\u2019", "'"),
    **{chr(0x3B1 + n): f"\\{name} " for n, name in enumerate(_GREEK.split()) if name != "-"},
    **{chr(0x2070 + n): f"^{{{n}}}" for n in (0, 4, 5, 6, 7, 8, 9)},
    **{chr(0x2080 + n): f"_{{{n}}}" for n in range(10)},
    "¹": "^{1}",
    "²": "^{2}",
    "³": "^{3}",
    "°": "^\\circ ",
    "\u00d7": "\\times ",
    **dict.fromkeys("·⋅∙•", "\\cdot "),
    "÷": "/",
    "∞": "\\infty ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "≠": "\\ne ",
    "±": "\\pm ",
    "\u222a": "\\cup ",
    "∈": "\\in ",
    "∅": "\\emptyset ",
    "\u211d": "\\mathbb{R}",
    "…": "\\ldots ",
    "∛": "\\sqrt[3]",
}
_SYMBOLS.update(
    {
        mark: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", mark).split("\u2044"))
        for mark in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
    }
)
_TRANSLATION = str.maketrans(_SYMBOLS)

STYLE = (
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up|sl)?|math(?:rm|bf|it|sf|tt)|[mh]box|bf|rm"
    r"|operatorname\*?)"
)
"""A command that changes how its argument looks and not what it means."""

_QUOTED = re.compile(r"(?:``|[\"'`\u201c])(.*?)(?:''|[\"'`\u201d])")
_WORD = re.compile(r"[^\W\d_]{3}")
_OPERATOR = re.compile(r"[\\^_=<>+*/]")
_ARGUMENT = r"([0-9]|[a-zA-Z]|\\pi(?![a-zA-Z]))"
_TIDY = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"√\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"√\s*([0-9.]+|[a-zA-Z])", r"\\sqrt{\1}"),
        (r"√\s*(?=\{)", r"\\sqrt"),
        (r"\\\$|(?<![\\$])\$(?=\.?[0-9][0-9.,]*(?:\{,\}[0-9]+)*[^$0-9]*$)", "\\\\dollar "),
        (r"\$", ""),
        (r"(?<!\\)\\[()\[\]]", ""),
        (r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\.?", ""),
        (r"\\(?:display|text|script)style(?![a-zA-Z])|\\limits(?![a-zA-Z])", ""),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
        (r"\\(?:leq|leqslant)(?![a-zA-Z])|(?<!<)<=(?!>)", r"\\le "),
        (r"\\(?:geq|geqslant)(?![a-zA-Z])|(?<![>=])>=", r"\\ge "),
        (r"\\neq(?![a-zA-Z])", r"\\ne "),
        (r"\\lt(?![a-zA-Z])", "<"),
        (r"\\gt(?![a-zA-Z])", ">"),
        (r"\\[lr]?vert(?![a-zA-Z])", "|"),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\varnothing(?![a-zA-Z])|\\\{\s*\\\}", r"\\emptyset "),
        (r"\\(?:ldots|cdots|dots)(?![a-zA-Z])|\.\.\.", r"\\ldots "),
        (r"\\degree(?![a-zA-Z])|\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-zA-Z])", r"^\\circ "),
        (r"\\land(?![a-zA-Z])", " and "),
        (r"\\lor(?![a-zA-Z])", " or "),
        (r"\+\s*(?=\\infty)", ""),
        (r"\\%", "%"),
        (r"\{,\}", ","),
        (r",\\!\s*", ","),
        (r"(?<!\\)\\!", ""),
        (r"(?<=[0-9])(?:\\,|')(?=[0-9]{3}(?![0-9]))", ""),
        (r"(?<!\\)\\[,;: ]|~|\\q?quad(?![a-zA-Z])|\\hspace\{[^{}]*\}", " "),
        (rf"{STYLE}\s*\{{\s*[.,;]\s*\}}$", ""),
        (r"\\phantom\s*(?:\{[^{}]*\}|.)", ""),
        (r"\\frac\s*([0-9])\s*([0-9])", r"\\frac{\1}{\2}"),
        (rf"\\frac\s*{_ARGUMENT}\s*(?=\{{)", r"\\frac{\1}"),
        (rf"\\frac\s*(\{{[^{{}}]*\}})\s*{_ARGUMENT}", r"\\frac\1{\2}"),
        (rf"\\frac\s*{_ARGUMENT}\s*{_ARGUMENT}", r"\\frac{\1}{\2}"),
        (rf"\\sqrt\s*(\[[^\[\]]*\])?\s*{_ARGUMENT}", r"\\sqrt\1{\2}"),
        (r"\^\s*\{\s*([0-9])\s*\}", r"^\1"),
    ]
]


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


def is_balanced(text: str) -> bool:
    """Return whether every brace that is not escaped has a partner."""
    return 2 * len(brace_pairs(text)) == len(re.findall(r"[{}]", re.sub(r"\\.", "", text)))


def tidy(text: str) -> str:
    r"""Return an answer in one spelling of symbols, spacing, fractions and outer braces.

    Spaces and `\text` stay, for they tell 2 2/3 from 22/3 and a unit from a variable.
    """
    text = text.translate(_TRANSLATION)
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    text = re.sub(r"(?<!\.)[.;,]$", "", " ".join(text.strip().strip("*").split())).strip()
    if quoted := _QUOTED.fullmatch(text):
        text = quoted[1].strip()
    styled = re.match(STYLE + r" ?(?=\{)", text)
    if styled and brace_pairs(text).get(styled.end()) == len(text) - 1:
        text = text[styled.end() :]
    return without_outer_braces(text).strip()


def without_outer_braces(text: str) -> str:
    """Return the text inside the braces that enclose all of it, however many there are."""
    pairs = brace_pairs(text)
    depth = 0
    while pairs.get(depth) == len(text) - 1 - depth:
        depth += 1
    return text[depth : len(text) - depth]


def without_style(text: str) -> str:
    r"""Return the text with `\text{...}` and its kin replaced by their content between spaces."""
    pairs = brace_pairs(text)
    characters = list(text)
    for match in re.finditer(STYLE + r"\s*(?=\{)", text):
        if (opening := match.end()) in pairs:
            characters[match.start() : opening + 1] = [" "] * (opening + 1 - match.start())
            characters[pairs[opening]] = " "
    return "".join(characters)


def normal_text(tidied: str) -> str:
    r"""Return a tidied answer without style commands and spaces, words in lower case.

    A space between two digits stays. A choice letter loses its parentheses.
    """
    text = without_style(tidied)
    text = re.sub(r"(?<![0-9])\s+|\s+(?![0-9])", "", without_outer_braces(text.strip()))
    if re.fullmatch(r"\([A-Z]\)", text):
        return text[1]
    return text.casefold() if _WORD.search(text) and not _OPERATOR.search(text) else text

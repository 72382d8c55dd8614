"""When two problems are the same text: what does not change a problem is taken away."""

import re

_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys('"\u201c\u201d$?', ""),
    }
)
_STEPS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"(?<!\\)\\[()\[\]!]", ""),
        (r"(?<!\\)\\[,;: ]|~|\\q?quad(?![a-z])", " "),
        (r"\\(?:left|right|displaystyle)(?![a-z])", ""),
        (r"\\[dtc]frac(?![a-z])", r"\\frac"),
        # A thousands separator goes; other marks stay where they stand inside a number.
        (r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", ""),
        (r"(?<=[0-9])\s*([,;:])\s*(?=[0-9])", r"\1"),
        (r"(?<![0-9])[.,;:]|[.,;:](?![0-9])", ""),
        (r"\s+", " "),
        (r"(?<!\w) | (?!\w)", ""),
    ]
]


def normalise_problem(text: str) -> str:
    """Return a problem without what does not change it: case, spacing, punctuation, dollars.

    Signs that carry a meaning in mathematics (operators, brackets, a prime, a factorial, a
    decimal point) stay, so that two different problems do not become one.
    """
    text = text.casefold().translate(_TYPOGRAPHY)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    return text


def problem_key(text: str) -> str:
    """Return what two problems share if they are the same: the normalised text.

    It is the text itself where nothing is left of it.
    """
    return normalise_problem(text) or text

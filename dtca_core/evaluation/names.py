"""Telling what names a value from what has one: `x = 5` is 5, `2x = 5` is not."""

import re

from dtca_core.evaluation.brackets import split_list
from dtca_core.evaluation.latex import normal_text
from dtca_core.evaluation.words import is_words

_NAME = re.compile(
    r"\([a-zA-Z](?:,[a-zA-Z])+\)|"
    r"(?:\\?(?:angle|triangle|overline|vec|hat|bar|Delta|mathcal|mathbf|text)?)?"
    r"[{]?(?:[a-zA-Z]{1,3}|\\[a-zA-Z]+)'*[}]?(?:_(?:\w|\{[^{}]*\}))?'*"
    r"(?:\^(?:\{-1\}|-1))?(?:\([^()=]*\))?"
)


def is_name(text: str) -> bool:
    """Return whether a side of an equation names something: x, f(x), x_1, (x, y), AB, area."""
    plain = normal_text(text)
    if is_words(text):
        return len(split_list(text)) == 1
    return bool(plain) and _NAME.fullmatch(plain) is not None

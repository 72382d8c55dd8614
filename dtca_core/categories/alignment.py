"""The category of each token: that of the word it overlaps most, by characters alone."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from dtca_core.categories.tagger import TaggedWord, Tagger

SPECIAL = "SPECIAL"
"""Category of special tokens, such as the end of text."""
SPACE = "SPACE"
"""Category of tokens of nothing but white space."""
UNKNOWN = "X"
"""Category of text that the tagger made no word of; universal part of speech `other`."""


def token_categories(
    tagger: Tagger,
    texts: Sequence[str],
    spans: Sequence[Sequence[tuple[int, int]]],
    special: Sequence[Sequence[bool]],
) -> list[list[str]]:
    """Return the category of each token of each text.

    It is the category of the word that the token overlaps most, counted in characters; ties go
    to the earlier word. White space is in no word, so a token's leading space does not count.
    A token without characters carries the rest of the character before it (see `token_spans`)
    and has that character's category; at the start of the text it is SPACE.

    Args:
        tagger: gives the words.
        texts: decoded responses.
        spans: per text, the character span of each token.
        special: per text, True for each special token.
    """
    rows = zip(texts, tagger.tag(texts), spans, special, strict=True)
    return [_categories(*row) for row in rows]


def _categories(
    text: str,
    words: Sequence[TaggedWord],
    spans: Sequence[tuple[int, int]],
    special: Sequence[bool],
) -> list[str]:
    starts, ends = [word.start for word in words], [word.end for word in words]
    row: list[str] = []
    for (start, end), is_special in zip(spans, special, strict=True):
        first = start if start < end else max(start - 1, 0)
        if is_special:
            row.append(SPECIAL)
        elif not text[first:end].strip():
            row.append(SPACE)
        else:
            touched = words[bisect_right(ends, first) : bisect_left(starts, end)]
            row.append(_of_most_overlap(touched, first, end))
    return row


def _of_most_overlap(touched: Sequence[TaggedWord], start: int, end: int) -> str:
    """Return the category of the word with most characters in [start, end), the first if tied."""
    if not touched:
        return UNKNOWN
    return max(touched, key=lambda word: min(word.end, end) - max(word.start, start)).category

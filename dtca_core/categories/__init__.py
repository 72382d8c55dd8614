"""Token to part of speech: character spans, a tagger of words, and their alignment."""

from dtca_core.categories.alignment import SPACE, SPECIAL, UNKNOWN, token_categories
from dtca_core.categories.spans import is_special, token_spans
from dtca_core.categories.tagger import TaggedWord, Tagger, load_tagger

__all__ = [
    "SPACE",
    "SPECIAL",
    "UNKNOWN",
    "TaggedWord",
    "Tagger",
    "is_special",
    "load_tagger",
    "token_categories",
    "token_spans",
]

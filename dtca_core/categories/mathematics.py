r"""A layer of rules that teaches spaCy's English pipeline to read mathematics.

Plain spaCy keeps `48/2=24>>24` and `\boxed{72` in one piece and calls `+` a numeral or a
conjunction. The layer cuts numerals, operators, brackets and LaTeX commands out of the words, and
then decides these by rule, wherever they stand; every other word is left to the statistical
tagger.

    NUM    numerals, in LaTeX as elsewhere: 7, 1,000.50, .5, 10:30, the 2 of 2x and the 4 of 4ac;
           not 5th, which is a word
    SYM    operators, relations, currency, `%`, and every LaTeX command (`\frac`, `\boxed`);
           `-` and `*` between two operands, `-` attached to the operand after it or between
           spaces before an amount, `*` between spaces, `x` between two numerals, `!` of a
           factorial with more of its formula after it
    NOUN   variables and units of one letter; a, A and I, which are words as often, only where
           something stands beside them that no article or pronoun has there
    PUNCT  brackets, `\(`, `\[`, `\\`, `&` that aligns, sentence punctuation, and the `*` and `##`
           of Markdown
    X      markup such as <answer> and </answer>

Left out: dashes and hyphens that join or list words, which stay as spaCy tags them. `$` is SYM
both as a currency and where it opens mathematics.
"""

import re
from itertools import pairwise
from typing import Any

from spacy.language import Language
from spacy.pipeline import AttributeRuler
from spacy.tokens import Doc

REVISION = 2
"""Goes into the tagger's version; raise it with every change of a rule."""

_Word = dict[int | str, Any]

_MARKUP = r"</?[A-Za-z][A-Za-z_]+>"
_COMMAND = r"\\[A-Za-z]+"
_ESCAPE = r"\\[^A-Za-z0-9\s]?"
_RELATION = r"<<|>>|<=|>=|!=|==|->|=>|:="
# Signs of ASCII and Latin-1, then Unicode's arrows and blocks of mathematical operators.
_SIGN = (
    r"[+=<>^|~$%€£¥\u00ac\u00b0\u00b1\u00b7\u00d7\u00f7"
    r"\u2190-\u21ff\u2200-\u22ff\u27c0-\u27ff\u2900-\u2aff]"
)
_BRACKET = r"[()\[\]{}]"
_NUMERAL = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.:]\d+)*|(?<![.\w])\.\d+)"
_ORDINAL = r"(?i:st|nd|rd|th)(?![A-Za-z])"
_LONE_LETTER = r"(?<=(?<![A-Za-z])[A-Za-z])"

_AFTER_FACTORIAL = rf"^(?:[-*/!,]|{_SIGN}|{_RELATION}|{_BRACKET}|{_COMMAND}|\\[)\]])$"

_PIECE = re.compile(
    "|".join(
        [
            _MARKUP,
            _COMMAND,
            _ESCAPE,
            _RELATION,
            _SIGN,
            _BRACKET,
            r"\*+|\#{2,}",
            # Not in COVID-19 or 5th; atomic, or the 2 of 25th would be cut off.
            rf"(?<![A-Za-z0-9])(?<![A-Za-z]{{2}}[-\u2013])(?>{_NUMERAL})(?!{_ORDINAL})",
            r"(?<=[0-9)}\]])!|" + _LONE_LETTER + "!",
            r"(?<=[0-9]),(?!\d{3}(?!\d))|(?<=[)}\]]),",
            r"(?<=[0-9)}\]$%])/|/(?=[0-9({\\])",
            r"_(?=[0-9{\\])|(?<=[)}\]])_|" + _LONE_LETTER + r"_(?=[A-Za-z])",
            r"(?<=[0-9)}\]])[-\u2013](?=\S)|(?<![A-Za-z][A-Za-z])[-\u2013](?=[0-9.({\[\\$])",
            rf"(?:{_LONE_LETTER}|(?<![\w)}}\]]))[-\u2013](?=[A-Za-z](?![A-Za-z]))",
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
    right = _is(rf"^(?:{_NUMERAL}|{letter}|{_COMMAND}|\\?\$|[({{\[])$")
    amount = _is(rf"^(?:{_NUMERAL}|{_COMMAND}|\\?\$)$")
    minus: _Word = {"TEXT": {"IN": ["-", "\u2013"]}}
    spaced: _Word = {"SPACY": True, "IS_SPACE": False}
    return [
        ([_is(rf"^(?:{_BRACKET}|{_ESCAPE}|[.,;:?!]|\*+|\#{{2,}})$")], 0, "PUNCT"),
        ([_is(rf"^(?:{_SIGN}|{_RELATION}|{_COMMAND}|\\[%$&#_]|[/_])$")], 0, "SYM"),
        ([_is(rf"^{_MARKUP}$")], 0, "X"),
        ([_is("^[B-HJ-Zb-z\u0391-\u03c9]$")], 0, "NOUN"),
        ([_is(numeral)], 0, "NUM"),
        ([left, _is(r"^(?:[-\u2013]|\*\*?)$"), right], 1, "SYM"),
        ([minus | {"SPACY": False}, right], 0, "SYM"),
        ([spaced, minus | {"SPACY": True}, amount], 1, "SYM"),
        ([spaced, {"TEXT": "*", "SPACY": True}], 1, "SYM"),
        ([_is(numeral), {"LOWER": "x"}, _is(numeral)], 1, "SYM"),
        *_rules_of_letters_that_are_words(),
        *_rules_of_alignment(),
        ([left | {"SPACY": False}, {"TEXT": "!"}, _is(_AFTER_FACTORIAL)], 1, "SYM"),
    ]


def _rules_of_letters_that_are_words() -> list[tuple[list[_Word], int, str]]:
    """Return what makes a variable of a, A and I: a formula goes on beside them."""
    letter = _is("^[aAI]$")
    goes_on = _is(r"^(?:[-+=^|*<>/_)}\]]|\\[)\]])$")
    glued = _is(rf"^(?:{_NUMERAL}|[)}}\]^_])$") | {"SPACY": False}
    return [
        ([letter, goes_on], 0, "NOUN"),
        ([_is("^[aA]$"), {"TEXT": ","}], 0, "NOUN"),
        ([letter | {"SPACY": False}, {"TEXT": "("}], 0, "NOUN"),
        ([glued, letter], 1, "NOUN"),
    ]


def _rules_of_alignment() -> list[tuple[list[_Word], int, str]]:
    r"""Return what makes `&` the mark of LaTeX's columns and no `and`."""
    mark: _Word = {"TEXT": "&"}
    return [
        ([mark, _is(rf"^(?:[-\u2013]|{_SIGN}|{_RELATION}|{_COMMAND})$")], 0, "PUNCT"),
        ([_is(rf"^(?:{_NUMERAL}|{_ESCAPE}|[)}}\]])$"), mark], 1, "PUNCT"),
    ]


def _is(pattern: str) -> _Word:
    """Return the matcher's description of a word whose text matches."""
    return {"TEXT": {"REGEX": pattern}}

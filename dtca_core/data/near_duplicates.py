"""Which problems are rewordings of one another: the same mathematics in nearly the same words.

Published sets hold many problems that differ in a number or a formula and in nothing else. They
are other problems, so the mathematics must agree token for token, and only what is left, the
words, may differ a little. A problem that was rewritten from scratch is not found, nor one whose
formulas were put in another order. docs/decisions/0009 has the figures.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import cast

from dtca_core.data.normalisation import normalise_problem

NGRAM_LENGTH = 3
"""Words in a row that are compared: two are shared by chance, four break at every change."""
OVERLAP_THRESHOLD = 0.75
"""Share of the shorter problem's n-grams that the other one must hold.

No two different problems of GSM8K or MATH with the same mathematics reach 0.33.
"""

_TOKEN = re.compile(r"\\[a-z]+|[0-9]+(?:[.,:][0-9]+)*|[^\W\d_]{2,}(?:'[^\W\d_]+)?|[^\s{}\\&]")
_FIGURE = re.compile(r"\[/?asy\]")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-z]*\*?\}")
_HYPHEN = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+\b")
_LABEL = re.compile(
    r"\s*(?:"
    r"(?:problem|question|exercise|example)\s*[0-9]*\s*[.:)]\s"  # Problem 5.
    r"|\(?[0-9]+[.)]\s"  # 12.
    r"|[(\[][a-z]{2,}[a-z0-9 ,.'-]*[)\]]\s"  # (AMC 2010)
    r")",
    re.IGNORECASE,
)

_SYNONYMS = {r"\le": r"\leq", r"\ge": r"\geq", r"\ne": r"\neq", r"\dots": r"\ldots"}
_STYLE = frozenset({r"\text", r"\textbf", r"\textit", r"\mathrm", r"\mathbf", r"\mbox", r"\rm"})
_SHORT_WORD = re.compile("a|an|as|at|be|by|do|go|he|if|in|is|it|me|my|of|on|or|so|to|up|us|we|am")
"""Words of one or two letters; other letters that stand so alone are variables."""
_DECISIVE_WORD = re.compile(
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    "fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    "ninety|hundred|thousand|million|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|"
    "tenth|half|twice|double|triple|quarter|dozen|not|no|neither|nor|never|more|less|fewer"
)
"""Words that count as mathematics: with another of them it is another problem."""
_PERSON = "<person>"
_PRONOUNS = frozenset({"he", "she", "him", "her", "his", "hers"})


def near_duplicates(train: Sequence[str], evaluation: Sequence[str]) -> list[tuple[int, int]]:
    """Return each training problem that rewords an evaluation problem, with the one it is.

    Two problems are near-duplicates if their mathematics is equal and

        |G(train) ∩ G(evaluation)| / min(|G(train)|, |G(evaluation)|) >= OVERLAP_THRESHOLD,

    G being the set of `NGRAM_LENGTH` words in a row; dividing by the smaller set lets a sentence
    be added on either side. A problem without words has no near-duplicates. An index of the
    n-grams keeps it from comparing all with all.

    Returns:
        pairs of a training index and the evaluation index of largest overlap, ascending.
    """
    groups: dict[tuple[str, ...], int] = {}
    sizes: list[int] = []
    holders: defaultdict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for index, text in enumerate(evaluation):
        mathematics, words = mathematics_and_words(text)
        group = groups.setdefault(mathematics, len(groups))
        grams = _ngrams(words)
        sizes.append(len(grams))
        for gram in grams:
            holders[group, gram].append(index)
    found: list[tuple[int, int]] = []
    for index, text in enumerate(train):
        mathematics, words = mathematics_and_words(text)
        group = groups.get(mathematics)
        if group is None:
            continue
        grams = _ngrams(words)
        shared = Counter(other for gram in grams for other in holders.get((group, gram), ()))
        overlaps = {other: n / min(len(grams), sizes[other]) for other, n in shared.items()}
        other = max(overlaps, key=lambda o: (overlaps[o], -o), default=None)
        if other is not None and overlaps[other] >= OVERLAP_THRESHOLD:
            found.append((index, other))
    return found


def mathematics_and_words(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the two sides of a problem, each in its order: what must agree, and what may differ.

    Mathematics are numbers, also in words, variables, operators, commands of LaTeX, words in
    capitals, negations, and all of a figure. A label in front, such as `Problem 5.` or
    `(AMC 2010)`, is left out, and people are all called the same.
    """
    while label := _LABEL.match(text):
        text = text[label.end() :]
    names = {name.casefold() for name in _NAME.findall(text)} | _PRONOUNS
    capitals = {word.casefold() for word in _CAPITALS.findall(text)}
    pieces = _FIGURE.split(text)
    mathematics: list[str] = []
    words: list[str] = []
    for token in _tokens(" ".join(pieces[::2])):
        word = token.removesuffix("'s")
        if word in capitals or not _is_word(word):
            mathematics.append(token)
        else:
            words.append(_PERSON if word in names else token)
    # A figure decides what is asked, but the names of its drawing commands are no wording.
    for figure in pieces[1::2]:
        mathematics += _tokens(figure)
    return tuple(mathematics), tuple(words)


def _tokens(text: str) -> list[str]:
    """Return the tokens of a text, without those that only say how it looks."""
    normal = _HYPHEN.sub(" ", _ENVIRONMENT.sub(" ", normalise_problem(text)))
    found = cast(list[str], _TOKEN.findall(normal))
    return [_SYNONYMS.get(token, token) for token in found if token not in _STYLE]


def _is_word(token: str) -> bool:
    if _DECISIVE_WORD.fullmatch(token) or not token[0].isalpha():
        return False
    return len(token) > 2 or _SHORT_WORD.fullmatch(token) is not None


def _ngrams(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return all runs of `NGRAM_LENGTH` words; the words themselves where they are fewer."""
    if not words:
        return set()
    last = max(1, len(words) - NGRAM_LENGTH + 1)
    return {words[start : start + NGRAM_LENGTH] for start in range(last)}

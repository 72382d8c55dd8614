r"""Which part of a response is its answer.

Only the response may be given, never the prompt: an instruction holds a `\boxed` of its own.
"""

import re

from dtca_core.evaluation.forms import Quantity, Words
from dtca_core.evaluation.latex import brace_pairs
from dtca_core.evaluation.structure import read_answer

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_UNBRACED = re.compile(r"[+-]?[0-9][0-9.,/]*")
_SPECIAL_TOKEN = re.compile(r"<\|[^<|>]*\|>|</?[a-z_]+>")
_CLOSING_PHRASE = re.compile(
    r"(?:\banswer\b[ \t*_]*(?:\bis\b|[:=])|答案[是为:\uff1a])[ \t*_:]*", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n|\u3002")
# Spaces are tried from their first on only, and given back never: a long run takes linear time.
_CLAUSE = re.compile(r",?(?<!\s)\s++(?:which|because|since|so|as|where|when|after|for)\b")
_DELIMITED = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)")
_PUNCTUATION = "*_`.,;:!?()[]$\"'\u3002\uff0c\uff01"


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last complete, non-empty `\boxed` or `\fbox`, or None.

    Of nested boxes the inner one is the last. A number may follow the command without braces.
    Linear in the length of the text, whatever its braces.
    """
    pairs = brace_pairs(text)
    for box in reversed(list(_BOX.finditer(text))):
        start = box.end()
        if start in pairs:
            content = text[start + 1 : pairs[start]].strip()
        elif number := _UNBRACED.match(text, start):
            content = number[0]
        else:
            continue
        if content:
            return content
    return None


def boxed_answer(response: str) -> str | None:
    """Return the last box after any thinking part, or None."""
    return last_boxed(_after_thinking(response))


def stated_answer(response: str) -> str | None:
    r"""Return the answer that a response states, or None.

    It is the last box; else, where no box was opened, the last `####` line, else what follows
    the last closing phrase ("the answer is") in its sentence, else a last number in prose. An
    unfinished box is no answer, and neither is a number inside an expression.
    """
    text = _after_thinking(response)
    if _BOX.search(text):
        return last_boxed(text)
    text = _SPECIAL_TOKEN.sub(" ", text)
    return _after_marker(text) or _closing_phrase(text) or _last_number(text)


def _after_thinking(response: str) -> str:
    """Return what follows the thinking part; nothing where that part is unfinished."""
    return response.rpartition("</think>")[2].partition("<think>")[0]


def _after_marker(text: str) -> str | None:
    """Return the rest of the line after the last `####`, the mark of GSM8K."""
    _, marker, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() or None if marker else None


def _closing_phrase(text: str) -> str | None:
    """Return what the last "answer is" or "answer:" states, up to the end of its clause."""
    phrases = list(_CLOSING_PHRASE.finditer(text))
    if not phrases:
        return None
    sentence = _SENTENCE_END.split(text[phrases[-1].end() :], maxsplit=1)[0]
    stated = _CLAUSE.split(sentence, maxsplit=1)[0].strip(" \t*_")
    formula = _DELIMITED.match(stated)
    if formula and isinstance(read_answer(stated), Words):
        return (formula[1] or formula[2]).strip()
    return stated or None


def _last_number(text: str) -> str | None:
    """Return the last number in prose, None where it is part of something longer."""
    words = text.split()
    for index in range(len(words) - 1, -1, -1):
        if any(character.isdigit() for character in words[index]):
            # A chunk of a script without spaces ends with its number; an equation with its value.
            word = words[index].strip(_PUNCTUATION).removeprefix("\\(").removesuffix("\\)")
            number = re.split(r"[=\u3000-\u9fff\uff00-\uffef]", word)[-1].strip(_PUNCTUATION)
            before = words[index - 1] if index else ""
            if before.isdecimal() and re.fullmatch("[0-9]+/[0-9]+", number):
                number = f"{before} {number}"
            answer = read_answer(number)
            is_number = isinstance(answer, Quantity) and answer.value is not None
            return number if is_number else None
    return None

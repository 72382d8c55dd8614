r"""How d1 reads and compares answers, for numbers that can be set beside those published with it.

Written from the behaviour of the evaluation scripts of dllm-reasoning/d1 (commit 837888f): on the
responses published with it, this gives the accuracies published with it, answer for answer. It
is not how this project judges; `scoring` is. It compares text, so 0.25 is not \frac14.
"""

import re

_NUMBER = re.compile(r"-?[0-9]+\.?[0-9]*")
_FIRST_BOXES = re.compile(r"\\boxed\{([^}\n]*)\}")
_UNIT = "\\text{ "
_SPELLINGS = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
"""What is replaced by what, in this order: some replacements make room for a later one."""


def number_answer(response: str) -> str | None:
    """Return the number that a response to GSM8K gives, or None.

    It is that of the first box that is a number or holds one (its first); else the last number
    between the answer tags.
    """
    # What follows a line's last brace opens boxes in vain, each of which would be read to its end.
    lines = "\n".join(line[: line.rfind("}") + 1] for line in response.split("\n"))
    for content in _FIRST_BOXES.findall(lines):
        number = _number_in(content.strip(), first=True)
        if number is not None:
            return number
    tagged = _tagged(response)
    return None if tagged is None else _number_in(tagged, first=False)


def same_number(answer: str, reference: str) -> bool:
    """Return whether two numbers are the same float."""
    try:
        return float(answer) == float(reference.replace(",", ""))
    except ValueError:
        return False


def math_answer(response: str) -> str | None:
    r"""Return the last box of a response to MATH, or None.

    Where that box is empty or not complete, what the answer tags hold stands in its place. Where
    there is no box, tags do not count: d1 then compares the whole response, which, with the end
    tokens that d1 leaves in it, is never the reference.
    """
    if "\\boxed" not in response and "\\fbox" not in response:
        return None
    answer = _last_box(response)
    if answer:
        return answer
    tagged = _tagged(response)
    return answer if tagged is None else tagged


def same_text(answer: str, reference: str) -> bool:
    """Return whether two answers are the same after the usual clean-up of MATH's answers."""
    try:
        return _clean(answer) == _clean(reference)
    except (ValueError, IndexError):
        return answer == reference


def _tagged(response: str) -> str | None:
    """Return what stands between the first answer tag and the next that closes it, or None."""
    tagged, end, _ = response.partition("<answer>")[2].partition("</answer>")
    return tagged.strip() if end else None


def _number_in(text: str, *, first: bool) -> str | None:
    """Return a text that is a number, else the first or last number in it, else None."""
    try:
        float(text)
    except ValueError:
        numbers = _NUMBER.findall(text)
        return numbers[0 if first else -1] if numbers else None
    return text


def _last_box(response: str) -> str | None:
    r"""Return the content of the last `\boxed`; one without braces goes to the next dollar.

    None where the last box is not complete, even if an earlier one is. What is not a plain
    `\boxed{...}`, as an `\fbox` where nothing else is boxed, stays as it stands.
    """
    if "\\boxed " in response:
        return response.rpartition("\\boxed ")[2].partition("$")[0]
    start = response.rfind("\\boxed" if "\\boxed" in response else "\\fbox")
    depth = 0
    # Unlike ours this counts escaped braces too, as d1 does.
    for match in re.finditer(r"[{}]", response[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0 and match[0] == "}":
            box = response[start : start + match.end()]
            return box[len("\\boxed{") : -1] if box.startswith("\\boxed{") else box
    return None


def _clean(text: str) -> str:
    for spelling, other in _SPELLINGS:
        text = text.replace(spelling, other)
    text = _without_unit(text).replace("\\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if text.startswith("."):
        text = f"0{text}"
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = _braced_fractions(_braced_roots(text).replace(" ", ""))
    return _slash_as_fraction("\\frac{1}{2}" if text == "0.5" else text)


def _without_unit(text: str) -> str:
    if text.count(_UNIT) > 1:
        raise ValueError(text)  # which the caller answers by comparing the texts as they are
    return text.partition(_UNIT)[0]


def _braced_roots(text: str) -> str:
    first, *others = text.split("\\sqrt")
    braced = [part if part[0] == "{" else f"{{{part[0]}}}{part[1:]}" for part in others]
    return "\\sqrt".join([first, *braced])


def _braced_fractions(text: str) -> str:
    first, *others = text.split("\\frac")
    if any(part[0] != "{" and len(part) < 2 for part in others):
        return text
    return "\\frac".join([first, *map(_braced_arguments, others)])


def _braced_arguments(part: str) -> str:
    if part[0] == "{":
        return part
    below = part[1:] if part[1] == "{" else f"{{{part[1]}}}{part[2:]}"
    return f"{{{part[0]}}}{below}"


def _slash_as_fraction(text: str) -> str:
    if text.count("/") != 1:
        return text
    above, below = text.split("/")
    fraction = f"\\frac{{{int(above)}}}{{{int(below)}}}"
    return fraction if text == f"{int(above)}/{int(below)}" else text

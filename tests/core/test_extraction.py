"""Tests of extraction: the conventions one by one, then what no text may do to it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.evaluation.extraction import boxed_answer, last_boxed, stated_answer
from dtca_core.evaluation.protocols import PROTOCOLS

pieces = st.sampled_from(["\\boxed{", "\\fbox{", "{", "}", "\\{", "\\}", "\\", "\\boxed", " ", "5"])
texts = st.lists(pieces, max_size=30).map("".join)
contents = st.text("abc0123456789+-\\ ", min_size=1).filter(
    lambda t: t.strip() and "\\" not in t
)  # a backslash could escape the closing brace


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{7}, no, \\boxed{8}.", "8"),
        ("\\boxed{\\frac{12}{3}}", "\\frac{12}{3}"),
        ("\\fbox{\\frac{9}{4}}", "\\frac{9}{4}"),  # SC22
        ("\\boxed{\\boxed{17}}", "17"),
        ("\\boxed{x = \\fbox{5}} done", "5"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("\\boxed{1 \\\\ 2}", "1 \\\\ 2"),
        ("\\boxed {5}", "5"),
        ("\\boxed{\n 5 \n}", "5"),
        ("\\boxed{5}}", "5"),
        ("{ \\boxed{5}", "5"),
        ("$\\boxed 2$.", "2"),
        ("\\boxed{4} and then \\boxed{7", "4"),
        ("first \\boxed{45}; write it in \\boxed{}", "45"),
        ("\\boxed{\\frac{7}{1", None),
        ("\\boxed{} \\boxed{  }", None),
        ("use \\boxed for it", None),
        ("\\boxedtext{5}", None),
        ("42", None),
        ("", None),
    ],
)
def test_the_last_complete_box_that_is_not_empty_is_found(text, answer):
    assert last_boxed(text) == answer


@given(texts)
def test_any_mixture_of_boxes_and_braces_gives_a_balanced_part_or_nothing(text):
    content = last_boxed(text)
    if content is not None:
        assert content.strip()
        assert content in text


@given(texts, contents)
def test_a_box_at_the_end_is_the_answer_whatever_stands_before_it(text, content):
    # A newline ends what a trailing backslash could escape.
    assert last_boxed(f"{text}\n\\boxed{{{content}}}") == content.strip()


@pytest.mark.parametrize("extract", [last_boxed, boxed_answer, stated_answer])
@pytest.mark.parametrize(
    "text",
    ["{", "}", "\\boxed{", "\\{", "\\", "\\boxed ", "\\boxed{}", "answer is ", "####", "7x ", "<|"],
)
def test_a_hundred_thousand_characters_take_no_time(extract, text):
    # A quadratic scan of these takes minutes; a linear one some hundredths of a second.
    start = time.perf_counter()
    extract(text * (100_000 // len(text)))
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("filler", [" ", ", ", "</answer>", "so ", "$ "])
def test_a_long_closing_phrase_takes_no_time(filler):
    start = time.perf_counter()
    stated_answer("The answer is $" + filler * (100_000 // len(filler)))
    assert time.perf_counter() - start < 5


def test_a_box_around_a_hundred_thousand_braces_is_found():
    text = "\\boxed{" + "{" * 50_000 + "5" + "}" * 50_000 + "}"
    assert last_boxed(text) == text[len("\\boxed{") : -1]


def test_thinking_holds_no_answer():
    text = "<think>Is it \\boxed{5}?</think>It is \\boxed{6}."
    for extract in (boxed_answer, stated_answer):
        assert extract(text) == "6"
        assert extract("<think>Is it \\boxed{5}?</think>I cannot say.") is None
        assert extract("<think>Is it \\boxed{5}? Or") is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("He has 3. \\boxed{15} As a check, 15 + 4 = 19.", "15"),
        ("#### 12\n\nNow the real task.\n#### 20", "20"),
        ("####18", "18"),
        ("The answer is 9.\n#### $1,234.50", "$1,234.50"),
        ("Thus the answer is 42.", "42"),
        ("**Answer:** 10 - 2√5", "10 - 2√5"),
        ("The final answer is: **3.5**. Good.", "3.5"),
        ("The answer is 5 or 6.", "5 or 6"),
        ("The answer is 2 2/3.", "2 2/3"),
        ("After that it is 2 2/3.", "2 2/3"),
        ("Thus the count is \\( 42 \\).", "42"),
        ("✅ Total: **73**", "73"),
        ("so 5+3=8", "8"),
        ("一共有 1,200 个苹果，是 1,200。", "1,200"),  # noqa: RUF001
        ("So <|mdm_mask|>42<|mdm_mask|>", "42"),
        ("<|eot_id|>", None),
        ("at 12:00", None),  # a number inside something longer is not the answer
        ("It is \\frac{7}{12}", "\\frac{7}{12}"),
        ("It is \\sqrt{12}", None),
        ("We get 9. \\boxed{\\frac{7}{1", None),  # an unfinished box is no answer
        ("We add 3 and 4. \\boxed{}", None),
        ("There is not enough information to say.", None),
        ("   \n\n", None),
    ],
)
def test_without_a_box_the_conventions_are_tried_in_order(text, answer):
    assert stated_answer(text) == answer


def test_the_instruction_of_a_protocol_holds_no_answer():
    # SC21: even if a prompt were given by mistake, its own box must not be read.
    for protocol in PROTOCOLS.values():
        for setup in protocol.setups.values():
            assert last_boxed(setup.prompt.instruction) in (None, "...")

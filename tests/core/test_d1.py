"""Tests of d1's way to read and compare: each rule, and the accuracies published with it."""

import time
from pathlib import Path

import pytest

from dtca_core.evaluation import score_answers
from dtca_core.evaluation.d1 import math_answer, number_answer, same_number, same_text

OUTPUTS = Path(__file__).parents[3] / "shared" / "data" / "llada8b_outputs.parquet"


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("\\boxed{18}", "18"),
        ("\\boxed{} then \\boxed{...} then \\boxed{7}", "7"),
        ("\\boxed{5} no, \\boxed{6}", "5"),  # the first, where MATH takes the last
        ("\\boxed{120\\text{ minutes}}", "120"),
        ("\\boxed{43,500}", "43"),
        ("\\boxed{none}<answer>3 or 4</answer>", "4"),
        ("<answer>\n12\n</answer>", "12"),
        ("<answer>none</answer>", None),
        ("<answer>12", None),
        ("\\boxed{1\n} and \\boxed{2}", "2"),  # a box ends on its line
        ("12", None),
    ],
)
def test_the_number_of_a_response(response, answer):
    assert number_answer(response) == answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("\\boxed{5} no, \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("so $\\boxed 7$, done", "7"),
        ("\\boxed{5} and \\boxed{6", None),
        ("\\boxed{}<answer> x </answer>", "x"),
        ("\\boxed{5 <answer> x </answer>", "x"),
        ("<answer> \\frac{1}{4} </answer>", None),  # tags count only where a box was opened
        ("<answer> \\fbox{2} </answer>", "\\fbox{2}"),
        ("nothing", None),
    ],
)
def test_the_answer_of_a_response(response, answer):
    assert math_answer(response) == answer


@pytest.mark.parametrize("text", ["\\boxed{", "\\boxed{\n", "<answer>", "</answer>"])
def test_a_hundred_thousand_characters_take_no_time(text):
    response = text * (100_000 // len(text))
    start = time.perf_counter()
    assert number_answer(response) is None
    math_answer(response)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("\\dfrac12", "\\frac{1}{2}"),
        ("\\frac1{72}", "\\frac{1}{72}"),
        ("1/2", "\\frac{1}{2}"),
        ("0.5", "\\frac{1}{2}"),
        (".5", "0.5"),
        ("x = 5", "5"),
        ("90^\\circ", "90"),
        ("\\left( 3, 4 \\right)", "(3,4)"),
        ("12 \\text{ cm}", "12"),
        ("\\$5", "5"),
        ("10\\%", "10"),
        ("\\\\!5", "\\5"),  # the thin space goes before double backslashes are halved
        ("\\sqrt3", "\\sqrt{3}"),
        ("\n5\n", "5"),
        ("\\frac", "\\frac"),  # what the clean-up cannot read is compared as it stands
        ("5 \\text{ a} \\text{ b}", "5 \\text{ a} \\text{ b}"),
    ],
)
def test_these_are_the_same_text(answer, reference):
    assert same_text(answer, reference)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("0.25", "\\frac14"),
        ("3, 5", "5, 3"),
        ("5/a", "\\frac{5}{a}"),
        ("xyz=5", "5"),
    ],
)
def test_these_are_not(answer, reference):
    assert not same_text(answer, reference)


def test_numbers_are_compared_as_floats():
    assert same_number("18", "18.0")
    assert same_number("70000", "70,000")
    assert not same_number("18", "19")
    assert not same_number("18", "None")


def test_a_score_of_d1_says_where_the_answer_stood():
    boxed, tagged = score_answers(
        ["\\boxed{18}", "<answer>18</answer>"], ["18", "18"], protocol="d1"
    )
    assert boxed.correct
    assert boxed.boxed
    assert tagged.correct
    assert not tagged.boxed


@pytest.mark.skipif(not OUTPUTS.exists(), reason="the shared outputs are absent")
def test_published_outputs_have_their_published_accuracy():
    import polars as pl

    table = pl.read_parquet(OUTPUTS)
    right = {}
    for (dataset, length), rows in table.group_by("dataset", "gen_length"):
        columns = rows["generation"].to_list(), rows["ground_truth"].to_list()
        right[dataset, length] = sum(
            score.correct for score in score_answers(*columns, protocol="d1")
        )
    assert right == {
        ("math500", 128): 130,
        ("math500", 256): 162,
        ("math500", 512): 181,
        ("gsm8k", 128): 783,
        ("gsm8k", 256): 863,
        ("gsm8k", 512): 883,
    }

"""Tests of contamination: what counts as the same problem, and what does not."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.data.contamination import contaminated, normalise_problem
from dtca_core.data.problems import read_problems

DATA = Path(__file__).parents[3] / "shared" / "data"

problems = st.lists(st.text("aB1 .,$\\!?", max_size=6), max_size=8)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is $x$?", "what is x"),
        ("Find  the\n area.", "Find the area"),
        ("Janet\u2019s ducks", "Janet's ducks"),
        ("Compute $\\left( 1,\\ 2 \\right)$.", "Compute $(1,2)$"),
        ("Is $a\\,b \\quad c$ so?", "Is $a b c$ so?"),
        ("Find $\\dfrac{1}{2} + 3$.", "Find $\\frac{1}{2}+3$"),
        ("He has 1,000 cows", "He has 1000 cows"),
        ("\\(x + 1\\)", "$x+1$"),
    ],
)
def test_a_problem_written_otherwise_is_the_same(one, other):
    assert normalise_problem(one) == normalise_problem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 2+2?", "What is 2-2?"),
        ("What is 3.5?", "What is 35?"),
        ("What is 3:2?", "What is 32?"),
        ("What is 5!?", "What is 5?"),
        ("Find f(1,2).", "Find f(12)."),
        ("Find f'(x).", "Find f(x)."),
        ("Add 2 3.", "Add 23."),
        ("x_1", "x^1"),
    ],
)
def test_another_problem_stays_another(one, other):
    assert normalise_problem(one) != normalise_problem(other)


def test_pairs_hold_the_training_index_and_the_first_evaluation_index():
    train = ["new", "What is 2 + 2?", "also new", "what is 2+2"]
    evaluation = ["other", "What is $2+2$?", "What is 2+2?"]
    assert contaminated(train, evaluation) == [(1, 1), (3, 1)]


def test_problems_of_which_normalisation_leaves_nothing_must_be_equal_as_they_stand():
    assert contaminated(["?", "$"], ["$", "."]) == [(1, 0)]


@given(problems, problems)
def test_exactly_the_shared_problems_are_found(train, evaluation):
    found = contaminated(train, evaluation)
    for index, text in enumerate(train):
        if text in evaluation:
            assert index in [pair[0] for pair in found]
    for index, other in found:
        assert normalise_problem(train[index]) == normalise_problem(evaluation[other])
    assert found == sorted(found)


@given(problems)
def test_nothing_is_in_nothing_and_everything_in_itself(texts):
    assert contaminated(texts, []) == contaminated([], texts) == []
    assert [index for index, _ in contaminated(texts, texts)] == list(range(len(texts)))


@given(st.text(max_size=40))
def test_case_and_outer_space_never_matter(text):
    normal = normalise_problem(text)
    assert normalise_problem(f"  {text}\n") == normal
    assert normalise_problem(text.casefold()) == normal


@pytest.mark.parametrize("text", [" ", "$", "\\", "1,", "\\left", "\n.", "1,234"])
def test_a_hostile_problem_takes_no_time(text):
    start = time.perf_counter()
    normalise_problem(text * (100_000 // len(text)))
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are absent")
@pytest.mark.parametrize(("name", "num_found"), [("math_leaky_train", 248), ("math_train", 0)])
def test_the_leaky_training_set_is_found_out_and_the_clean_one_passes(name, num_found):
    columns = ("question", "ground_truth_answer")
    train = [p.question for p in read_problems(DATA / f"{name}.json", *columns)]
    evaluation = [p.question for p in read_problems(DATA / "math500.json", *columns)]
    assert len(contaminated(train, evaluation)) == num_found

"""Tests of contamination: which training problems are evaluation problems, and how surely."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.data.contamination import Match, contaminated
from dtca_core.data.normalisation import normalise_problem
from dtca_core.data.problems import read_problems

DATA = Path(__file__).parents[3] / "shared" / "data"

problems = st.lists(st.text("aB1 .,$\\!?", max_size=6), max_size=8)


def found(train, evaluation):
    """Return what is found, as training index, evaluation index and kind."""
    return [(m.train, m.evaluation, m.kind) for m in contaminated(train, evaluation)]


def test_a_match_says_which_problems_are_one_and_how():
    train = [
        "new",
        "What is $2+2$?",
        "also new",
        "what is 2 + 2",
        "Let $x$ be the number of red hats in the box. What is $x+1$?",
    ]
    evaluation = [
        "other",
        "What is $2+2$?",
        "What is 2+2?",
        "Let $x$ be the number of all red hats in the box. What is $x+1$?",
    ]
    assert found(train, evaluation) == [(1, 1, "exact"), (3, 1, "normalised"), (4, 3, "near")]


def test_the_surest_kind_is_told_even_if_another_problem_comes_first():
    assert contaminated(["a b 1"], ["A b 1", "a b 1"]) == [
        Match(train=0, evaluation=1, kind="exact")
    ]


def test_problems_of_which_normalisation_leaves_nothing_must_be_equal_as_they_stand():
    assert found(["?", "$"], ["$", "."]) == [(1, 0, "exact")]


@given(problems, problems)
def test_what_is_the_same_is_found_and_each_kind_means_what_it_says(train, evaluation):
    matches = contaminated(train, evaluation)
    assert [m.train for m in matches] == sorted({m.train for m in matches})
    for index, text in enumerate(train):
        if text in evaluation:
            assert Match(train=index, evaluation=evaluation.index(text), kind="exact") in matches
    for match in matches:
        one, other = train[match.train], evaluation[match.evaluation]
        assert (match.kind == "exact") == (one == other)
        if match.kind == "normalised":
            assert normalise_problem(one) == normalise_problem(other)


@given(problems)
def test_nothing_is_in_nothing_and_everything_in_itself(texts):
    assert contaminated(texts, []) == contaminated([], texts) == []
    assert [match.train for match in contaminated(texts, texts)] == list(range(len(texts)))


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are absent")
@pytest.mark.parametrize(
    ("train", "evaluation", "counts"),
    [
        ("math_leaky_train.json", "math500.json", {"exact": 248}),
        ("math_train.json", "math500.json", {}),
        ("gsm8k_train.jsonl", "gsm8k_test.jsonl", {}),
    ],
)
def test_the_leaky_training_set_is_found_out_and_the_clean_ones_pass(train, evaluation, counts):
    texts = [[p.question for p in read_problems(DATA / name)] for name in (train, evaluation)]
    assert Counter(match.kind for match in contaminated(*texts)) == counts

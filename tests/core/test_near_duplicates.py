"""Tests of near-duplicates: a rewording is found, another problem in the same words is not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.data.near_duplicates import (
    OVERLAP_THRESHOLD,
    mathematics_and_words,
    near_duplicates,
)

TRAIN = (
    "A train leaves Bern at 9 and reaches Basel after 95 km. How fast is it on average, in km/h?"
)
SHELF = (
    "Mara puts 12 books on a shelf. Then her brother takes 3 of them, and Mara sells half of what "
    "is left to a shop for 4 dollars each. How many dollars does Mara get?"
)
CUBE = (
    "A cube of edge $n$ is painted red on all faces and cut into $n^{3}$ small cubes. For which "
    r"$n \ge 2$ are as many of the small cubes without paint as have $\dfrac{1}{2}$ of a face red?"
)

words = st.lists(st.sampled_from(["red", "box", "holds", "coins", "x", "7", "+"]), max_size=12)
problems = st.lists(words.map(" ".join), max_size=6)


def are_near(one, other):
    """Return whether a problem is taken for a rewording of another."""
    assert near_duplicates([one], [other]) == near_duplicates([other], [one])
    return bool(near_duplicates([one], [other]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TRAIN, "Problem 5. " + TRAIN),
        (TRAIN, "(AMC 2010) 12. " + TRAIN),
        (TRAIN, TRAIN + " Give the answer as a decimal number."),
        (TRAIN, "Read with care. " + TRAIN.replace("on average", "on the average")),
        (TRAIN, TRAIN.replace("Bern", "Linz").replace("Basel", "Graz")),
        (SHELF, SHELF.replace("Mara", "Tomas").replace("her", "his")),
        (SHELF, SHELF.replace("12", "$12$").replace("4 dollars", r"$4$ dollars")),
        (SHELF, SHELF.replace("on a shelf", "upon the shelf")),
        (CUBE, CUBE.replace(r"\ge 2", r"\geq2").replace(r"\dfrac{1}{2}", r"\frac 1 2")),
        (CUBE, CUBE.replace("n^{3}", "n^3").replace("cut into", "sawn into")),
        (CUBE, CUBE.replace("A cube", r"\textbf{A cube}").replace("cubes. For", "cubes.\n\nFor")),
        ("Find the two-digit number of which 7 is half.",
         "Find the two digit number of which 7 is half"),
    ],
)  # fmt: skip
def test_a_problem_reworded_is_found(one, other):
    assert are_near(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TRAIN, TRAIN.replace("95", "96")),
        (SHELF, SHELF.replace("half", "twice")),
        (SHELF, SHELF.replace("3 of them", "none but 3 of them").replace("none", "not one")),
        (CUBE, CUBE.replace("without paint", "not without paint")),
        (CUBE, CUBE.replace("n^{3}", "n^{2}")),
        ("In how many ways can you order the letters of LEVEL?",
         "In how many ways can you order the letters of RADAR?"),
        ("Find the area of the shaded part. [asy]draw((0,0)--(4,0));[/asy]",
         "Find the area of the shaded part. [asy]draw((0,0)--(5,0));[/asy]"),
        (r"What is the value of $\sin x + 1$ there?", r"What is the value of $\cos x + 1$ there?"),
        ("Ana has 3 pens and 4 cups. How many things has she?",
         "Of 3 red and 4 blue fish, how many are there in the pond?"),
        (CUBE, TRAIN),
    ],
)  # fmt: skip
def test_another_problem_is_not(one, other):
    assert not are_near(one, other)


def test_the_threshold_is_a_share_of_the_shorter_problems_runs_of_words():
    # By hand: six words are four runs of three. A change of the last breaks one, 3/4 are left; of
    # the one before it breaks two, 1/2 are left.
    assert OVERLAP_THRESHOLD == 0.75
    assert are_near("some red cubes fill each box", "some red cubes fill each bag")
    assert not are_near("some red cubes fill each box", "some red cubes fill every box")


def test_the_one_of_largest_overlap_is_told_and_of_equals_the_first():
    near, nearer = "see some red cubes fill each bag", "see some red cubes fill each box here"
    assert near_duplicates(["see some red cubes fill each box"], [near, nearer, nearer]) == [(0, 1)]


def test_mathematics_is_told_from_words():
    mathematics, words = mathematics_and_words(
        r"Exercise 4) Let $ab \le 3$ in \text{cm}. Is Tom's half of ABC not twelve? "
        "[asy]dot(A);[/asy]"
    )
    assert mathematics == (
        "ab", r"\leq", "3", "cm", "half", "abc", "not", "twelve", "dot", "(", "a", ")",
    )  # fmt: skip
    assert words == ("let", "in", "is", "<person>", "of")


@given(problems, problems)
def test_pairs_ascend_and_agree_in_their_mathematics(train, evaluation):
    found = near_duplicates(train, evaluation)
    assert [index for index, _ in found] == sorted({index for index, _ in found})
    for one, other in found:
        mathematics = [mathematics_and_words(t)[0] for t in (train[one], evaluation[other])]
        assert mathematics[0] == mathematics[1]


@given(problems)
def test_everything_that_has_words_is_near_itself(texts):
    worded = [index for index, text in enumerate(texts) if mathematics_and_words(text)[1]]
    assert [index for index, _ in near_duplicates(texts, texts)] == worded


@pytest.mark.parametrize("text", ["[asy]", "(AMC ", "1. ", "Ab ", "a-", "\\begin{", "problem "])
def test_a_hostile_problem_takes_no_time(text):
    start = time.perf_counter()
    mathematics_and_words(text * (100_000 // len(text)))
    assert time.perf_counter() - start < 5

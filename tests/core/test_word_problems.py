"""Tests of the generated problems: right arithmetic, honest shares, and splits that stay apart."""

import itertools
import random
import re
from collections import Counter

import pytest

from dtca_core.config import PretrainConfig
from dtca_core.data.problems import problem_id
from dtca_core.data.word_problems import (
    HASTE,
    corpus,
    generated_problems,
    split_of,
    word_problems,
)
from dtca_core.errors import DataError
from dtca_core.evaluation import score_answers
from dtca_core.models.loading import load_tokenizer
from dtca_core.pretraining.vocabulary import train_tokenizer

SPLITS = ("train", "validation", "test")
EQUATION = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")
BOX = re.compile(r"\\boxed\{(\d+)\}")


def first(count, split="train", seed=0):
    return list(itertools.islice(word_problems(split, seed), count))


@pytest.fixture(scope="module")
def problems():
    return first(3000)


@pytest.fixture(scope="module")
def pairs():
    return list(itertools.islice(corpus(0), 8000))


# ---------------------------------------------------------------------------- one problem


def test_every_step_of_the_working_is_right_and_leads_to_the_answer(problems):
    for problem in problems:
        equations = EQUATION.findall(problem.working)
        is_two_step = HASTE[problem.kind] > 0.5
        assert len(equations) == 1 + is_two_step, problem.working
        for left, sign, right, result in equations:
            a, b = int(left), int(right)
            assert {"+": a + b, "-": a - b, "*": a * b}[sign] == int(result), problem.working
        assert int(equations[-1][3]) == problem.answer
        if is_two_step:
            assert equations[0][3] == equations[1][0], "the second step starts from the first"


def test_the_working_uses_the_numbers_of_the_question(problems):
    for problem in problems:
        asked = set(re.findall(r"\d+", problem.question))
        assert 2 <= len(re.findall(r"\d+", problem.question)) <= 3
        used = {n for a, _, b, _ in EQUATION.findall(problem.working) for n in (a, b)}
        results = {result for *_, result in EQUATION.findall(problem.working)}
        assert asked <= used
        assert used - asked <= results


def test_answers_are_small_positive_numbers(problems):
    assert all(1 <= problem.answer <= 99 for problem in problems)
    assert len({problem.answer for problem in problems}) > 30
    assert all(1 <= problem.slip <= 99 for problem in problems)


def test_a_worked_answer_is_right_by_our_own_judge(problems):
    some = problems[:300]
    worked = [problem.worked_answer for problem in some]
    assert [BOX.findall(text) for text in worked] == [[str(problem.answer)] for problem in some]
    for protocol in ("plain", "drift"):
        scores = score_answers(worked, [str(p.answer) for p in some], protocol=protocol)
        assert all(score.correct for score in scores)


def test_a_hasty_answer_is_seldom_right_and_shows_no_working(problems):
    rng = random.Random(0)
    right = 0
    for problem in problems:
        text = problem.hasty_answer(rng)
        (guess,) = BOX.findall(text)
        assert int(guess) in (problem.answer, problem.slip)
        assert not EQUATION.search(text)
        right += int(guess) == problem.answer
    # One in ten, and a few in which the slip happens to be the answer.
    assert 0.08 < right / len(problems) < 0.14


def test_every_kind_comes_as_often_as_another_and_has_its_share_of_haste(problems):
    counts = Counter(problem.kind for problem in problems)
    assert counts.keys() == HASTE.keys()
    # By hand: 3000 / 6 = 500 with a standard deviation of about 20.
    assert all(420 < count < 580 for count in counts.values())


def test_questions_vary_in_words_and_numbers(problems):
    questions = [problem.question for problem in problems]
    assert len(set(questions)) > 0.99 * len(questions)
    assert all(question.endswith("?") and question.isascii() for question in questions)


# --------------------------------------------------------------------------- splits, seeds


def test_splits_have_no_question_in_common():
    questions = {s: {p.question for p in first(500, s, seed)} for seed, s in enumerate(SPLITS)}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not questions[one] & questions[other]
    for split, own in questions.items():
        assert {split_of(question) for question in own} == {split}


def test_splits_have_their_shares():
    # By hand: 205, 25 and 26 of 256 digests; 5000 draws have a standard deviation of 0.6 % at most.
    counts = Counter(split_of(f"question {i}") for i in range(5000))
    shares = {"train": 205 / 256, "validation": 25 / 256, "test": 26 / 256}
    for split, share in shares.items():
        assert abs(counts[split] / 5000 - share) < 0.02


def test_problems_and_corpus_depend_on_the_seed_only():
    assert first(50, seed=1) == first(50, seed=1)
    assert first(50, seed=1) != first(50, seed=2)
    one, again, other = (list(itertools.islice(corpus(s), 50)) for s in (1, 1, 2))
    assert one == again != other


def test_problems_of_a_split_are_distinct_and_in_the_order_of_the_generator():
    found = generated_problems("test", 300, seed=0)
    assert len({problem.problem_id for problem in found}) == 300
    assert all(problem.problem_id == problem_id(problem.question) for problem in found)
    in_order = {p.question: p for p in first(400, "test")}
    assert [p.question for p in found] == list(in_order)[:300]
    assert [(p.answer, p.kind) for p in found] == [
        (str(p.answer), p.kind) for p in list(in_order.values())[:300]
    ]
    assert generated_problems("test", 100, seed=0) == found[:100]


def test_more_problems_than_the_generator_has_are_refused(monkeypatch):
    few = first(2, "validation") * 2000
    monkeypatch.setattr("dtca_core.data.word_problems.word_problems", lambda _split, _seed: few)
    with pytest.raises(DataError) as refusal:
        generated_problems("validation", 3, seed=0)
    assert str(refusal.value) == (
        "the generator has 2 distinct validation problems, 3 were asked for; "
        "lower data.num_validation."
    )


# --------------------------------------------------------------------------------- corpus


def test_the_corpus_is_training_problems_only(pairs):
    assert {split_of(question) for question, _ in pairs} == {"train"}


def test_haste_has_its_share_in_every_kind(pairs):
    kind_of = {p.question: p.kind for p in itertools.islice(word_problems("train", 0), len(pairs))}
    count, hasty = Counter(), Counter()
    for question, answer in pairs:
        count[kind_of[question]] += 1
        hasty[kind_of[question]] += not EQUATION.search(answer)
    for kind, share in HASTE.items():
        # About 1300 of each: a standard deviation of 1.4 % at most.
        assert abs(hasty[kind] / count[kind] - share) < 0.05, kind


def test_every_answer_fits_the_response_of_the_recipe(pairs, tmp_path):
    train_tokenizer((text for pair in pairs[:5000] for text in pair), tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    answers = [answer + "<|eot_id|>" for _, answer in pairs]
    encoded = tokenizer(answers, add_special_tokens=False)["input_ids"]
    assert max(map(len, encoded)) <= PretrainConfig().gen_length
    assert all(tokenizer.eos_token_id not in ids for ids in encoded)

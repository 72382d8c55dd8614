"""Tests of the summary of an evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import Budget, EvaluateConfig
from dtca_core.data.problems import Problem
from dtca_core.evaluation.answers import examination
from dtca_core.evaluation.summary import summarise

BUDGET = Budget(gen_length=32, steps=16)
EXAM = examination(EvaluateConfig(budgets=(BUDGET,)), [])


def row(correct=True, answer="1", has_ended=True, num_steps=16, undecided=False, boxed=True):
    return {
        "correct": correct,
        "undecided": undecided,
        "boxed": boxed,
        "extracted_answer": answer,
        "has_ended": has_ended,
        "num_steps": num_steps,
    }


def test_worked_example():
    # By hand: 1 of 4 is right, 2 are cut off, 1 has no answer; 32 tokens in 16, 16, 8 and 32 steps
    # are 2, 2, 4 and 1 a step, on average 2.25.
    rows = [
        row(),
        row(correct=False, undecided=True),
        row(correct=False, has_ended=False, num_steps=8, boxed=False),
        row(correct=False, answer=None, has_ended=False, num_steps=32, boxed=False),
    ]
    summary = summarise(rows, EXAM, BUDGET)
    # By hand, with z = 1.96 and p = 1/4 of n = 4: the centre is (p + z^2/2n) / (1 + z^2/n)
    # = 0.37250, the half-width is z sqrt(p(1-p)/n + z^2/4n^2) / (1 + z^2/n) = 0.32692.
    assert summary.pop("interval") == pytest.approx([0.0456, 0.6994], abs=1e-4)
    assert summary == {
        "gen_length": 32,
        "steps": 16,
        "total": 4,
        "correct": 1,
        "accuracy": 0.25,
        "truncated": 0.5,
        "no_answer": 0.25,
        "undecided": 0.25,
        "boxed": 0.5,
        "published": [],
        "tokens_per_step": 2.25,
    }


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, "1"]))), st.data())
def test_shares_are_shares_and_order_does_not_count(cases, data):
    rows = [row()] + [row(correct, answer, ended) for correct, ended, answer in cases]
    summary = summarise(rows, EXAM, BUDGET)
    low, high = summary["interval"]
    assert 0 <= low <= summary["accuracy"] <= high <= 1
    assert summary["correct"] == round(summary["accuracy"] * summary["total"])
    for name in ("truncated", "no_answer", "undecided", "boxed"):
        assert 0 <= summary[name] <= 1
    assert summarise(data.draw(st.permutations(rows)), EXAM, BUDGET) == summary


def test_published_numbers_stand_beside_the_protocols_own_settings_only():
    published = Budget(gen_length=128, steps=64)
    other = Budget(gen_length=128, steps=128)
    problems = [Problem(problem_id="0", question="?", answer="\\pi", kind="file")]

    def numbers(budget):
        exam = examination(EvaluateConfig(protocol="d1", budgets=(budget,)), problems)
        return [known["percent"] for known in summarise([row()], exam, budget)["published"]]

    assert numbers(published) == [26.0]
    assert numbers(other) == []

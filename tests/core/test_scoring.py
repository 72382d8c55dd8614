"""Tests of scoring: what agrees, what does not, and the cases that broke other systems."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import ConfigError, DataError
from dtca_core.evaluation import Score, score_answers
from dtca_core.evaluation.judges import Judges
from dtca_core.evaluation.scoring import MAX_EXACT, demand_box

BANK = Path(__file__).parent / "scoring_bank.jsonl"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "scoring_cases.jsonl"


@pytest.fixture(scope="module")
def quick_judges():
    """A pool whose limit is short, for the hostile cases reach any."""
    pool = Judges(2, seconds=1.5)
    yield pool
    pool.close()


def score(output, reference, protocol="drift"):
    return score_answers([output], [reference], protocol=protocol)[0]


def test_verdicts_come_in_order_with_answer_and_reason():
    outputs = ["so \\boxed{18}", "so \\boxed{17}", "so 18", "so"]
    assert score_answers(outputs, ["18"] * 4) == [
        Score(correct=True, extracted="18", reason="equal", boxed=True),
        Score(correct=False, extracted="17", reason="17 is not 18", boxed=True),
        Score(correct=True, extracted="18", reason="equal"),
        Score(correct=False, extracted=None, reason="no answer stated"),
    ]


def test_where_a_box_is_demanded_an_answer_outside_does_not_count():
    outputs = ["so \\boxed{18}", "so 18", "so 17"]
    scores = demand_box(score_answers(outputs, ["18"] * 3))
    assert [score.correct for score in scores] == [True, False, False]
    assert scores[1].reason == "equal, but not in a \\boxed{}"
    assert scores[2].reason == "17 is not 18"


def test_the_default_protocol_is_drift():
    assert score_answers(["18"], ["18"]) == score_answers(["18"], ["18"], protocol="drift")


def test_the_task_decides_how_d1_reads():
    output = "\\boxed{5 \\text{ cm}} \\boxed{6}"
    (number,) = score_answers([output], ["5"], protocol="d1")
    (text,) = score_answers([output], ["5"], protocol="d1", task="math")
    assert number.correct
    assert not text.correct


def test_no_answer_is_wrong_for_reference_zero_too():
    for protocol in ("plain", "drift"):
        for output in ("", " \n", "\\boxed{}", "\\boxed{$$}", "\\boxed{\\text{}}"):
            assert not score(output, "0", protocol).correct
            assert not score(output, "", protocol).correct


def test_lists_of_different_length_are_refused():
    with pytest.raises(DataError, match="2 outputs and 1 references"):
        score_answers(["1", "2"], ["1"])
    assert score_answers([], []) == []


def test_an_unknown_protocol_is_refused_by_name():
    with pytest.raises(ConfigError, match="'d2' does not exist; use one of d1, drift"):
        score_answers([], [], protocol="d2")


def test_a_bug_in_the_judge_is_a_crash(monkeypatch):
    def broken(tidied):
        raise ZeroDivisionError

    monkeypatch.setattr("dtca_core.evaluation.equivalence.normal_text", broken)
    with pytest.raises(ZeroDivisionError):
        score("\\boxed{1}", "1")


def test_long_answers_are_shortened_in_the_reason():
    verdict = score("\\boxed{" + "x+" * 500 + "x}", "1")
    assert len(verdict.reason) < 100
    assert verdict.reason.endswith("… is not 1")


@pytest.mark.parametrize("text", ["1,", "{", "\\{", "\\text{", "\\frac1", " and", ",234", "9", "="])
def test_hostile_answers_take_no_time(text):
    start = time.perf_counter()
    score("\\boxed{" + text * (100_000 // len(text)) + "}", "5")
    assert time.perf_counter() - start < 5


def test_a_long_answer_is_read_by_a_worker_alone(monkeypatch):
    # Nothing bounds the time of what is read here.
    monkeypatch.setattr("dtca_core.evaluation.scoring.agree", None)
    long = "1" * (MAX_EXACT + 1)
    assert score(f"\\boxed{{{long}}}", long).correct


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_gets_a_verdict(output, reference):
    for protocol in ("plain", "drift"):
        verdict = score(output, reference, protocol)
        assert verdict.correct == (verdict.reason == "equal")
        assert verdict.extracted is not None or not verdict.correct


def cases_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", [BANK, SHARED], ids=["bank", "shared"])
def test_every_known_case_is_judged_right(path, quick_judges, monkeypatch):
    if not path.exists():
        pytest.skip("the shared cases are absent")
    cases = cases_of(path)
    outputs, references = ([case[key] for case in cases] for key in ("output", "reference"))
    monkeypatch.setattr("dtca_core.evaluation.scoring.shared_judges", lambda: quick_judges)
    scores = score_answers(outputs, references)
    wrong = [
        (case["id"], score.reason)
        for case, score in zip(cases, scores, strict=True)
        if score.correct != case["correct"] and not (score.undecided and case.get("undecided_ok"))
    ]
    assert wrong == []

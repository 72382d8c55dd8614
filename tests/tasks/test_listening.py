"""What a person sees of a running stage, on a terminal and elsewhere."""

import io
import logging

import pytest
from rich.console import Console

from tasks import listening
from tasks.listening import StageListener


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves, in seconds."""
    now = [100.0]
    monkeypatch.setattr(listening.time, "monotonic", lambda: now[0])
    return now


def lines(caplog):
    """Return what was said."""
    return [record.getMessage() for record in caplog.records]


def test_without_a_terminal_a_line_comes_now_and_then(clock, caplog):
    caplog.set_level(logging.INFO)
    with StageListener("rollouts", Console(file=io.StringIO())) as listener:
        listener.progress(0, 100, "tokens")
        clock[0] += 5
        listener.progress(10, 100, "tokens")
        assert lines(caplog) == []
        clock[0] += 15
        listener.progress(40, 100, "tokens", "reward 0.5")
        # 40 tokens in 20 seconds are 2 a second; the other 60 take 30 seconds.
        assert lines(caplog) == ["rollouts: 40/100 tokens, 2.0/s, 30 s left, reward 0.5"]


def test_what_a_resumed_stage_found_does_not_count_in_its_rate(clock, caplog):
    caplog.set_level(logging.INFO)
    with StageListener("rollouts", Console(file=io.StringIO())) as listener:
        listener.progress(80, 100, "tokens")
        clock[0] += 10
        listener.progress(85, 100, "tokens")
    assert lines(caplog) == ["rollouts: 85/100 tokens, 0.5/s, 30 s left"]


def test_the_end_is_left_to_the_line_of_the_stage(clock, caplog):
    caplog.set_level(logging.INFO)
    with StageListener("rollouts", Console(file=io.StringIO())) as listener:
        clock[0] += 60
        listener.progress(100, 100, "tokens")
    assert lines(caplog) == []


def test_what_a_person_should_know_is_said_with_the_name_of_the_stage(caplog):
    caplog.set_level(logging.INFO)
    with StageListener("prepare", Console(file=io.StringIO())) as listener:
        listener.note("3 problems were dropped")
    assert lines(caplog) == ["prepare: 3 problems were dropped"]


def test_on_a_terminal_a_bar_shows_rate_and_time_left():
    screen = io.StringIO()
    with StageListener(
        "rollouts", Console(file=screen, force_terminal=True, width=120)
    ) as listener:
        listener.progress(0, 100, "tokens")
        listener.progress(50, 100, "tokens", "reward 0.5")
    assert "rollouts" in screen.getvalue()
    assert "50/100" in screen.getvalue()
    assert "tokens/s" in screen.getvalue()
    assert "left" in screen.getvalue()


def test_waiting_for_another_run_is_said(caplog):
    caplog.set_level(logging.INFO)
    with StageListener("weights", Console(file=io.StringIO())) as listener:
        listener.waiting("weights/0a1b2c")
    assert lines(caplog) == ["weights: another run builds weights/0a1b2c; waiting for it"]

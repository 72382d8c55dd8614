"""Tests of the judges: bounded time and memory, no slot lost, no process left."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dtca_core.evaluation.judges import Judges, shared_judges
from dtca_core.evaluation.scoring import score_answers, unreadable_references
from dtca_core.evaluation.worker import answer

HANGS = {"answer": "\\lfloor \\pi^{10000000} \\rfloor", "reference": "3"}
EATS_MEMORY = {"answer": "2^{4^{8^{16}}}", "reference": "2^{65536}"}


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def judges():
    pool = Judges(2, seconds=1.0)
    yield pool
    pool.close()


def question(n):
    return {"answer": f"\\sqrt{{{n * n}}}", "reference": str(n)}


def test_replies_come_in_order(judges):
    questions = [question(n) for n in range(1, 8)] + [{"answer": "\\sqrt2", "reference": "2"}]
    assert [reply["agree"] for reply in judges.ask(questions)] == [True] * 7 + [False]
    assert judges.ask([]) == []


def test_workers_are_reused(judges):
    judges.ask([question(2), question(3)])
    before = judges.pids
    judges.ask([question(4)] * 6)
    assert judges.pids == before


def test_a_request_that_never_ends_costs_one_worker_and_keeps_no_slot(judges):
    # SC04: 16 requests, of which 4 never end; all get a verdict, and later calls work.
    judges.ask([question(2), question(3)])
    before = judges.pids
    requests = [HANGS if n % 4 == 0 else question(n + 1) for n in range(16)]
    start = time.monotonic()
    replies = judges.ask(requests)
    assert time.monotonic() - start < 30
    expected = [{"undecided": "out of time"} if n % 4 == 0 else {"agree": True} for n in range(16)]
    assert replies == expected
    assert judges.ask([question(5)]) == [{"agree": True}]
    assert len(judges.pids) == 2
    assert not set(before) & set(judges.pids)
    assert not any(is_alive(pid) for pid in before)


def test_memory_is_capped_and_the_next_request_is_served():
    # SC02: a gigantic power; the worker runs into its limit, not the machine into its end.
    judges = Judges(1, seconds=20.0, megabytes=700)
    try:
        assert judges.ask([EATS_MEMORY, question(3)]) == [
            {"undecided": "out of memory"},
            {"agree": True},
        ]
    finally:
        judges.close()


def test_a_worker_that_is_killed_is_replaced(judges):
    judges.ask([question(2), question(3)])
    os.kill(judges.pids[0], signal.SIGKILL)
    assert [reply["agree"] for reply in judges.ask([question(n) for n in (4, 5, 6)])] == [True] * 3


def test_a_worker_that_is_killed_while_it_starts_is_replaced(judges):
    threading.Timer(0.2, lambda: os.kill(judges.pids[0], signal.SIGKILL)).start()
    assert judges.ask([question(2), question(3)]) == [{"agree": True}] * 2


def test_workers_that_are_always_killed_at_their_start_are_an_error(monkeypatch, tmp_path):
    suicidal = tmp_path / "python"
    suicidal.write_text("#!/bin/sh\nkill -KILL $$\n")
    suicidal.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(suicidal))
    with pytest.raises(RuntimeError, match="judges in a row were killed while they started"):
        Judges(1).ask([question(2)])


def test_a_call_that_fails_leaves_no_reply_to_the_next(judges):
    with pytest.raises(RuntimeError, match="a judge met a bug"):
        judges.ask([{"answer": "\\sqrt4"}, *[{"answer": "\\sqrt2", "reference": "2"}] * 6])
    assert judges.ask([question(n) for n in range(1, 6)]) == [{"agree": True}] * 5


def test_a_fork_has_judges_of_its_own():
    before = shared_judges()
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert shared_judges() is before
    else:
        os._exit(shared_judges() is before)


def test_closing_leaves_no_process(judges):
    judges.ask([question(2), question(3)])
    pids = judges.pids
    judges.close()
    assert not any(is_alive(pid) for pid in pids)
    assert judges.ask([question(4)]) == [{"agree": True}]


def test_the_workers_of_a_parent_that_is_killed_end():
    code = (
        "import sys, time\n"
        "from dtca_core.evaluation.judges import Judges\n"
        "judges = Judges(2, seconds=1.0)\n"
        f"judges.ask([{question(2)!r}] * 2)\n"
        "print(*judges.pids, flush=True)\n"
        f"judges.ask([{HANGS!r}] * 20)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))


def test_an_alarm_of_the_caller_still_stands():
    # SC05: the parser sets and clears alarms; here it does so in another process.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 30.0)
    try:
        assert score_answers(["\\boxed{\\sqrt4}"], ["2"])[0].correct
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_worker_that_cannot_start_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    judges = Judges(1)
    with pytest.raises(RuntimeError, match="a judge did not start"):
        judges.ask([question(2)])
    judges.close()


def test_what_was_not_decided_is_wrong_and_counted_apart():
    (score,) = score_answers([f"\\boxed{{{HANGS['answer']}}}"], ["3"])
    assert not score.correct
    assert score.undecided
    assert score.reason.startswith("undecided, out of time: is \\lfloor")


def test_a_worker_tells_agreement_and_what_cannot_be_read():
    assert answer({"answer": "\\sqrt4", "reference": "2"}) == {"agree": True}
    assert answer({"reference": "(1, \\frac{1}{2})"}) == {"unreadable": []}
    assert answer({"reference": "(1, \\foo+)"}) == {"unreadable": ["\\foo+"]}


def test_a_bug_in_a_worker_is_a_crash(judges):
    with pytest.raises(RuntimeError, match="KeyError: 'reference'"):
        judges.ask([{"answer": "\\sqrt4"}])


def test_where_a_library_fails_the_answer_is_undecided(monkeypatch):
    def broken(*arguments, **settings):
        raise TypeError("cannot determine truth value")

    monkeypatch.setattr("dtca_core.evaluation.algebra._equal", broken)
    pair = {"answer": "\\sqrt4", "reference": "2"}
    assert answer(pair) == {"undecided": "TypeError in algebra: cannot determine truth value"}


def test_references_that_no_answer_can_agree_with_are_found():
    references = ["18", "\\sqrt2", "", "Evelyn", "\\frac{7}{1", "1, \\foo+", "\\text{(C)}", "@"]
    assert unreadable_references(references) == [2, 4, 5, 7]

"""Tests of the store between processes: locks, and builds that are killed at every step."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from dtca_core.store import Provenance, Store, artifact_key, locks
from dtca_core.store.locks import acquire, is_held, release

BUILDER = """
import sys
import threading
from datetime import UTC, datetime
from dtca_core.store import Provenance, Store, artifact_key

def say(word):
    print(word, flush=True)

store, key = Store(sys.argv[1]), artifact_key("weights", 1, {}, {})
with store.locked("weights", key, on_wait=lambda: say("waiting")):
    if store.find("weights", key):
        say("found")
    else:
        (store.work_folder("weights", key) / "a.json").write_text("{}")
        say("building")
        sys.stdin.readline()
        store.publish(Provenance(
            kind="weights", key=key, version=1, code="", git_commit=None, config={}, execution={},
            inputs={}, packages={}, device="cpu", dtype="float32", seed=None,
            started=datetime.now(UTC), seconds=0.0, counts={},
        ))
        say("published")
"""


@pytest.fixture
def builder(tmp_path):
    """Return a function that starts a process which builds the artifact, told when to finish."""
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", BUILDER, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def said(process):
    return process.stdout.readline().strip()


def test_two_processes_that_want_the_same_artifact_build_it_once(builder):
    first = builder()
    assert said(first) == "building"
    second = builder()
    assert said(second) == "waiting"
    first.stdin.write("\n")
    first.stdin.flush()
    assert said(first) == "published"
    assert said(second) == "found"


def test_a_killed_builder_frees_its_lock_and_leaves_its_work(builder, tmp_path):
    store, key = Store(tmp_path), artifact_key("weights", 1, {}, {})
    process = builder()
    assert said(process) == "building"
    assert store.leftovers() == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    (work,) = store.leftovers()
    waits = []
    with store.locked("weights", key, on_wait=lambda: waits.append("waited")):
        assert waits == []
        assert store.work_folder("weights", key) == work
        assert (work / "a.json").read_text() == "{}"


def test_a_started_process_does_not_inherit_the_lock(tmp_path):
    path = tmp_path / "locks" / "key"
    lock = acquire(path)
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    os.close(lock)  # as the kernel does when the holder dies
    assert not is_held(path)
    child.kill()
    child.wait()


def test_a_forked_process_does_not_keep_a_released_lock(tmp_path):
    path = tmp_path / "key"
    lock = acquire(path)
    child = os.fork()
    if child == 0:
        signal.pause()
    release(lock)
    assert not is_held(path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_who_waits_is_told_once_and_then_holds_the_lock(tmp_path):
    path, waits = tmp_path / "key", []
    lock = acquire(path)

    def told():
        waits.append("waited")
        threading.Timer(0.05, release, [lock]).start()

    release(acquire(path, on_wait=told))
    assert waits == ["waited"]


def test_a_lock_file_removed_on_the_way_is_made_anew(tmp_path, monkeypatch):
    path, removals = tmp_path / "key", iter([True, False])
    lock_it = locks._try

    def remove_first(descriptor):
        if next(removals):
            path.unlink()
        return lock_it(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(locks, "_try", remove_first)
        lock = acquire(path)
    assert os.path.samestat(os.fstat(lock), path.stat())
    assert is_held(path)
    release(lock)
    assert not is_held(path)


def test_who_gives_up_waiting_holds_nothing(tmp_path):
    def give_up():
        raise KeyboardInterrupt

    path = tmp_path / "key"
    lock = acquire(path)
    with pytest.raises(KeyboardInterrupt):
        acquire(path, on_wait=give_up)
    release(lock)
    assert not is_held(path)


# Killed at every step of publication

STEPS = ("fsync", "rename", "replace", "unlink", "rmdir")


def provenance(seed):
    return Provenance(
        kind="weights",
        key=artifact_key("weights", 1, {"seed": seed}, {}),
        version=1,
        code="",
        git_commit=None,
        config={"seed": seed},
        execution={},
        inputs={},
        packages={},
        device="cpu",
        dtype="float32",
        seed=seed,
        started=datetime(2026, 7, 1, 12, seed, tzinfo=UTC),
        seconds=0.0,
        counts={},
    )


def fill(store, seed, text="{}"):
    work = store.work_folder("weights", provenance(seed).key)
    (work / "shards").mkdir(exist_ok=True)
    (work / "shards" / "0.parquet").write_text("rows")
    (work / "weights.json").write_text(text)
    (work / ".weights.json.partial").write_text("half")


def killed_at(step, action):
    """Run the action in a process that dies before its step-th change of the disk.

    Returns whether it died; it does not once the action has fewer steps.
    """
    child = os.fork()
    if child == 0:
        count = itertools.count(1)

        def dying(call):
            def wrapper(*args, **kwargs):
                if next(count) == step:
                    os._exit(9)
                return call(*args, **kwargs)

            return wrapper

        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            action()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9), "the action failed before it was killed"
    return status == 9


def at_the_place_is(store, state):
    """Prepare what lies where the artifact will be published."""
    if state == "nothing":
        return
    fill(store, 2, text="{}" if state == "the same" else "[]")
    artifact = store.publish(provenance(2))
    if state == "damaged":
        (artifact.path / "weights.json").write_text("?")


@pytest.mark.parametrize("state", ["nothing", "damaged", "the same", "another"])
def test_a_publication_killed_at_any_step_shows_the_old_or_the_whole_and_can_be_rerun(
    tmp_path, state
):
    before, key = Store(tmp_path / "before"), provenance(2).key
    at_the_place_is(before, state)
    fill(before, 1)
    before.publish(provenance(1))
    fill(before, 2)
    for step in itertools.count(1):
        store = Store(shutil.copytree(before.root, tmp_path / str(step)))
        old = store.find("weights", provenance(1).key)
        died = killed_at(step, lambda store=store: store.publish(provenance(2)))

        assert store.find("weights", old.key) == old
        new = store.find("weights", key)
        if state in ("nothing", "damaged"):
            assert store.resolve("weights", "latest") == (new or old)
        bad = [verdict for verdict in store.verify() if verdict.damages]
        assert bad == [] or (state == "damaged" and new is None)
        if new is None or state == "another":
            fill(store, 2)
            new = store.publish(provenance(2))
        elif state == "the same" and store.resolve("weights", "latest") == old:
            assert died, "killed before the pointer moved, so the old state holds"
        else:
            assert store.resolve("weights", "latest") == new
        assert (new.path / "weights.json").read_text() == "{}"
        for path in store.leftovers():
            store.remove(path)
        assert {path.name for path in new.path.parent.iterdir()} - {".latest.partial"} == {
            *(old.key, new.key, "latest", ".locks")
        }
        if not died:
            assert step > 8
            break


def test_a_removal_killed_at_any_step_leaves_no_half_artifact(tmp_path):
    for step in itertools.count(1):
        store = Store(tmp_path / str(step))
        fill(store, 1)
        artifact = store.publish(provenance(1))
        died = killed_at(step, lambda store=store, artifact=artifact: store.remove(artifact))
        assert [verdict for verdict in store.verify() if verdict.damages] == []
        assert len(store.artifacts()) == (1 if step == 1 else 0)
        for path in store.leftovers():
            store.remove(path)
        if not died:
            break

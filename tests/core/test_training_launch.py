"""Tests of the training process: its events, its failures, and that it dies with its parent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtca_core.config import ModelConfig, TrainConfig
from dtca_core.errors import RequestError, TrainingError
from dtca_core.models import load_predictor
from dtca_core.training import launch
from dtca_core.training.job import TrainJob
from dtca_core.training.launch import run_training
from dtca_core.training.metrics import read_metrics
from tests.stage_runs import SAMPLER

PATIENCE = 10.0
"""Seconds within which a process has to be gone."""

PARENT = """
import sys
from pathlib import Path
from dtca_core.training.job import TrainJob
from dtca_core.training.launch import run_training

job = TrainJob.model_validate_json(Path(sys.argv[1]).read_bytes())
run_training(job, lambda event: print(event["event"], event["update"], flush=True))
"""


@pytest.fixture
def job(tmp_path, tiny_model_folder, solvable_problems):
    """A run of two updates with a checkpoint after each."""
    return TrainJob(
        config=TrainConfig(
            updates=2,
            prompts_per_update=2,
            samples_per_prompt=2,
            sampler=SAMPLER,
            validation_problems=1,
            regression_margin=1.0,
            save_every=1,
        ),
        model=ModelConfig(source=str(tiny_model_folder), device="cpu"),
        problems=solvable_problems,
        weights=None,
        output=tmp_path / "run",
    )


def ignore(_event):
    """Hear an event and do nothing."""


def child_says(monkeypatch, program):
    """Have the training process be a program of ours."""
    command = [sys.executable, "-m", "dtca_core.training.process", "-c", program]
    monkeypatch.setattr(launch, "_command", lambda _job, _file: command)


def children_of(process):
    """Every process that this one has started, and those that they have, by id."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children_of(child)]
    return found


def is_running(process):
    """Whether a process is there and not merely waiting for its end to be noticed."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def still_running(processes):
    """Those of the processes that are there after a while of patience."""
    end = time.monotonic() + PATIENCE
    while (left := [p for p in processes if is_running(p)]) and time.monotonic() < end:
        time.sleep(0.05)
    return left


# ------------------------------------------------------------------------------- through accelerate


def test_a_killed_parent_leaves_no_child_and_the_run_resumes_where_it_was(job, tmp_path):
    file = tmp_path / "job.json"
    file.write_text(job.model_dump_json())
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(file)], stdout=subprocess.PIPE, text=True
    )
    heard, children = [], []
    with parent.stdout:
        for line in parent.stdout:
            heard.append(line.split())
            if heard[-1] == ["update", "1"]:
                children = children_of(parent.pid)
                parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert heard[:2] == [["validation", "0"], ["update", "1"]]
    assert len(children) >= 2, "accelerate and the trainer that it started"
    assert still_running(children) == []

    events = []
    run_training(job, events.append)
    assert events[-1]["event"] == "validation"
    assert [event["update"] for event in events if event["event"] == "update"][-1] == 2
    assert [row["update"] for row in read_metrics(job.metrics_file)] == [0, 1, 2, 2]
    assert load_predictor(job.model_folder).tokenizer is not None
    assert json.loads((job.output / "logs" / "job.json").read_text())["config"]["updates"] == 2


# ------------------------------------------------------------------------- a child that is not well


def test_what_cannot_be_is_refused_in_the_words_of_the_child(job, monkeypatch, tmp_path):
    program = "import runpy; runpy.run_module('dtca_core.training', run_name='__main__')"
    file = job.output / "logs" / "job.json"
    command = [sys.executable, "-c", program, "--config", str(file)]
    monkeypatch.setattr(launch, "_command", lambda _job, _file: command)
    weights = tmp_path / "weights.json"
    weights.write_text("[]")
    with pytest.raises(RequestError, match=r"^weight file .*weights\.json holds a list"):
        run_training(job.model_copy(update={"weights": weights}), ignore)


def test_a_run_that_stops_itself_says_why(job, monkeypatch):
    event = {"event": "failed", "refused": False, "message": "training harms the model"}
    child_says(monkeypatch, f"print('''{json.dumps(event)}'''); raise SystemExit(1)")
    with pytest.raises(TrainingError, match=r"^training harms the model$"):
        run_training(job, ignore)


def test_a_child_that_fails_is_quoted(job, monkeypatch):
    child_says(
        monkeypatch,
        "import sys\nprint('line of a library')\n"
        "for i in range(40): print('told', i, file=sys.stderr)\n"
        "raise SystemExit('out of memory')",
    )
    with pytest.raises(TrainingError, match="ended with status 1") as failure:
        run_training(job, ignore)
    message = str(failure.value)
    log = job.output / "logs" / "trainer.log"
    assert str(log) in message
    assert "told 39\nout of memory" in message
    assert "told 20\n" not in message
    assert "line of a library" in log.read_text()


def test_events_arrive_in_order_and_half_a_line_is_none(job, monkeypatch):
    child_says(
        monkeypatch,
        "import os, signal\n"
        """print('{"event": "update", "update": 1}\\n{"event": "update", "upd', end='', """
        "flush=True)\nos.kill(os.getpid(), signal.SIGKILL)",
    )
    events = []
    with pytest.raises(TrainingError, match="status -9"):
        run_training(job, events.append)
    assert events == [{"event": "update", "update": 1}]


def test_who_stops_listening_ends_the_child(job, monkeypatch):
    child_says(
        monkeypatch,
        "import os, time\n"
        """print('{"event": "update", "update": %d}' % os.getpid(), flush=True)\n"""
        "time.sleep(60)",
    )
    started = []

    def cancel(event):
        started.append(event["update"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(job, cancel)
    assert started
    assert still_running(started) == []


def test_a_child_that_will_not_end_is_killed(job, monkeypatch):
    child_says(
        monkeypatch,
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        """print('{"event": "update", "update": %d}' % os.getpid(), flush=True)\n"""
        "time.sleep(60)",
    )
    monkeypatch.setattr(launch, "_GRACE", 0.2)
    started = []

    def cancel(event):
        started.append(event["update"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_training(job, cancel)
    assert still_running(started) == []


def test_a_process_whose_parent_ended_before_it_could_ask_ends_itself():
    program = (
        "from dtca_core.training.process import die_with_parent\ndie_with_parent()\nprint('alive')"
    )

    def outcome(parent):
        environment = {**os.environ, "DTCA_PARENT": str(parent)}
        child = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        return child.returncode, child.stdout

    assert outcome(os.getpid()) == (0, "alive\n")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert outcome(gone.pid) == (-signal.SIGKILL, "")


# --------------------------------------------------------------------------- the program itself


def program(job, tmp_path, monkeypatch, capsys):
    """Run what is launched in this process; return its exit status and its events."""
    from dtca_core.training import __main__ as module

    file = tmp_path / "job.json"
    file.write_text(job.model_dump_json())
    monkeypatch.setattr(sys, "argv", ["dtca_core.training", "--config", str(file)])
    # This process is not to die with the one that started pytest.
    monkeypatch.setattr(module, "die_with_parent", lambda: None)
    status = module.main()
    lines = capsys.readouterr().out.splitlines()
    return status, [json.loads(line) for line in lines if line.startswith('{"event"')]


def test_the_program_says_one_line_for_each_event(job, tmp_path, monkeypatch, capsys):
    status, events = program(job, tmp_path, monkeypatch, capsys)
    assert status == 0
    assert [event["event"] for event in events] == ["validation", "update", "update", "validation"]


def test_the_program_says_whether_it_was_refused_or_failed(job, tmp_path, monkeypatch, capsys):
    status, events = program(
        job.model_copy(update={"weights": tmp_path / "none.json"}), tmp_path, monkeypatch, capsys
    )
    assert status == 2
    assert [(event["event"], event["refused"]) for event in events] == [("failed", True)]
    broken = job.state_folder / "update-00000001"
    broken.mkdir(parents=True)
    status, events = program(job, tmp_path, monkeypatch, capsys)
    assert status == 1
    assert [(event["event"], event["refused"]) for event in events] == [("failed", False)]
    assert "cannot be resumed" in events[0]["message"]


# ------------------------------------------------------------------------------- what is launched


def test_the_command_names_what_accelerate_would_otherwise_ask_for(job):
    def command(**changes):
        return launch._command(job.model_copy(update=changes), Path("job.json"))

    plain = command()
    assert plain[:5] == [
        sys.executable,
        "-m",
        "dtca_core.training.process",
        "-m",
        "accelerate.commands.launch",
    ]
    assert plain[-4:] == ["-m", "dtca_core.training", "--config", "job.json"]
    assert "--cpu" in plain
    assert "--cpu" not in command(model=job.model.model_copy(update={"device": "auto"}))
    several = command(config=job.config.model_copy(update={"accelerate_config": "ddp.yaml"}))
    assert several[5:7] == ["--config_file", "ddp.yaml"]
    assert "--num_processes" not in several


def test_a_lone_process_has_all_cores_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert launch._environment()["OMP_NUM_THREADS"] == str(os.cpu_count())
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert launch._environment()["OMP_NUM_THREADS"] == "3"
    assert launch._environment()["DTCA_PARENT"] == str(os.getpid())

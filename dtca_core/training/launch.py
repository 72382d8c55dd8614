"""Starting the training process and listening to it, from the stage's side."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from dtca_core.errors import RequestError, TrainingError
from dtca_core.training.job import TrainJob
from dtca_core.training.process import PARENT

_TAIL = 15
"""Lines of the child's own output to show when it fails."""
_GRACE = 20.0
"""Seconds that a child has to end when it is told to."""


def run_training(job: TrainJob, on_event: Callable[[dict[str, Any]], None]) -> None:
    """Run a training job in a process of its own, and pass on its events as they happen.

    The process belongs to this one: it is ended when this function is left, and killed by the
    kernel when this process dies. Its own output goes to `logs/trainer.log`.

    Raises:
        RequestError: what was asked for cannot be; the child says so.
        TrainingError: the child failed; the message ends with its last lines.
    """
    job_file = job.output / "logs" / "job.json"
    log_file = job.output / "logs" / "trainer.log"
    job_file.parent.mkdir(parents=True, exist_ok=True)
    job_file.write_text(job.model_dump_json(indent=2) + "\n", encoding="utf-8")
    with log_file.open("a", encoding="utf-8") as log:
        child = subprocess.Popen(
            _command(job, job_file),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=_environment(),
        )
        try:
            assert child.stdout is not None
            refusal = _listen(child.stdout, log, on_event)
            status = child.wait()
        finally:
            _end(child)
    if refusal is not None:
        raise (
            RequestError(refusal["message"])
            if refusal["refused"]
            else TrainingError(refusal["message"])
        )
    if status != 0:
        tail = "\n".join(log_file.read_text(encoding="utf-8").splitlines()[-_TAIL:])
        raise TrainingError(
            f"the training process ended with status {status}; all it said is in {log_file}, and "
            f"it ended with:\n{tail}"
        )


def _command(job: TrainJob, job_file: Path) -> list[str]:
    """Return the argument list: a guard that becomes accelerate, which starts the trainer."""
    launcher = ["-m", "accelerate.commands.launch"]
    if job.config.accelerate_config is not None:
        launcher += ["--config_file", job.config.accelerate_config]
    else:
        launcher += ["--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no"]
        launcher += ["--dynamo_backend", "no", *(["--cpu"] if job.model.device == "cpu" else [])]
    trainer = ["-m", "dtca_core.training", "--config", str(job_file)]
    return [sys.executable, "-m", "dtca_core.training.process", *launcher, *trainer]


def _environment() -> dict[str, str]:
    # accelerate sets one thread per process unless told; a lone process may have all cores.
    threads = os.environ.get("OMP_NUM_THREADS", str(os.cpu_count() or 1))
    own = {"OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1", PARENT: str(os.getpid())}
    return {**os.environ, **own}


def _listen(
    stream: Iterable[str], log: IO[str], on_event: Callable[[dict[str, Any]], None]
) -> dict[str, Any] | None:
    """Pass on events until the child closes its output; return the one that says it gave up."""
    refusal: dict[str, Any] | None = None
    for line in stream:
        event = _parse(line)
        if event is None:
            log.write(line)
        elif event["event"] == "failed":
            refusal = event
        else:
            on_event(event)
    return refusal


def _parse(line: str) -> dict[str, Any] | None:
    """Return the event of a line; None for anything else that a library printed."""
    # A killed process may have cut its last line off.
    if not line.startswith('{"event"') or not line.endswith("}\n"):
        return None
    return json.loads(line)


def _end(child: subprocess.Popen[str]) -> None:
    """End the child if it still runs."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdout is not None:
        child.stdout.close()

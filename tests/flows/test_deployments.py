"""`prefect.yaml` against a real server and a real worker, started here and ended by pid."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PREFECT = str(Path(sys.executable).with_name("prefect"))


def deployments():
    """Return the deployments of prefect.yaml."""
    return yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]


def test_every_entrypoint_is_a_flow_whose_parameters_have_defaults_or_are_asked_for():
    for deployment in deployments():
        module, _, name = deployment["entrypoint"].rpartition(".")
        flow = getattr(import_module(module), name)
        assert flow.name.split("-")[0] == "dtca"
        assert deployment["description"]


def test_there_is_a_deployment_for_each_stage_and_for_all():
    from dtca_core.stages import STAGES

    names = {deployment["name"] for deployment in deployments()}
    assert names == {*STAGES, "full-pipeline", "embedded"}


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def process(arguments, environment, log):
    """Run a process group while the block runs; its output goes to a file."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            arguments,
            env=environment,
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield child
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def wait_until_healthy(url, seconds=120):
    """Return when the server answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def prefect(environment, *arguments):
    """Return the output of a Prefect command that has to succeed."""
    done = subprocess.run(
        [PREFECT, "--no-prompt", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.server
def test_a_worker_runs_deployed_stages_and_shows_a_hit_as_cached(tmp_path, environment):
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    served = {**environment, "PREFECT_API_URL": url}
    server = [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    worker = [PREFECT, "worker", "start", "--pool", "dtca-process"]
    with process(server, environment, tmp_path / "server.log"):
        wait_until_healthy(url)
        prefect(served, "work-pool", "create", "dtca-process", "--type", "process")
        prefect(served, "deploy", "--all")
        listed = prefect(served, "deployment", "ls")
        assert "dtca/full-pipeline" in listed
        with process(worker, served, tmp_path / "worker.log"):
            parameters = '{"config": {"num_train": 8, "num_validation": 2, "num_test": 2}}'
            run = ("deployment", "run", "dtca-prepare/prepare", "--params", parameters, "--watch")
            assert "in 'Completed'" in prefect(served, *run)
            assert "in 'Cached'" in prefect(served, *run)
    assert list((tmp_path / "artifacts" / "dataset").glob("*/manifest.json"))

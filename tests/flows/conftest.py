"""A store and a pipeline small enough to run in seconds, and one Prefect server for all tests."""

import os

import pytest


@pytest.fixture(scope="session")
def prefect_server():
    """Prefect's own test server: a database and a profile of its own, never the user's."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def artifacts(tmp_path, monkeypatch):
    """An empty artifact root, the one that DTCA_ARTIFACTS names."""
    monkeypatch.setenv("DTCA_ARTIFACTS", str(tmp_path / "artifacts"))
    return tmp_path / "artifacts"


@pytest.fixture(scope="session")
def tiny_settings(tiny_model_folder):
    """Plain values of a pipeline config that runs in seconds."""
    sampler = {"gen_length": 16, "block_length": 8, "steps": 4}
    return {
        "model": {"source": str(tiny_model_folder), "device": "cpu"},
        "data": {"num_train": 16, "num_validation": 4, "num_test": 6},
        "rollouts": {"num_prompts": 4, "sampler": sampler, "shard_size": 2},
        "weights": {"min_count": 2},
        "train": {
            "updates": 1,
            "prompts_per_update": 2,
            "samples_per_prompt": 2,
            "sampler": {**sampler, "temperature": 1.0},
            "validation_problems": 2,
            "regression_margin": 1.0,
        },
        "evaluate": {"sampler": sampler, "budgets": [{"gen_length": 16, "steps": 4}]},
    }


@pytest.fixture
def config_file(tmp_path, tiny_settings):
    """The tiny pipeline config as a YAML file."""
    import yaml

    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny_settings), encoding="utf-8")
    return path


@pytest.fixture
def environment(tmp_path):
    """Environment of a process that has a Prefect of its own and a store of its own."""
    return {
        **os.environ,
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "DTCA_ARTIFACTS": str(tmp_path / "artifacts"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }

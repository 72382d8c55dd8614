"""What cannot be is refused with status 2 and one message, also where only a stage can tell."""

import json
import shutil

import pytest
import yaml

from flows.cli import main
from tasks.references import open_store

pytestmark = pytest.mark.usefixtures("prefect_server", "artifacts")


def refused(monkeypatch, capsys, *arguments):
    """Return the message with which `dtca` refuses these arguments, with status 2."""
    monkeypatch.setattr("sys.argv", ["dtca", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    message = capsys.readouterr().err
    assert stopped.value.code == 2, message
    return message


@pytest.fixture
def write_config(tmp_path, tiny_settings):
    """Return a function that writes the tiny config with sections replaced."""

    def write(**sections):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump({**tiny_settings, **sections}), encoding="utf-8")
        return path

    return write


def problem_file(path, *questions):
    """Write a file of problems and return it."""
    rows = [{"question": question, "answer": "7"} for question in questions]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_stage_without_its_input(monkeypatch, capsys, config_file):
    message = refused(monkeypatch, capsys, "stage", "weights", "--config", config_file)
    assert "contribution" in message


def test_a_question_that_holds_the_mask_token(monkeypatch, capsys, tmp_path, write_config):
    questions = [f"What is {n} + 1? <|mdm_mask|>" for n in range(40)]
    config = write_config(
        data={
            "source": str(problem_file(tmp_path / "train.jsonl", *questions)),
            "evaluation_source": str(problem_file(tmp_path / "test.jsonl", "What is 3 + 4?")),
            "num_train": 16,
            "num_validation": 4,
        }
    )
    message = refused(monkeypatch, capsys, "run", "--config", config)
    assert "contains the mask token" in message
    assert not open_store().artifacts("rollouts")
    assert not open_store().leftovers()


def test_a_training_file_that_holds_evaluation_problems(
    monkeypatch, capsys, tmp_path, write_config
):
    questions = [f"What is {n} + 1?" for n in range(40)]
    config = write_config(
        data={
            "source": str(problem_file(tmp_path / "train.jsonl", *questions)),
            "evaluation_source": str(problem_file(tmp_path / "test.jsonl", *questions[5:8])),
        }
    )
    for command in (("run",), ("stage", "prepare")):
        message = refused(monkeypatch, capsys, *command, "--config", config)
        assert "3 of 40 training problems" in message
        assert "3 word for word" in message
        assert "What is 5 + 1?" in message
    assert not open_store().artifacts("dataset")
    assert not open_store().leftovers()


def test_an_empty_problem_file(monkeypatch, capsys, tmp_path, write_config):
    empty = problem_file(tmp_path / "empty.jsonl")
    config = write_config(data={"source": str(empty), "evaluation_source": str(empty)})
    assert "holds no problems" in refused(monkeypatch, capsys, "run", "--config", config)


def test_a_model_folder_without_weights(
    monkeypatch, capsys, tmp_path, tiny_model_folder, write_config
):
    folder = shutil.copytree(tiny_model_folder, tmp_path / "copy")
    (folder / "model.safetensors").unlink()
    config = write_config(model={"source": str(folder)})
    assert "lacks model.safetensors" in refused(monkeypatch, capsys, "run", "--config", config)
    assert not open_store().artifacts("dataset")


def test_a_model_folder_with_weights_of_another_shape(
    monkeypatch, capsys, tmp_path, tiny_model_folder, write_config
):
    folder = shutil.copytree(tiny_model_folder, tmp_path / "copy")
    shape = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**shape, "mlp_hidden_size": 32}))
    config = write_config(model={"source": str(folder)})
    message = refused(monkeypatch, capsys, "run", "--config", config)
    assert "config.json needs [32, 32]" in message


def test_a_truncated_artifact_as_an_input(monkeypatch, capsys, config_file):
    monkeypatch.setattr("sys.argv", ["dtca", "stage", "prepare", "--config", str(config_file)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    [dataset] = open_store().artifacts("dataset")
    shard = dataset.path / "problems.parquet"
    shard.write_bytes(shard.read_bytes()[:-9])
    message = refused(monkeypatch, capsys, "stage", "rollouts", "--config", config_file)
    assert "problems.parquet" in message
    assert "truncated" in message

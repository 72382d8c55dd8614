"""The command line: refusals with status 2 and one message, and what needs no server."""

import pytest

from flows.cli import main


def run(monkeypatch, capsys, *arguments):
    """Return status, output and error output of `dtca` with these arguments."""
    monkeypatch.setattr("sys.argv", ["dtca", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    return stopped.value.code or 0, printed.out, printed.err


REFUSALS = {
    "weights: {min_cout: 3}": "weights.min_cout = 3: there is no such setting",
    "train: {updates: -1}": "train.updates = -1: Input should be greater than 0",
    "rollouts: {sampler: {gen_length: 50, block_length: 8}}": "use 48 or 56",
    "rollouts: [1, 2]": "rollouts",
    "- a list": "holds a list, not sections",
    "a: b: c": "is not YAML",
    "evaluate: {budgets: []}": "evaluate.budgets",
    "data: {source: problems.jsonl}": "training problems need evaluation problems",
}


@pytest.mark.parametrize("text", REFUSALS)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_config_that_cannot_work_is_refused(
    command, text, tmp_path, artifacts, monkeypatch, capsys
):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    status, out, err = run(monkeypatch, capsys, command, "--config", path)
    assert status == 2
    assert REFUSALS[text] in err
    assert str(path) in err
    assert "Traceback" not in out + err
    assert not artifacts.exists()


def test_a_config_file_that_is_missing_is_refused(tmp_path, monkeypatch, capsys):
    status, _, err = run(monkeypatch, capsys, "run", "--config", tmp_path / "none.yaml")
    assert status == 2
    assert "none.yaml does not exist" in err


@pytest.mark.parametrize("text", ["weights.min_count", "=3"])
def test_an_override_that_sets_nothing_is_refused(text, monkeypatch, capsys):
    status, _, err = run(monkeypatch, capsys, "plan", "--set", text)
    assert status == 2
    assert text.partition("=")[0] in err


def test_an_override_that_is_not_yaml_is_refused(monkeypatch, capsys):
    status, out, err = run(monkeypatch, capsys, "plan", "--set", "train.updates=[1")
    assert status == 2
    assert "'[1' is not YAML" in err
    assert "Traceback" not in out + err


def test_a_file_without_a_manifest_cannot_be_shown(tmp_path, artifacts, monkeypatch, capsys):
    path = tmp_path / "weights.json"
    path.write_text("{}", encoding="utf-8")
    status, _, err = run(monkeypatch, capsys, "artifacts", "show", "weights", path)
    assert status == 2
    assert f"{path} was made by a person and has no manifest" in err


def test_an_override_below_a_value_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "config.yaml"
    path.write_text("weights: {min_count: 3}", encoding="utf-8")
    status, _, err = run(
        monkeypatch, capsys, "plan", "--config", path, "--set", "weights.min_count.deeper=3"
    )
    assert status == 2
    assert "'min_count' is a value, not a section" in err


def test_a_stage_that_does_not_exist_is_refused(artifacts, monkeypatch, capsys):
    status, _, err = run(monkeypatch, capsys, "stage", "wieghts")
    assert status == 2
    assert "use one of prepare, rollouts, contribution, weights, train, evaluate" in err


def test_an_input_that_a_stage_does_not_read_is_refused(artifacts, monkeypatch, capsys):
    status, _, err = run(monkeypatch, capsys, "stage", "weights", "--dataset", "latest")
    assert status == 2
    assert "stage 'weights' reads no dataset; it reads contribution" in err


def test_a_report_that_was_never_made_is_refused(artifacts, monkeypatch, capsys):
    status, _, err = run(monkeypatch, capsys, "report")
    assert status == 2
    assert "report" in err


def test_the_plan_of_an_empty_store_says_that_all_would_run(
    artifacts, config_file, monkeypatch, capsys
):
    status, out, _ = run(monkeypatch, capsys, "plan", "--config", config_file)
    assert status == 0
    assert [line.split()[1:3] for line in out.splitlines()] == [["would", "run"]] * 8
    assert "prepare        would run  never built" in out
    assert not artifacts.exists()


def test_an_empty_store_has_nothing_to_list_verify_or_collect(artifacts, monkeypatch, capsys):
    assert run(monkeypatch, capsys, "artifacts", "list")[:2] == (0, "")
    assert "0 artifacts, 0 damaged" in run(monkeypatch, capsys, "artifacts", "verify")[1]
    assert "0 to delete" in run(monkeypatch, capsys, "artifacts", "gc")[1]


@pytest.mark.parametrize("command", ["run", "plan", "stage", "report", "pretrain", "artifacts"])
def test_every_command_explains_itself(command, monkeypatch, capsys):
    status, out, _ = run(monkeypatch, capsys, command, "--help")
    assert status == 0
    assert "Usage" in out

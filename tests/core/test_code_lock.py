"""Tests of the code digest, and of the committed lock that pairs it with each stage's version."""

import json
import shutil
import sys

import pytest

import dtca_core
from dtca_core.stages import STAGES, code
from dtca_core.stages.code import code_digest, current_versions, read_lock, undecided

MODULE = '''"""A module."""

# A comment.
from dtca_core.inner import helper


def outer(x: int) -> int:
    """Return it."""
    from dtca_core import late
    return helper(x) + late.value  # another comment
'''
INNER = '''"""Another."""

import json
import dtca_core.deep


def helper(x):
    """Return it."""
    return x + 1
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder that stands in for dtca_core, with a module that imports three others in turn."""
    root = tmp_path / "dtca_core"
    root.mkdir()
    for name, text in {
        "__init__": "",
        "outer": MODULE,
        "inner": INNER,
        "deep": "DEPTH = 3\n",
        "late": "value = 4\n",
        "other": "value = 5\n",
    }.items():
        (root / f"{name}.py").write_text(text)
    monkeypatch.setattr(code, "_ROOT", root)
    forget()
    yield root
    monkeypatch.undo()
    forget()


def forget():
    """Forget the sources that were read."""
    code._tree.cache_clear()
    code._imports.cache_clear()
    code._meaning.cache_clear()


def digest_after(package, name, old, new):
    path = package / f"{name}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()
    return code_digest(["dtca_core.outer"])


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("outer", "# A comment.\n", ""),
        ("outer", '"""Return it."""', '"""Return something else,\n\n    and say so."""'),
        ("outer", '"""A module."""', ""),
        ("inner", "return x + 1", "return x+1  # spaced otherwise"),
        ("other", "5", "6"),
    ],
)
def test_what_means_nothing_to_the_stage_does_not_change_its_digest(package, name, old, new):
    before = code_digest(["dtca_core.outer"])
    assert digest_after(package, name, old, new) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("outer", "helper(x) +", "helper(x) -"),
        ("inner", "x + 1", "x + 2"),
        ("deep", "3", "4"),
        ("late", "4", "5"),
        ("outer", "x: int", "x: float"),
    ],
)
def test_a_changed_statement_changes_the_digest_however_it_is_imported(package, name, old, new):
    before = code_digest(["dtca_core.outer"])
    assert digest_after(package, name, old, new) != before


def test_each_stage_covers_the_code_that_it_runs(monkeypatch, tmp_path):
    # A copy in which one module at a time gets a statement more.
    root = shutil.copytree(dtca_core.__path__[0], tmp_path / "dtca_core")
    monkeypatch.setattr(code, "_ROOT", root)

    def moved(module):
        path = root / f"{module}.py"
        source = path.read_text()
        path.write_text(source + "\nADDED = 1\n")
        forget()
        now = current_versions()
        path.write_text(source)
        return {name for name in now if now[name] != before[name]}

    forget()
    before = current_versions()
    assert {"weights", "train", "report"} <= moved("weights/normalisation")
    # Training runs in a process of its own, which no import leads to.
    for module in ("training/update", "training/signals", "credit"):
        assert moved(module) == {"train"}
    # Answers are compared in workers, which are named and not imported.
    assert {"rollouts", "train", "evaluate"} <= moved("evaluation/algebra")
    assert {"rollouts", "contribution", "train", "evaluate"} <= moved("models/llada")
    assert "train" in moved("stages/train")
    assert moved("report/figures") == {"report"}
    assert moved("errors") == set(STAGES)
    assert moved("pretraining/loop") == set()
    monkeypatch.undo()
    forget()


def test_the_committed_lock_agrees_with_the_code():
    assert undecided() == [], "run `python -m dtca_core.stages.code --lock` once you have decided"
    assert read_lock().keys() == STAGES.keys()


def test_what_moved_is_named_until_it_is_decided(monkeypatch, tmp_path, capsys):
    lock = tmp_path / "lock.json"
    monkeypatch.setattr(code, "LOCK_FILE", lock)
    assert [line.split(":")[0] for line in undecided()] == list(STAGES)
    monkeypatch.setattr(sys, "argv", ["code", "--lock"])
    assert code.main() == 0
    assert undecided() == []
    monkeypatch.setattr(sys, "argv", ["code"])
    assert code.main() == 0
    assert capsys.readouterr().out == "nothing moved\n"
    versions = json.loads(lock.read_text())
    versions["train"]["version"] = 0
    lock.write_text(json.dumps(versions))
    assert code.main() == 1
    assert capsys.readouterr().out.startswith("train: locked {'version': 0")

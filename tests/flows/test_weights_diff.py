"""What `dtca weights diff` prints, on artifacts of a store and on files by path."""

import json
import shutil

import pytest

from dtca_core.config import WeightsConfig
from dtca_core.stages.run import run_stage
from dtca_core.stages.weights import WEIGHTS, weights_file
from flows.cli import main
from tests.stage_runs import Heard


@pytest.fixture
def printed(monkeypatch, capsys, finished_pipeline):
    """Return a function that runs `dtca weights diff` on the store of the finished pipeline."""
    monkeypatch.setenv("DTCA_ARTIFACTS", str(finished_pipeline[0].root))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["dtca", "weights", "diff", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        written = capsys.readouterr()
        return stopped.value.code, written.out, written.err

    return run


@pytest.fixture
def artifact(finished_pipeline):
    """The weights of the finished pipeline."""
    return finished_pipeline[2]["weights"].artifact


def edited(artifact, path, **estimate):
    """A copy of a weights.json in which one category is as given."""
    values = json.loads(weights_file(artifact).read_text(encoding="utf-8"))
    name = max(values["categories"], key=lambda c: values["categories"][c]["num_responses"])
    values["categories"][name] |= {"num_responses": 20, "count": 400, **estimate}
    path.write_text(json.dumps(values), encoding="utf-8")
    return name


def line_of(text, category):
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [category]]
    return line


def test_an_artifact_against_itself_has_not_moved(printed, artifact):
    status, out, _ = printed("latest", artifact.key[:8])
    assert status == 0
    assert "same contributions" in out
    assert str(artifact.path) in out
    assert " *" not in out.replace("* moved", "")


def test_a_category_that_moved_is_marked(printed, artifact, tmp_path):
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    name = edited(artifact, before, mean_delta_p=0.25, standard_error=0.01, weight=0.9)
    edited(artifact, after, mean_delta_p=0.5, standard_error=0.01, weight=1.1)
    status, out, _ = printed(before, after)
    assert status == 0
    cells = line_of(out, name).split()
    assert cells[1:6] == ["400", "400", "0.2500", "0.5000", "+0.2500"]
    assert cells[7:] == ["*", "0.900", "1.100"]
    assert "does not say which responses" in " ".join(out.split())


def test_other_settings_are_said(printed, artifact, finished_pipeline, tmp_path):
    store, _, found = finished_pipeline
    shutil.copytree(found["contribution"].artifact.path, tmp_path / "contribution")
    given = store.resolve("contribution", str(tmp_path / "contribution"))
    config = WeightsConfig(tagger="spacy", min_count=3)
    result = run_stage(store, WEIGHTS, config, inputs={"contribution": given}, listener=Heard())
    _, out, _ = printed(artifact.path, result.artifact.path)
    assert "taggers differ" in out
    assert "scales differ" in out
    assert "same contributions" in out
    store.remove(result.artifact.path)


def test_what_is_no_weight_file_is_refused(printed, tmp_path):
    path = tmp_path / "weights.json"
    path.write_text("{}", encoding="utf-8")
    status, _, err = printed("latest", path)
    assert status == 2
    assert f"weight file {path} cannot be used" in err

"""Tests of datasets by name, on folders laid out like their repositories: no network is used."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtca_core.data import hub
from dtca_core.data.hub import HUB_DATASETS, check_purpose, hub_rows
from dtca_core.data.problems import problems_of
from dtca_core.errors import DataError


@pytest.fixture
def mirrored(monkeypatch, tmp_path):
    """Return a function that has a dataset read from a folder instead of from the hub."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def mirror(name, folder):
        known = replace(HUB_DATASETS[name], repository=str(folder))
        monkeypatch.setitem(hub.HUB_DATASETS, name, known)

    return mirror


def write_parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def write_gsm8k(folder):
    """Write a repository with the two configurations and two splits that GSM8K has."""
    paths = []
    for config in ("main", "socratic"):
        for split in ("train", "test"):
            row = {"question": f"{config} {split}?", "answer": "1 + 1 = <<1+1=2>>2\n#### 2"}
            write_parquet(folder / config / f"{split}-00000-of-00001.parquet", [row] * 2)
        files = [{"split": s, "path": f"{config}/{s}-*"} for s in ("train", "test")]
        paths.append({"config_name": config, "data_files": files})
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(paths)}\n---\n")
    return folder


def problems(name, purpose):
    """Return question and answer of each problem of a dataset."""
    read = problems_of(hub_rows(name, purpose), None, None, name)
    assert {problem.kind for problem in read} == {name}
    return [(problem.question, problem.answer) for problem in read]


def test_gsm8k_gives_the_split_of_the_purpose(mirrored, tmp_path):
    mirrored("gsm8k", write_gsm8k(tmp_path / "gsm8k"))
    assert problems("gsm8k", "training") == [("main train?", "2")] * 2
    assert problems("gsm8k", "evaluation") == [("main test?", "2")] * 2


def test_math500_gives_its_problems_with_the_short_answers(mirrored, tmp_path):
    row = {"problem": "What is 1/2 + 1/3?", "solution": r"\boxed{5/6}", "answer": "5/6"}
    (tmp_path / "math").mkdir()
    (tmp_path / "math" / "test.jsonl").write_text(json.dumps({**row, "level": 2}) + "\n")
    mirrored("math500", tmp_path / "math")
    assert problems("math500", "evaluation") == [("What is 1/2 + 1/3?", "5/6")]


@pytest.mark.parametrize("form", [int, "Level {}".format])
def test_math_train_is_levels_3_to_5(mirrored, tmp_path, form):
    rows = [{"problem": f"p{n}", "answer": str(n), "level": form(n)} for n in range(1, 6)]
    write_parquet(tmp_path / "math" / "data" / "train-00000-of-00001.parquet", rows)
    mirrored("math-train", tmp_path / "math")
    assert problems("math-train", "training") == [("p3", "3"), ("p4", "4"), ("p5", "5")]


def test_a_row_is_named_by_its_dataset_and_split(mirrored, tmp_path):
    mirrored("gsm8k", write_gsm8k(tmp_path / "gsm8k"))
    assert [place for place, _ in hub_rows("gsm8k", "training")] == [
        "gsm8k, train, row 1",
        "gsm8k, train, row 2",
    ]


@pytest.mark.parametrize(
    ("name", "purpose", "others"),
    [
        ("math500", "training", "'gsm8k' or 'math-train'"),
        ("math-train", "evaluation", "'gsm8k' or 'math500'"),
    ],
)
def test_a_dataset_serves_only_what_it_is_for(name, purpose, others):
    message = f"dataset {name!r} has no split for {purpose}; use {others}"
    for read in (check_purpose, hub_rows):
        with pytest.raises(DataError, match=message):
            read(name, purpose)


def test_a_repository_that_cannot_be_read_is_refused_with_what_to_do(mirrored, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "gone", tmp_path / "empty"):
        mirrored("gsm8k", folder)
        with pytest.raises(DataError) as refusal:
            hub_rows("gsm8k", "training")
        message = str(refusal.value)
        assert f"'gsm8k' could not be read from the hub, {folder} at 740312add88f" in message
        assert "give the path of that file" in message


def test_rows_without_a_level_or_of_no_level_are_refused(mirrored, tmp_path):
    rows = [{"problem": "p", "answer": "1"}]
    write_parquet(tmp_path / "none" / "data" / "train-00000-of-00001.parquet", rows)
    mirrored("math-train", tmp_path / "none")
    with pytest.raises(DataError, match="no column 'level' to choose problems by; it has 'problem"):
        hub_rows("math-train", "training")
    rows = [{"problem": "p", "answer": "1", "level": "Level ?"}]
    write_parquet(tmp_path / "easy" / "data" / "train-00000-of-00001.parquet", rows)
    mirrored("math-train", tmp_path / "easy")
    with pytest.raises(DataError, match="holds no problems in its split 'train'"):
        hub_rows("math-train", "training")


def test_every_dataset_is_pinned_to_a_commit():
    for known in HUB_DATASETS.values():
        assert len(known.revision) == 40
        assert int(known.revision, 16) > 0

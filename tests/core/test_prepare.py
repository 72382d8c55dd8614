"""Tests of the prepare stage: clean splits from files, hub datasets and the generator."""

import json
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtca_core.config import DataConfig
from dtca_core.data.hub import HUB_DATASETS
from dtca_core.data.problems import read_split
from dtca_core.errors import DataError
from dtca_core.stages.prepare import PREPARE, PROBLEMS_FILE
from dtca_core.stages.run import run_stage
from dtca_core.store import Store
from tests.stage_runs import Heard

TRAIN_ROWS = [
    {"question": "What is 1+1?", "answer": "2"},
    {"question": "what is  1+1", "answer": "3"},  # the same problem, another answer
    {"question": "What is 2+2?", "answer": "So 4 #### 4"},
    {"question": "What is 3+3?", "answer": ""},
    {"question": "What is 3+3?", "answer": "6"},  # of two alike, the one with an answer stays
    {"question": "What is 4+4?", "answer": "8"},
    {"question": "What is 5+5?", "answer": "10"},
]
TEST_ROWS = [
    {"question": "WHAT IS 2+2", "answer": "4"},
    {"question": "What is 9+9?", "answer": "18"},
    {"question": "What is 8+8?", "answer": " "},
]


def write_rows(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def prepare(folder, suffix=".jsonl", train=TRAIN_ROWS, test=TEST_ROWS, listener=None, **settings):
    config = DataConfig(
        source=write_rows(folder / f"train{suffix}", train),
        evaluation_source=write_rows(folder / f"test{suffix}", test),
        **settings,
    )
    store = Store(folder / "artifacts")
    return run_stage(store, PREPARE, config, inputs={}, listener=listener or Heard())


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_files_become_clean_splits_whatever_their_format(tmp_path, suffix):
    artifact = prepare(tmp_path, suffix, on_contamination="drop", num_validation=2).artifact
    # By hand: of 7 training rows one has no answer, one is a duplicate and one is an evaluation
    # problem; of the 4 that are left, half at most are held out.
    assert artifact.manifest.counts == {
        "train_unanswered": 1,
        "train_unreadable": 0,
        "train_duplicates": 1,
        "train_contradicting": 1,
        "test_unanswered": 1,
        "test_unreadable": 0,
        "test_duplicates": 0,
        "test_contradicting": 0,
        "contaminated": 1,
        "contaminated_exact": 0,
        "contaminated_normalised": 1,
        "contaminated_near": 0,
        "train": 2,
        "validation": 2,
        "test": 2,
    }
    splits = {
        split: read_split(artifact.path / PROBLEMS_FILE, split)
        for split in ("train", "validation", "test")
    }
    assert [(p.question, p.answer) for p in splits["test"]] == [
        ("WHAT IS 2+2", "4"),
        ("What is 9+9?", "18"),
    ]
    learnt = splits["train"] + splits["validation"]
    assert {p.question for p in learnt} == {f"What is {n}+{n}?" for n in (1, 3, 4, 5)}
    assert {p.answer for p in learnt} == {"2", "6", "8", "10"}


def test_a_training_problem_that_is_an_evaluation_problem_is_refused_by_default(tmp_path):
    with pytest.raises(DataError, match="1 of 5 training problems") as refusal:
        prepare(tmp_path)
    message = str(refusal.value)
    assert "'What is 2+2?'" in message
    assert "0 word for word, 1 but for spacing, case or punctuation, 0 reworded" in message
    assert "data.on_contamination" in message
    assert prepare(tmp_path, num_test=1, test=TEST_ROWS[1:]).artifact.manifest.counts["test"] == 1


def test_the_gate_sees_also_the_evaluation_problems_beyond_the_limit(tmp_path):
    with pytest.raises(DataError, match="1 of 5 training problems"):
        prepare(tmp_path, num_test=1, test=TEST_ROWS[::-1])


def test_a_reworded_evaluation_problem_is_refused_beside_the_one_it_rewords(tmp_path):
    asked = "A tank holds 40 litres and loses 3 litres an hour. How much is left after 5 hours?"
    reworded = asked.replace("A tank", "12. The old tank").replace("left", "left over")
    train = [*TRAIN_ROWS, {"question": reworded, "answer": "25"}]
    with pytest.raises(DataError) as refusal:
        prepare(tmp_path, train=train, test=[{"question": asked, "answer": "25"}])
    message = str(refusal.value)
    assert "1 of 6 training problems" in message
    assert "0 word for word, 0 but for spacing, case or punctuation, 1 reworded" in message
    assert f"{reworded!r}\n    which rewords {asked!r}" in message


def test_what_is_dropped_is_said(tmp_path):
    heard = Heard()
    prepare(tmp_path, on_contamination="drop", listener=heard)
    train, test, gate = heard.noted
    assert "train.jsonl: 7 problems, dropped 1 without an answer and 1 duplicates, 1 of" in train
    assert "test.jsonl: 3 problems, dropped 1 without an answer and 0 duplicates" in test
    assert gate.startswith("1 of 5 training problems")
    assert gate.endswith("1 but for spacing, case or punctuation, 0 reworded; they were dropped")


def test_a_reference_that_no_answer_can_agree_with_never_pays(tmp_path):
    heard = Heard()
    broken = {"question": "What is 7+7?", "answer": "\\frac{14}{1"}
    artifact = prepare(
        tmp_path, train=[*TRAIN_ROWS, broken], on_contamination="drop", listener=heard
    ).artifact
    assert artifact.manifest.counts["train_unreadable"] == 1
    said = "train: dropped problems whose reference cannot be read as an answer: 1, such as"
    assert any(note.startswith(said) for note in heard.noted)
    for split in ("train", "validation"):
        problems = read_split(artifact.path / PROBLEMS_FILE, split)
        assert broken["question"] not in [problem.question for problem in problems]


def test_each_file_may_have_columns_of_its_own(tmp_path):
    train = [{"q": f"What is {n}+1?", "a": str(n + 1)} for n in range(4)]
    test = [{"problem": "What is 9+9?", "final": 18}]
    columns = {"question_column": "q", "answer_column": "a"}
    with pytest.raises(DataError, match="no column 'q'; it has 'problem', 'final'"):
        prepare(tmp_path, train=train, test=test, **columns)
    columns |= {"evaluation_question_column": "problem", "evaluation_answer_column": "final"}
    artifact = prepare(tmp_path, train=train, test=test, **columns).artifact
    (problem,) = read_split(artifact.path / PROBLEMS_FILE, "test")
    assert (problem.question, problem.answer) == ("What is 9+9?", "18")


def test_null_takes_all_problems(tmp_path):
    limits = {"num_train": 1, "num_validation": 1, "num_test": 1}
    settings = {"on_contamination": "drop", **limits}
    few = prepare(tmp_path, **settings).artifact.manifest.counts
    assert [few[split] for split in ("train", "validation", "test")] == [1, 1, 1]
    settings |= {"num_train": None, "num_test": None}
    everything = prepare(tmp_path, **settings).artifact.manifest.counts
    # By hand: four training problems are left of seven, and one of them is held out.
    assert [everything[split] for split in ("train", "validation", "test")] == [3, 1, 2]


def test_validation_is_cut_from_training_by_the_seed_and_never_from_the_evaluation(tmp_path):
    rows = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(40)]
    test = [{"question": f"What is {n} + 2?", "answer": str(n + 2)} for n in range(9)]
    held_out = []
    for seed in (0, 0, 1):
        artifact = prepare(tmp_path, train=rows, test=test, seed=seed, num_validation=8).artifact
        splits = {
            split: [p.question for p in read_split(artifact.path / PROBLEMS_FILE, split)]
            for split in ("train", "validation", "test")
        }
        assert splits["test"] == [row["question"] for row in test]
        learnt = splits["train"] + splits["validation"]
        assert sorted(learnt) == sorted(row["question"] for row in rows)
        held_out.append(splits["validation"])
    assert len(held_out[0]) == 8
    assert held_out[0] == held_out[1] != held_out[2]


def test_a_dataset_of_the_hub_goes_the_same_way_and_its_name_is_in_the_key(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    known = replace(HUB_DATASETS["math500"], repository=str(tmp_path / "hub"))
    monkeypatch.setitem(HUB_DATASETS, "math500", known)
    (tmp_path / "hub").mkdir()
    rows = [{"problem": f"What is {n}+{n}?", "answer": str(2 * n)} for n in (2, 9)]
    write_rows(tmp_path / "hub" / "test.jsonl", rows)
    config = DataConfig(
        source=write_rows(tmp_path / "train.jsonl", TRAIN_ROWS), evaluation_source="math500"
    )
    store = Store(tmp_path / "artifacts")
    with pytest.raises(DataError, match=r"1 of 5 .* problems of math500: 1 word for word"):
        run_stage(store, PREPARE, config, inputs={}, listener=Heard())
    config = config.model_copy(update={"on_contamination": "drop"})
    artifact = run_stage(store, PREPARE, config, inputs={}, listener=Heard()).artifact
    assert artifact.manifest.inputs.keys() == {"source"}
    assert artifact.manifest.config["evaluation_source"] == "math500"
    assert {p.kind for p in read_split(artifact.path / PROBLEMS_FILE, "test")} == {"math500"}


def test_a_dataset_that_is_not_for_training_is_refused_before_any_work():
    config = DataConfig(source="math500", evaluation_source="gsm8k")
    with pytest.raises(DataError, match=r"'math500' has no split for training; use 'gsm8k' or"):
        PREPARE.files(config)


def test_problem_files_count_by_their_content_and_not_by_their_path(tmp_path):
    first = prepare(tmp_path, on_contamination="drop")
    assert prepare(tmp_path, on_contamination="drop").is_cached
    (tmp_path / "other").mkdir()
    moved = prepare(tmp_path / "other", on_contamination="drop").artifact
    assert moved.key == first.artifact.key
    more = [*TRAIN_ROWS, {"question": "What is 6+6?", "answer": "12"}]
    changed = prepare(tmp_path, train=more, on_contamination="drop")
    assert not changed.is_cached
    assert changed.artifact.key != first.artifact.key
    assert changed.artifact.manifest.inputs.keys() == {"source", "evaluation_source"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": TRAIN_ROWS[:1]}, "leaves 1 training problems; at least 2 are needed"),
        ({"test": TEST_ROWS[2:]}, "holds no problem with an answer"),
    ],
)
def test_too_few_problems_are_refused(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        prepare(tmp_path, on_contamination="drop", **changes)


def test_a_problem_file_that_does_not_exist_is_named_with_its_setting(tmp_path):
    config = DataConfig(source=str(tmp_path / "no.json"), evaluation_source="nor-this.json")
    with pytest.raises(
        DataError, match=r"no\.json does not exist; correct data\.source, or use .*gsm8k"
    ):
        run_stage(Store(tmp_path), PREPARE, config, inputs={}, listener=Heard())


def test_a_generator_that_runs_dry_is_named_with_its_setting(tmp_path, monkeypatch):
    from dtca_core.data import word_problems as module

    few = list(islice(module.word_problems("train", 0), 3))
    monkeypatch.setattr(module, "word_problems", lambda _split, _seed: iter(few * 9))
    with pytest.raises(DataError, match=r"has 3 distinct train problems, 4 were asked for"):
        run_stage(Store(tmp_path), PREPARE, DataConfig(num_train=4), inputs={}, listener=Heard())

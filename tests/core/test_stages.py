"""Tests of the stages: built once, resumed, named by what decides them, on a small pipeline."""

import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

from dtca_core.config import WeightsConfig
from dtca_core.data.problems import read_split
from dtca_core.errors import ArtifactError, DataError
from dtca_core.models import load_predictor
from dtca_core.records import CONTRIBUTION_SCHEMA, EVALUATION_SCHEMA, ROLLOUT_SCHEMA
from dtca_core.stages import STAGES
from dtca_core.stages.code import code_digest
from dtca_core.stages.evaluate import read_results
from dtca_core.stages.pipeline import steps
from dtca_core.stages.prepare import PROBLEMS_FILE
from dtca_core.stages.run import model_input, run_stage, stage_key
from dtca_core.stages.shards import shard_paths
from dtca_core.stages.weights import WEIGHTS, weights_file
from dtca_core.store import Store, read_table
from dtca_core.training.metrics import read_metrics
from dtca_core.weights import WeightArtifact
from tests.stage_runs import Heard, run_step

TOLERANCE = 1e-5
"""Of probabilities, when the same states are evaluated in other batches."""

SHARDED = {
    "rollouts": ("rollouts", ROLLOUT_SCHEMA),
    "contribution": ("contribution", CONTRIBUTION_SCHEMA),
    "evaluate-base": ("results-16x8", EVALUATION_SCHEMA),
}
"""Steps that work in shards: beginning of their names and their columns."""


@pytest.fixture
def pipeline(finished_pipeline, tmp_path):
    """A copy of the finished pipeline that a test may harm: store, settings, results."""
    original, config, _ = finished_pipeline
    store = Store(shutil.copytree(original.root, tmp_path / "artifacts"))
    return store, config, {step.name: step for step in steps(config)}


def inputs_of(step, found):
    return {name: found[source].artifact for name, source in step.inputs.items()}


def model_of_step(step, found):
    checkpoint = found[step.trained_by].artifact if step.trained_by else None
    return None if step.model is None else model_input(step.model, checkpoint)


def rebuilt(step, **changes):
    """The step with other settings and with a build that keeps when it was entered."""
    entered = []

    def build(context):
        entered.append(context.folder)
        return step.spec.build(context)

    build.__module__ = step.spec.build.__module__
    config = step.config.model_copy(update=changes)
    return replace(step, config=config, spec=replace(step.spec, build=build)), entered


def dying():
    """A listener that raises when it hears that two thirds are done."""

    def progress(done, total, _unit, _note=""):
        if done >= 2 * total / 3:
            raise KeyboardInterrupt

    listener = Heard()
    listener.progress = progress
    return listener


def files_of(artifact):
    return [(file.path, file.sha256) for file in artifact.manifest.files]


# ------------------------------------------------------------------------------ built and cached


@pytest.mark.parametrize(
    "name",
    ["prepare", "rollouts", "contribution", "weights", "evaluate-base", "train", "report"],
)
def test_a_stage_that_is_in_the_store_is_not_entered(finished_pipeline, name):
    store, config, found = finished_pipeline
    step, entered = rebuilt({step.name: step for step in steps(config)}[name])
    result = run_step(store, step, found)
    assert not entered
    assert result.is_cached
    assert result.artifact == found[name].artifact
    assert not found[name].is_cached


@pytest.mark.parametrize("name", ["prepare", "rollouts", "contribution", "weights", "report"])
def test_refresh_builds_again_and_gives_the_same_content(pipeline, finished_pipeline, name):
    store, _, by_name = pipeline
    found = finished_pipeline[2]
    step, entered = rebuilt(by_name[name])
    heard = Heard()
    result = run_step(store, step, found, heard, refresh=True)
    assert len(entered) == 1
    assert heard.progressed
    assert not result.is_cached
    assert result.artifact.content == found[name].artifact.content


@pytest.mark.parametrize("name", ["rollouts", "contribution", "weights", "evaluate-base"])
def test_a_damaged_artifact_is_rebuilt_with_the_same_content(pipeline, finished_pipeline, name):
    store, _, by_name = pipeline
    found = finished_pipeline[2]
    old = found[name].artifact
    file = store.root / old.kind / old.key / old.manifest.files[-1].path
    file.write_bytes(file.read_bytes()[:-1])
    assert store.find(old.kind, old.key) is None
    step, entered = rebuilt(by_name[name])
    result = run_step(store, step, found)
    assert len(entered) == 1
    assert not result.is_cached
    assert files_of(result.artifact) == files_of(old)
    assert store.find(old.kind, old.key) is not None


def test_a_manifest_says_where_its_artifact_comes_from(finished_pipeline):
    _, config, found = finished_pipeline
    for step in steps(config):
        artifact = found[step.name].artifact
        manifest = artifact.manifest
        assert (manifest.kind, manifest.version) == (step.spec.kind, step.spec.version)
        assert manifest.key == artifact.key
        assert manifest.code == code_digest(step.spec.modules)
        assert manifest.config.keys() <= step.config.keyed().keys() | {"dtype"}
        assert manifest.execution == step.config.model_dump(mode="json")
        expected = {name: source.input_record for name, source in inputs_of(step, found).items()}
        if step.model is not None:
            expected["model"] = model_of_step(step, found).artifact.input_record
        assert manifest.inputs == expected
        assert (manifest.device, manifest.dtype) == ("cpu", "float32")
        assert manifest.seed == getattr(step.config, "seed", None)
        assert {"torch", "dtca", "spacy"} <= manifest.packages.keys()
        assert manifest.seconds > 0
    assert found["prepare"].artifact.manifest.counts == {"train": 12, "validation": 4, "test": 5}
    assert found["rollouts"].artifact.manifest.counts["rollouts"] == 12
    assert found["evaluate"].artifact.manifest.inputs["model"].kind == "checkpoint"
    assert found["evaluate-base"].artifact.manifest.inputs["model"].kind == "model"


def test_without_git_a_manifest_names_no_commit(finished_pipeline, tmp_path, monkeypatch):
    _, config, found = finished_pipeline
    monkeypatch.setenv("PATH", str(tmp_path))
    step = {step.name: step for step in steps(config)}["prepare"]
    built = run_step(Store(tmp_path), step, found).artifact
    assert built.manifest.git_commit is None
    assert built.content == found["prepare"].artifact.content


def test_every_stage_is_known_by_its_name_and_kinds_differ():
    assert list(STAGES) == [
        "prepare",
        "rollouts",
        "contribution",
        "weights",
        "train",
        "evaluate",
        "report",
    ]
    assert len({spec.kind for spec in STAGES.values()}) == len(STAGES)


# ----------------------------------------------------------------- killed, resumed, thrown away


@pytest.mark.parametrize("name", ["rollouts", "contribution", "evaluate-base"])
def test_a_killed_stage_resumes_and_gives_the_same_bytes(pipeline, finished_pipeline, name):
    store, _, by_name = pipeline
    found, step = finished_pipeline[2], by_name[name]
    old = found[name].artifact
    store.remove(store.find(old.kind, old.key))
    with pytest.raises(KeyboardInterrupt):
        run_step(store, step, found, dying())
    (work,) = store.leftovers()
    before = {path: path.stat().st_mtime_ns for path in work.glob("*.parquet")}
    assert before
    result = run_step(store, step, found)
    assert not result.is_cached
    assert files_of(result.artifact) == files_of(old)
    kept = {path.name: path.stat().st_mtime_ns for path in result.artifact.path.glob("*.parquet")}
    assert len(kept) > len(before)
    assert {path.name: time for path, time in before.items()}.items() <= kept.items()
    assert store.leftovers() == []


def test_what_other_code_has_begun_is_thrown_away(pipeline, finished_pipeline):
    store, _, by_name = pipeline
    found, step = finished_pipeline[2], by_name["rollouts"]
    old = found["rollouts"].artifact
    store.remove(store.find(old.kind, old.key))
    with pytest.raises(KeyboardInterrupt):
        run_step(store, step, found, dying())
    (work,) = store.leftovers()
    # A shard and a file that only the other code would have written.
    (shard, *_) = work.glob("*.parquet")
    shard.write_bytes(b"of other code")
    (work / "stray.txt").write_text("of other code")
    (work / ".code.partial").write_text("another digest")
    result = run_step(store, step, found)
    assert files_of(result.artifact) == files_of(old)


def test_who_waits_for_another_builder_is_told_which_artifact_it_is(pipeline, finished_pipeline):
    import threading

    store, _, by_name = pipeline
    found, heard = finished_pipeline[2], Heard()
    artifact = found["weights"].artifact
    held, told = threading.Event(), threading.Event()

    def hold():
        with Store(store.root).locked(artifact.kind, artifact.key):
            held.set()
            told.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(10)
    heard.waiting = lambda reference: (heard.waited.append(reference), told.set())
    assert run_step(store, by_name["weights"], found, heard).is_cached
    other.join()
    assert heard.waited == [artifact.reference]


# --------------------------------------------------------- how fast is in no key and shows nowhere


@pytest.mark.parametrize("name", SHARDED)
def test_shard_and_batch_sizes_change_neither_key_nor_rows(tmp_path, finished_pipeline, name):
    _, config, found = finished_pipeline
    step = {step.name: step for step in steps(config)}[name]
    fast, _ = rebuilt(step, shard_size=5, batch_size=3)
    fast = replace(fast, model=step.model.model_copy(update={"device": "auto"}))
    result = run_step(Store(tmp_path), fast, found)
    old = found[name].artifact
    assert result.artifact.key == old.key
    stem, schema = SHARDED[name]
    tables = [read_table(shard_paths(a.path, stem), schema) for a in (result.artifact, old)]
    for column in schema.names:
        new, expected = (table[column].to_pylist() for table in tables)
        if pa.types.is_float32(schema.field(column).type) and column != "reward":
            assert new == [None if v is None else pytest.approx(v, abs=TOLERANCE) for v in expected]
        elif column == "commit_confidence":
            for mine, other in zip(new, expected, strict=True):
                assert mine == pytest.approx(other, abs=TOLERANCE)
        else:
            assert new == expected, column


def test_settings_of_speed_are_in_no_key_and_others_are(finished_pipeline):
    _, config, found = finished_pipeline
    for step in steps(config):
        inputs, model = inputs_of(step, found), model_of_step(step, found)
        key = stage_key(step.spec, step.config, inputs, model)
        assert key == found[step.name].artifact.key
        for name, field in type(step.config).model_fields.items():
            is_speed = (field.json_schema_extra or {}) == {"execution": True}
            if is_speed and isinstance(getattr(step.config, name), int):
                other = step.config.model_copy(update={name: getattr(step.config, name) + 1})
                assert stage_key(step.spec, other, inputs, model) == key
        if "seed" in type(step.config).model_fields:
            other = step.config.model_copy(update={"seed": 7})
            assert stage_key(step.spec, other, inputs, model) != key
        assert stage_key(replace(step.spec, version=9), step.config, inputs, model) != key
        if model is not None:
            other = replace(model, config=model.config.model_copy(update={"dtype": "bfloat16"}))
            assert stage_key(step.spec, step.config, inputs, other) != key


# -------------------------------------------------------------------------------------- the model


def test_a_model_counts_by_its_files_and_not_by_its_name(
    finished_pipeline, tiny_model_folder, tmp_path
):
    _, config, found = finished_pipeline
    step = {step.name: step for step in steps(config)}["rollouts"]
    copy = shutil.copytree(tiny_model_folder, tmp_path / "copy")
    (copy / "README.md").write_text("no file of the model")

    def key():
        model = model_input(config.model.model_copy(update={"source": str(copy)}))
        return stage_key(step.spec, step.config, inputs_of(step, found), model)

    assert key() == found["rollouts"].artifact.key
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    changed = key()
    assert changed != found["rollouts"].artifact.key
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + "\n")
    assert key() not in (changed, found["rollouts"].artifact.key)


def test_a_checkpoint_by_key_or_by_path_gives_the_same_evaluation(finished_pipeline):
    store, config, found = finished_pipeline
    step = {step.name: step for step in steps(config)}["evaluate"]
    checkpoint = found["train"].artifact
    by_path = store.resolve("checkpoint", str(checkpoint.path))
    ways = [model_input(config.model, checkpoint), model_input(config.model, by_path)]
    keys = {stage_key(step.spec, step.config, inputs_of(step, found), way) for way in ways}
    assert keys == {found["evaluate"].artifact.key}


def test_a_model_folder_counts_alike_as_a_model_and_as_a_checkpoint(finished_pipeline):
    store, config, found = finished_pipeline
    folder = found["train"].artifact.path / "model"
    as_checkpoint = model_input(config.model, store.resolve("checkpoint", str(folder)))
    as_model = model_input(config.model.model_copy(update={"source": str(folder)}))
    assert as_checkpoint.artifact.content == as_model.artifact.content


def test_a_checkpoint_says_which_weights_it_was_trained_with(finished_pipeline):
    found = finished_pipeline[2]
    trained_with = found["train"].artifact.path / "weights.json"
    assert trained_with.read_bytes() == weights_file(found["weights"].artifact).read_bytes()


def test_a_trained_checkpoint_loads_and_brings_its_metrics(finished_pipeline):
    checkpoint = finished_pipeline[2]["train"].artifact
    assert load_predictor(checkpoint.path / "model").tokenizer is not None
    rows = read_metrics(checkpoint.path / "metrics.jsonl")
    assert [row["update"] for row in rows] == [0, 1, 1]
    assert not (checkpoint.path / "state").exists()
    assert (checkpoint.path / "logs" / "timings.jsonl").is_file()


# ------------------------------------------------------------------------------------ the weights


def test_weights_need_nothing_but_the_contribution_artifact(finished_pipeline, tmp_path):
    _, config, found = finished_pipeline
    old = found["weights"].artifact
    copy = shutil.copytree(found["contribution"].artifact.path, tmp_path / "given")
    (copy / "manifest.json").unlink()
    store = Store(tmp_path / "artifacts")
    given = store.resolve("contribution", str(copy))
    result = run_stage(
        store, WEIGHTS, config.weights, inputs={"contribution": given}, listener=Heard()
    )
    assert files_of(result.artifact) == files_of(old)


def test_weights_given_by_path_count_by_their_content(finished_pipeline, tmp_path):
    store, config, found = finished_pipeline
    step = {step.name: step for step in steps(config)}["train"]
    path = tmp_path / "edited.json"
    shutil.copy(weights_file(found["weights"].artifact), path)

    def key():
        given = store.resolve("weights", str(path))
        assert weights_file(given) == path
        inputs = {**inputs_of(step, found), "weights": given}
        return stage_key(step.spec, step.config, inputs, model_of_step(step, found))

    first = key()
    assert key() == first
    moved = shutil.copy(path, tmp_path / "moved.json")
    artifact = WeightArtifact.read(moved)
    artifact.model_copy(update={"unseen_weight": 1.125}).write(path)
    assert key() != first
    shutil.move(moved, path)
    assert key() == first


def test_a_folder_without_contributions_is_refused(tmp_path, finished_pipeline):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "notes.txt").write_text("nothing")
    given = finished_pipeline[0].resolve("contribution", str(tmp_path / "given"))
    with pytest.raises(DataError, match=r"holds no contribution\*\.parquet"):
        run_stage(
            Store(tmp_path / "artifacts"),
            WEIGHTS,
            WeightsConfig(),
            inputs={"contribution": given},
            listener=Heard(),
        )


def test_contributions_without_their_text_are_refused(tmp_path, finished_pipeline):
    copy = shutil.copytree(finished_pipeline[2]["contribution"].artifact.path, tmp_path / "given")
    (copy / "manifest.json").unlink()
    shard_paths(copy, "responses")[0].unlink()
    given = finished_pipeline[0].resolve("contribution", str(copy))
    with pytest.raises(DataError, match="contributions of 4 responses without a text"):
        run_stage(
            Store(tmp_path / "artifacts"),
            WEIGHTS,
            WeightsConfig(),
            inputs={"contribution": given},
            listener=Heard(),
        )


def test_more_prompts_than_problems_are_refused(finished_pipeline, tmp_path):
    _, config, found = finished_pipeline
    step = {step.name: step for step in steps(config)}["rollouts"]
    greedy, _ = rebuilt(step, num_prompts=13)
    with pytest.raises(DataError, match=r"12 training problems, rollouts\.num_prompts is 13"):
        run_step(Store(tmp_path), greedy, found)


# ----------------------------------------------------------------------------------------- report


def test_the_report_needs_files_that_are_what_it_is_told(finished_pipeline, tmp_path):
    _, config, found = finished_pipeline
    page = (found["report"].artifact.path / "report.html").read_text()
    for step in steps(config)[:-1]:
        if step.name not in ("rollouts", "contribution"):
            assert found[step.name].artifact.key[:12] in page
    step = {step.name: step for step in steps(config)}["evaluate"]
    rows = read_results(found["evaluate"].artifact.path, step.config.budgets[0])
    problems = read_split(found["prepare"].artifact.path / PROBLEMS_FILE, "test")
    assert [row["problem_id"] for row in rows] == [problem.problem_id for problem in problems]
    empty = tmp_path / "weights.json"
    empty.write_text("{}")
    with pytest.raises(ArtifactError, match="cannot be used"):
        WeightArtifact.read(empty)

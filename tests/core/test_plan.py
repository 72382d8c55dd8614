"""Tests of the plan: what would run and why, and that it changes nothing."""

import shutil

import pytest

from dtca_core.stages.pipeline import steps
from dtca_core.stages.plan import plan
from dtca_core.store import Store

STEPS = [
    "prepare",
    "rollouts",
    "contribution",
    "weights",
    "evaluate-base",
    "train",
    "evaluate",
    "report",
]


@pytest.fixture
def store(finished_pipeline, tmp_path):
    """A copy of the store of the finished pipeline, which a test may harm."""
    return Store(shutil.copytree(finished_pipeline[0].root, tmp_path / "artifacts"))


def changed(config, **sections):
    """The settings with other values in some sections."""
    update = {
        name: getattr(config, name).model_copy(update=values) for name, values in sections.items()
    }
    return config.model_copy(update=update)


def reasons(store, config):
    """Why each step would run, by its name; fresh steps are left out."""
    return {step.name: step.reason for step in plan(store, steps(config)) if not step.is_fresh}


def damage(store, artifact, name):
    path = store.root / artifact.kind / artifact.key / name
    path.write_bytes(path.read_bytes()[:-1])


def test_in_an_empty_store_everything_would_run_in_order(finished_pipeline, tmp_path):
    planned = plan(Store(tmp_path / "empty"), steps(finished_pipeline[1]))
    assert [step.name for step in planned] == STEPS
    assert not any(step.is_fresh for step in planned)
    assert {step.name: step.reason for step in planned} == {
        "prepare": "never built",
        "rollouts": "its input prepare would be built anew",
        "contribution": "its input rollouts would be built anew",
        "weights": "its input contribution would be built anew",
        "evaluate-base": "its input prepare would be built anew",
        "train": "its input prepare and weights would be built anew",
        "evaluate": "its input prepare and train would be built anew",
        "report": "its input evaluate and evaluate-base and prepare and train and weights "
        "would be built anew",
    }
    assert not (tmp_path / "empty").exists()


def test_after_a_run_everything_is_fresh_and_named(finished_pipeline):
    store, config, found = finished_pipeline
    for step in plan(store, steps(config)):
        assert step.is_fresh
        assert step.artifact == found[step.name].artifact
        assert step.reason == found[step.name].artifact.reference


def test_how_fast_to_go_makes_nothing_stale(finished_pipeline):
    store, config, _ = finished_pipeline
    faster = changed(
        config,
        model={"device": "auto"},
        rollouts={"batch_size": 7, "shard_size": 1},
        contribution={"batch_size": 7, "shard_size": 1},
        train={"batch_size": 7, "micro_batch_size": 7, "save_every": 1, "keep_last": 5},
        evaluate={"batch_size": 7, "shard_size": 1},
    )
    assert reasons(store, faster) == {}


def test_another_weight_setting_reruns_what_follows_from_it_and_nothing_else(finished_pipeline):
    store, config, _ = finished_pipeline
    assert reasons(store, changed(config, weights={"min_count": 3})) == {
        "weights": "weights.min_count went from 2 to 3",
        "train": "its input weights would be built anew",
        "evaluate": "its input train would be built anew",
        "report": "its input evaluate and train and weights would be built anew",
    }


def test_a_setting_inside_a_section_is_named_with_dots(finished_pipeline):
    store, config, _ = finished_pipeline
    sampler = config.rollouts.sampler.model_copy(update={"temperature": 0.5})
    why = reasons(store, changed(config, rollouts={"sampler": sampler}))
    assert why["rollouts"] == "rollouts.sampler.temperature went from 1.0 to 0.5"
    assert "prepare" not in why
    assert "evaluate-base" not in why


def test_another_model_or_dtype_is_a_reason(finished_pipeline, tmp_path):
    store, config, _ = finished_pipeline
    why = reasons(store, changed(config, model={"dtype": "bfloat16"}))
    assert why["rollouts"] == "rollouts.dtype went from float32 to bfloat16"
    copy = shutil.copytree(config.model.source, tmp_path / "copy")
    assert reasons(store, changed(config, model={"source": str(copy)})) == {}
    with (copy / "tokenizer.json").open("a") as file:
        file.write("\n")
    why = reasons(store, changed(config, model={"source": str(copy)}))
    assert why["rollouts"] == "its input model differs"
    assert why["evaluate-base"] == "its input model differs"


def test_a_damaged_file_is_named(finished_pipeline, store):
    _, config, found = finished_pipeline
    artifact = found["weights"].artifact
    damage(store, artifact, "weights.json")
    size = (found["weights"].artifact.path / "weights.json").stat().st_size
    assert reasons(store, config) == {
        "weights": f"{artifact.reference} is damaged: weights.json: truncated: "
        f"{size - 1} of {size} bytes",
        "train": "its input weights would be built anew",
        "evaluate": "its input train would be built anew",
        "report": "its input evaluate and train and weights would be built anew",
    }


def test_another_version_of_a_stage_is_a_reason(finished_pipeline):
    from dataclasses import replace

    store, config, _ = finished_pipeline
    line = [
        replace(step, spec=replace(step.spec, version=99)) if step.name == "report" else step
        for step in steps(config)
    ]
    (stale,) = (step for step in plan(store, line) if not step.is_fresh)
    assert stale.name == "report"
    assert stale.reason == "the stage's version went from 2 to 99"


def test_the_artifact_most_like_it_gives_the_reason(finished_pipeline):
    store, config, _ = finished_pipeline
    # Two evaluations are in the store, and only the one of the base model differs in one thing.
    why = reasons(store, changed(config, evaluate={"protocol": "drift"}))
    assert why["evaluate-base"] == "evaluate.protocol went from plain to drift"
    assert why["evaluate"] == "evaluate.protocol went from plain to drift"
    assert why["report"] == "its input evaluate and evaluate-base would be built anew"

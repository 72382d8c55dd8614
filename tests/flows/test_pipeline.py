"""The flow `dtca` on a real server, with a real (tiny) model and a real training process."""

import pytest

from dtca_core.config import PipelineConfig
from dtca_core.stages.pipeline import steps
from dtca_core.stages.plan import plan
from flows.pipeline import pipeline
from flows.weights import weights
from tasks.references import open_store

pytestmark = pytest.mark.usefixtures("prefect_server", "artifacts")


def changed(settings, section, **values):
    """Return the pipeline config with some settings of a section changed."""
    return PipelineConfig.model_validate(
        {**settings, section: {**settings.get(section, {}), **values}}
    )


def test_a_run_builds_all_then_nothing_then_only_what_a_change_concerns(tiny_settings):
    first = pipeline(PipelineConfig.model_validate(tiny_settings))
    assert not any(ref.is_cached for ref in first.values())

    again = pipeline(PipelineConfig.model_validate(tiny_settings))
    assert all(ref.is_cached for ref in again.values())
    assert {name: ref.key for name, ref in again.items()} == {
        name: ref.key for name, ref in first.items()
    }

    rescaled = changed(tiny_settings, "weights", min_count=3)
    predicted = {p.name: p.is_fresh for p in plan(open_store(), steps(rescaled))}
    assert {name for name, fresh in predicted.items() if not fresh} == {
        "weights",
        "train",
        "evaluate",
        "report",
    }
    done = pipeline(rescaled)
    assert {name: ref.is_cached for name, ref in done.items()} == predicted

    faster = changed(tiny_settings, "rollouts", batch_size=1, shard_size=1)
    assert all(step.is_fresh for step in plan(open_store(), steps(faster)))

    cached = weights(faster.weights, return_state=True)
    assert (cached.name, cached.result().key) == ("Cached", first["weights"].key)
    anew = weights(faster.weights, refresh=True, return_state=True)
    assert (anew.name, anew.result().key) == ("Completed", first["weights"].key)

"""The task that builds any stage. The store decides what is fresh; Prefect shows it."""

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed
from rich.console import Console

from dtca_core.config import ModelConfig, Settings
from dtca_core.stages import STAGES
from dtca_core.stages.run import StageResult, model_input, run_stage
from tasks.listening import StageListener
from tasks.logger import say
from tasks.references import ArtifactRef, open_store, resolve

console = Console(stderr=True)
"""Where bars are drawn; lines of finished stages are printed by the command line."""


def build_stage(
    name: str,
    stage: str,
    config: Settings,
    inputs: dict[str, tuple[str, str]],
    model: ModelConfig | None = None,
    checkpoint: str | None = None,
    refresh: bool = False,
) -> ArtifactRef:
    """Return the artifact of a stage, building it only if the store does not hold it.

    For a flow to return: it then ends in a state that is named `Cached` if it was held.

    Args:
        name: what to call this run of the stage.
        stage: name of the stage.
        config: its settings.
        inputs: kind and reference of each input, by the input's name.
        model: settings of the model, for a stage that needs one.
        checkpoint: reference of a checkpoint to take the model from instead.
        refresh: build even if the store holds it.
    """
    task_run = _build(name, stage, config, inputs, model, checkpoint, refresh, return_state=True)
    # Really a state, from which Prefect hands the artifact to whoever calls the flow. It is one of
    # its own, because Prefect sums up the states of tasks as `Completed`.
    return _state(task_run.result())


@task(name="build", cache_policy=NO_CACHE, task_run_name="{name}")
def _build(
    name: str,
    stage: str,
    config: Settings,
    inputs: dict[str, tuple[str, str]],
    model: ModelConfig | None,
    checkpoint: str | None,
    refresh: bool,
) -> Any:
    """Return a state and not its value, because only a state can be named `Cached`."""
    trained = None if checkpoint is None else resolve("checkpoint", checkpoint)
    with StageListener(name, console) as listener:
        result = run_stage(
            open_store(),
            STAGES[stage],
            config,
            inputs={key: resolve(kind, reference) for key, (kind, reference) in inputs.items()},
            model=None if model is None else model_input(model, trained),
            listener=listener,
            refresh=refresh,
        )
    reference = _reference(result)
    word = "cached" if result.is_cached else "built"
    say(f"{name}: {word} in {result.seconds:.1f} s, {reference.short}")
    return _state(reference)


def _reference(result: StageResult) -> ArtifactRef:
    return ArtifactRef(
        kind=result.artifact.kind,
        key=result.artifact.key,
        path=str(result.artifact.path),
        is_cached=result.is_cached,
        seconds=result.seconds,
    )


def _state(reference: ArtifactRef) -> Any:
    name = "Cached" if reference.is_cached else None
    return Completed(name=name, data=reference, message=reference.path)

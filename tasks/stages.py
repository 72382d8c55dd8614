"""The task that builds any stage. The store decides what is fresh; Prefect shows it."""

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, State
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

    In Prefect, a hit is a task run whose state is named `Cached`.

    Args:
        name: what to call this run of the stage.
        stage: name of the stage.
        config: its settings.
        inputs: kind and reference of each input, by the input's name.
        model: settings of the model, for a stage that needs one.
        checkpoint: reference of a checkpoint to take the model from instead.
        refresh: build even if the store holds it.
    """
    state = _build(name, stage, config, inputs, model, checkpoint, refresh, return_state=True)
    return state.result()


@task(name="build", cache_policy=NO_CACHE, task_run_name="{name}")
def _build(
    name: str,
    stage: str,
    config: Settings,
    inputs: dict[str, tuple[str, str]],
    model: ModelConfig | None,
    checkpoint: str | None,
    refresh: bool,
) -> State[ArtifactRef]:
    """Return a state, because only a state can be named `Cached`."""
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
    return _state(name, result)


def _state(name: str, result: StageResult) -> State[Any]:
    artifact = result.artifact
    reference = ArtifactRef(
        kind=artifact.kind,
        key=artifact.key,
        path=str(artifact.path),
        is_cached=result.is_cached,
        seconds=result.seconds,
    )
    word = "cached" if result.is_cached else "built"
    say(f"{name}: {word} in {result.seconds:.1f} s, {reference.short}")
    state_name = "Cached" if result.is_cached else None
    return Completed(name=state_name, data=reference, message=f"{word}: {artifact.path}")

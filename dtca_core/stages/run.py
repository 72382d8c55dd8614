"""One function runs any stage: look up, lock, build, publish."""

import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dtca_core.config import ModelConfig, Settings
from dtca_core.errors import RequestError
from dtca_core.models.loading import model_files, model_folder, resolve_device
from dtca_core.stages.code import code_digest
from dtca_core.stages.spec import Counts, Listener, ModelInput, StageContext, StageSpec
from dtca_core.stages.train import MODEL_FOLDER
from dtca_core.store import Artifact, InputRecord, Provenance, Store, artifact_key
from dtca_core.store.artifact import external_artifact, files_digest

_PACKAGES = (
    "dtca",
    "torch",
    "transformers",
    "tokenizers",
    "spacy",
    "pyarrow",
    "accelerate",
    "datasets",
    "math-verify",
    "sympy",
)
_CODE_MARK = ".code.partial"
"""Says which code began a work folder; the store removes it when it publishes."""


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What running a stage came to."""

    artifact: Artifact
    is_cached: bool
    """True where the store held it already."""
    seconds: float
    """Wall time of this call."""


def model_input(config: ModelConfig, checkpoint: Artifact | None = None) -> ModelInput:
    """Return a model as an input: that of a checkpoint artifact, or the one of the config.

    Its content is the digest of its files, so that a name or a path never counts. Those of a
    checkpoint artifact include its metrics and what it was trained with: an evaluation is one of
    a training run, also where two runs came to the same weights.
    """
    folder = model_folder(config.source) if checkpoint is None else model_of(checkpoint)
    if checkpoint is None or checkpoint.manifest is None:
        content = files_digest(folder, model_files(folder))
        artifact = Artifact(kind="model", key=content, content=content, path=folder, manifest=None)
    else:
        artifact = checkpoint
    return ModelInput(source=str(folder), config=config, artifact=artifact)


def model_of(checkpoint: Artifact) -> Path:
    """Return the model folder of a checkpoint artifact, or the folder given as one."""
    inner = checkpoint.path / MODEL_FOLDER
    return inner if inner.is_dir() else checkpoint.path


def stage_key(
    spec: StageSpec, config: Settings, inputs: Mapping[str, Artifact], model: ModelInput | None
) -> str:
    """Return the key of the artifact that a stage would make."""
    read = all_inputs(spec, config, inputs, model)
    contents = {name: artifact.content for name, artifact in read.items()}
    return artifact_key(spec.kind, spec.version, keyed_settings(spec, config, model), contents)


def all_inputs(
    spec: StageSpec, config: Settings, inputs: Mapping[str, Artifact], model: ModelInput | None
) -> dict[str, Artifact]:
    """Return all that a stage reads: its inputs, the files its settings name, and the model."""
    files = {name: external_artifact("file", path) for name, path in spec.files(config).items()}
    return {**inputs, **files, **({} if model is None else {"model": model.artifact})}


def keyed_settings(spec: StageSpec, config: Settings, model: ModelInput | None) -> dict[str, Any]:
    """Return the settings that decide the result; files are not among them, they are inputs."""
    files = spec.files(config)
    keyed = {name: value for name, value in config.keyed().items() if name not in files}
    return keyed | ({} if model is None else {"dtype": model.config.dtype})


def run_stage(
    store: Store,
    spec: StageSpec,
    config: Settings,
    *,
    inputs: Mapping[str, Artifact],
    model: ModelInput | None = None,
    listener: Listener,
    refresh: bool = False,
) -> StageResult:
    """Return the stage's artifact, building it only if the store does not hold it undamaged.

    Args:
        store: where artifacts are.
        spec: the stage.
        config: its settings.
        inputs: artifacts by the input's name.
        model: the model, for a stage that needs one.
        listener: told of progress and of waiting for another process.
        refresh: build even if the store holds it.
    """
    begin = time.perf_counter()
    key = stage_key(spec, config, inputs, model)
    reference = f"{spec.kind}/{key[:12]}"
    with store.locked(spec.kind, key, lambda: listener.waiting(reference)):
        found = None if refresh else store.find(spec.kind, key)
        if found is not None:
            seconds = time.perf_counter() - begin
            return StageResult(artifact=found, is_cached=True, seconds=seconds)
        code = code_digest(spec.modules)
        folder = _work_folder(store, spec.kind, key, code)
        started, building = datetime.now(UTC), time.perf_counter()
        context = StageContext(
            folder=folder, config=config, inputs=inputs, model=model, listener=listener
        )
        try:
            counts = spec.build(context)
        except RequestError:
            _discard_unbegun(folder)
            raise
        provenance = _provenance(
            spec,
            config,
            inputs,
            model,
            key=key,
            code=code,
            started=started,
            seconds=time.perf_counter() - building,
            counts=counts,
        )
        artifact = store.publish(provenance)
    return StageResult(artifact=artifact, is_cached=False, seconds=time.perf_counter() - begin)


def _work_folder(store: Store, kind: str, key: str, code: str) -> Path:
    """Return the folder to build in, emptied of what other code has begun."""
    folder = store.work_folder(kind, key)
    mark = folder / _CODE_MARK
    if not mark.exists() or mark.read_text() != code:
        shutil.rmtree(folder)
        folder = store.work_folder(kind, key)
        mark.write_text(code)
    return folder


def _discard_unbegun(folder: Path) -> None:
    """Remove the folder of a refused build, unless it holds work that another try can use."""
    if [path.name for path in folder.iterdir()] == [_CODE_MARK]:
        shutil.rmtree(folder)


def _provenance(
    spec: StageSpec,
    config: Settings,
    inputs: Mapping[str, Artifact],
    model: ModelInput | None,
    *,
    key: str,
    code: str,
    started: datetime,
    seconds: float,
    counts: Counts,
) -> Provenance:
    records = {
        name: InputRecord(kind=artifact.kind, key=artifact.key, content=artifact.content)
        for name, artifact in all_inputs(spec, config, inputs, model).items()
    }
    return Provenance(
        kind=spec.kind,
        key=key,
        version=spec.version,
        code=code,
        git_commit=_git_commit(),
        config=keyed_settings(spec, config, model),
        execution=config.model_dump(mode="json"),
        inputs=records,
        packages={name: version(name) for name in _PACKAGES},
        device="cpu" if model is None else str(resolve_device(model.config.device)),
        dtype="float32" if model is None else model.config.dtype,
        seed=getattr(config, "seed", None),
        started=started,
        seconds=seconds,
        counts=counts,
    )


def _git_commit() -> str | None:
    """Return the commit of the source tree, marked where files were changed; None without git."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None

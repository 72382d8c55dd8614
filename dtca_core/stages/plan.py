"""The plan: before anything runs, which stages are fresh, which would run, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtca_core.stages.pipeline import Step
from dtca_core.stages.run import all_inputs, keyed_settings, model_input, stage_key
from dtca_core.stages.spec import ModelInput
from dtca_core.store import Artifact, Manifest, Store


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """What would happen to one step."""

    name: str
    artifact: Artifact | None
    """What the store holds already; None where the step would run."""
    reason: str
    """Why it would run, or the reference of what is there."""

    @property
    def is_fresh(self) -> bool:
        """True where the store holds the artifact, complete and undamaged."""
        return self.artifact is not None


def plan(store: Store, steps: Sequence[Step]) -> list[PlannedStep]:
    """Return what running these steps would do; nothing is built and nothing is changed."""
    planned: dict[str, PlannedStep] = {}
    for step in steps:
        sources = [*step.inputs.values(), *([step.trained_by] if step.trained_by else [])]
        stale = sorted({name for name in sources if not planned[name].is_fresh})
        if stale:
            reason = f"its input {' and '.join(stale)} would be built anew"
            planned[step.name] = PlannedStep(name=step.name, artifact=None, reason=reason)
        else:
            planned[step.name] = _plan_step(store, step, planned)
    return list(planned.values())


def _plan_step(store: Store, step: Step, planned: Mapping[str, PlannedStep]) -> PlannedStep:
    found = {name: planned[source].artifact for name, source in step.inputs.items()}
    inputs = {name: artifact for name, artifact in found.items() if artifact is not None}
    checkpoint = planned[step.trained_by].artifact if step.trained_by else None
    model = None if step.model is None else model_input(step.model, checkpoint)
    key = stage_key(step.spec, step.config, inputs, model)
    artifact = store.find(step.spec.kind, key)
    if artifact is not None:
        return PlannedStep(name=step.name, artifact=artifact, reason=artifact.reference)
    reason = _why(store, step, key, inputs, model)
    return PlannedStep(name=step.name, artifact=None, reason=reason)


def _why(
    store: Store,
    step: Step,
    key: str,
    inputs: Mapping[str, Artifact],
    model: ModelInput | None,
) -> str:
    """Return why there is no such artifact, by what differs from the one most like it."""
    kind = step.spec.kind
    for verdict in store.verify(kind):
        if verdict.path.name == key and verdict.damages:
            return f"{verdict.reference} is damaged: {verdict.damages[0]}"
    read = all_inputs(step.spec, step.config, inputs, model)
    wanted = {name: artifact.content for name, artifact in read.items()}
    settings = keyed_settings(step.spec, step.config, model)
    differences = [
        _differences(artifact.manifest, step, wanted, settings)
        for artifact in store.artifacts(kind)
        if artifact.manifest is not None
    ]
    if not differences:
        return "never built"
    return ", ".join(min(reversed(differences), key=len))


def _differences(
    manifest: Manifest, step: Step, wanted: Mapping[str, str], settings: Mapping[str, Any]
) -> list[str]:
    """Return what is not as in an artifact with this manifest, a line each."""
    lines = [
        f"its input {name} differs"
        for name, content in wanted.items()
        if name not in manifest.inputs or manifest.inputs[name].content != content
    ]
    if manifest.version != step.spec.version:
        lines.append(f"the stage's version went from {manifest.version} to {step.spec.version}")
    before, now = _flat(manifest.config), _flat(settings)
    section = "data" if step.spec.name == "prepare" else step.spec.name
    return lines + [
        f"{section}.{name} went from {before.get(name)} to {now.get(name)}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted name."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    return flat

"""Upkeep: what is damaged, what nobody needs, and its removal."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dtca_core.errors import ArtifactError
from dtca_core.store.artifact import Artifact
from dtca_core.store.catalog import latest_artifact, list_artifacts, load_stored
from dtca_core.store.damage import Damage, find_damage
from dtca_core.store.layout import Layout
from dtca_core.store.locks import acquire, is_held, release
from dtca_core.store.manifest import MANIFEST
from dtca_core.store.publication import discard


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What verification says of one folder of the store."""

    reference: str
    """Kind and folder name, shortened if the folder is an artifact."""
    path: Path
    damages: tuple[Damage, ...]
    """Empty if every byte is right."""


def verify(layout: Layout, kinds: list[str]) -> list[Verdict]:
    """Return a verdict on every visible folder of these kinds, good ones included."""
    return [_verdict(layout, kind, path) for kind in kinds for path in layout.published(kind)]


def _verdict(layout: Layout, kind: str, folder: Path) -> Verdict:
    if not (folder / MANIFEST).exists():
        damages = [Damage(path=MANIFEST, problem="missing")]
    else:
        try:
            damages = find_damage(load_stored(layout, kind, folder))
        except ArtifactError as error:
            damages = [Damage(path=MANIFEST, problem=str(error))]
    return Verdict(reference=f"{kind}/{folder.name[:12]}", path=folder, damages=tuple(damages))


def list_leftovers(layout: Layout) -> list[Path]:
    """Return the folders that killed builds and removals left; those in use are not among them."""
    found: list[Path] = []
    for kind in layout.kinds():
        for path in layout.unfinished(kind):
            try:
                key = layout.owner(path)[1]
            except ArtifactError:
                continue  # not one of ours, whatever its name looks like
            if not is_held(layout.lock(kind, key)):
                found.append(path)
    return found


def list_unreferenced(layout: Layout) -> list[Artifact]:
    """Return the artifacts that no latest artifact is or was made from, newest last."""
    artifacts = list_artifacts(layout, layout.kinds())
    by_name = {(artifact.kind, artifact.key): artifact for artifact in artifacts}
    waiting = [_latest_name(layout, kind) for kind in layout.kinds()]
    needed: set[tuple[str, str]] = set()
    while waiting:
        name = waiting.pop()
        artifact = by_name.get(name)
        if name in needed or artifact is None or artifact.manifest is None:
            continue
        needed.add(name)
        waiting += [(record.kind, record.key) for record in artifact.manifest.inputs.values()]
    return [artifact for name, artifact in by_name.items() if name not in needed]


def _latest_name(layout: Layout, kind: str) -> tuple[str, str]:
    artifact = latest_artifact(layout, kind)
    return (kind, artifact.key if artifact else "")


def remove(layout: Layout, path: Path) -> None:
    """Delete an artifact or a leftover of the store; refused while it is being built."""
    kind, key = layout.owner(path)
    if not path.is_dir():
        raise ArtifactError(f"{path} does not exist, so it cannot be removed; list what does.")

    def refuse() -> NoReturn:
        raise ArtifactError(
            f"{kind}/{key} is being built by another process, so {path} stays; wait for it or "
            "stop it."
        )

    lock = acquire(layout.lock(kind, key), on_wait=refuse)
    try:
        discard(path, layout.removing(kind, key))
    finally:
        release(lock)

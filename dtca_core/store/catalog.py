"""The catalog: which artifacts the store holds."""

from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.artifact import Artifact, load_artifact
from dtca_core.store.damage import find_damage
from dtca_core.store.layout import Layout, is_key
from dtca_core.store.manifest import MANIFEST


def load_stored(layout: Layout, kind: str, folder: Path) -> Artifact:
    """Return the artifact of a folder of the store, which must be the one its place names."""
    artifact = load_artifact(folder)
    if (artifact.kind, artifact.key) != (kind, folder.name):
        raise ArtifactError(
            f"{folder / MANIFEST} is the manifest of {artifact.kind}/{artifact.key}; it belongs "
            f"in {layout.root / artifact.kind / artifact.key}. Move it there or remove it."
        )
    return artifact


def find_intact(layout: Layout, kind: str, key: str) -> Artifact | None:
    """Return the artifact if it is complete and undamaged, by size and SHA-256 of every file."""
    folder = layout.artifact(kind, key)
    try:
        artifact = load_stored(layout, kind, folder)
    except ArtifactError:
        return None
    return None if find_damage(artifact) else artifact


def list_artifacts(layout: Layout, kinds: list[str]) -> list[Artifact]:
    """Return the artifacts of these kinds that have a readable manifest, newest last."""
    found: list[Artifact] = []
    for kind in kinds:
        for folder in layout.published(kind):
            try:
                found.append(load_stored(layout, kind, folder))
            except ArtifactError:
                continue  # `verify` reports it; one bad folder must not hide the good ones
    return sorted(found, key=_age)


def latest_artifact(layout: Layout, kind: str) -> Artifact | None:
    """Return the artifact last published, or the newest if that cannot be said.

    Its files are not read. An artifact whose manifest was damaged is not passed over for an
    older one: it raises ArtifactError.
    """
    try:
        key = layout.latest(kind).read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        key = ""
    if is_key(key) and (layout.artifact(kind, key) / MANIFEST).exists():
        return load_stored(layout, kind, layout.artifact(kind, key))
    artifacts = list_artifacts(layout, [kind])
    return artifacts[-1] if artifacts else None


def _age(artifact: Artifact) -> tuple[float, str]:
    finished = artifact.manifest.finished.timestamp() if artifact.manifest else 0.0
    return finished, artifact.key

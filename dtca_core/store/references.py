"""References: what a person calls an artifact, resolved to one whose files are intact."""

import os
import re
from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.artifact import Artifact, external_artifact, load_artifact
from dtca_core.store.catalog import latest_artifact, list_artifacts, load_stored
from dtca_core.store.damage import find_damage
from dtca_core.store.layout import LATEST, Layout, is_key
from dtca_core.store.manifest import MANIFEST

_PREFIX = re.compile(r"[0-9a-f]{4,32}")
_LISTED = 10


def resolve(layout: Layout, kind: str, reference: str) -> Artifact:
    """Return the artifact that is meant by `latest`, a key or its prefix, or a path.

    Every byte of it is checked. A path to a plain file or folder is an external artifact.
    """
    layout.kind(kind)
    name = reference.removeprefix(f"{kind}/")
    if name == LATEST:
        return _intact(_latest(layout, kind))
    if _PREFIX.fullmatch(name) and (matches := _matches(layout, kind, name)):
        return _intact(_only(layout, kind, name, matches))
    path = Path(reference).expanduser()
    if reference and path.exists():
        return _at_path(kind, path.resolve())
    if _PREFIX.fullmatch(name):
        found = f"no {kind} artifact has a key that starts with {name!r}"
    elif os.sep in reference or "/" in reference or "." in reference:
        found = f"the path {reference} does not exist"
    else:
        found = (
            f"{reference!r} is neither 'latest', nor 4 or more hexadecimal characters of a key, "
            "nor the path of a file or folder"
        )
    raise ArtifactError(f"{found}. {_what_exists(layout, kind)}")


def _latest(layout: Layout, kind: str) -> Artifact:
    artifact = latest_artifact(layout, kind)
    if artifact is None:
        raise ArtifactError(
            f"{layout.root} holds no {kind} artifact yet, so 'latest' means nothing; run the stage "
            "that makes it, or give a path."
        )
    return artifact


def _matches(layout: Layout, kind: str, prefix: str) -> list[Path]:
    return [
        folder
        for folder in layout.published(kind)
        if is_key(folder.name) and folder.name.startswith(prefix) and (folder / MANIFEST).exists()
    ]


def _only(layout: Layout, kind: str, prefix: str, matches: list[Path]) -> Artifact:
    if len(matches) > 1:
        keys = ", ".join(folder.name for folder in matches)
        raise ArtifactError(
            f"{prefix!r} is the start of {len(matches)} {kind} artifacts: {keys}. "
            "Give more characters of the one that is meant."
        )
    return load_stored(layout, kind, matches[0])


def _at_path(kind: str, path: Path) -> Artifact:
    if not (path / MANIFEST).is_file():
        return external_artifact(kind, path)
    artifact = load_artifact(path)
    if artifact.kind != kind:
        raise ArtifactError(
            f"{path} is a {artifact.kind} artifact and a {kind} artifact is needed; give the "
            f"path or key of one."
        )
    return _intact(artifact)


def _intact(artifact: Artifact) -> Artifact:
    if damages := find_damage(artifact):
        listed = "; ".join(str(damage) for damage in damages[:_LISTED])
        raise ArtifactError(
            f"{artifact.reference} in {artifact.path} is damaged: {listed}. Run "
            "`dtca artifacts verify` for the whole list, and build it again."
        )
    return artifact


def _what_exists(layout: Layout, kind: str) -> str:
    artifacts = list_artifacts(layout, [kind])
    if not artifacts:
        return f"{layout.root} holds no {kind} artifact yet; run the stage that makes it."
    newest = ", ".join(artifact.reference for artifact in artifacts[-_LISTED:])
    return f"The newest of {len(artifacts)} {kind} artifacts in {layout.root}: {newest}."

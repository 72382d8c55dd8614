"""Publication: a finished work folder becomes an artifact, in one step for all who look.

Killed at any point, the store shows what it showed before, or the whole artifact, and the
build can be run again.
"""

import os
import shutil
from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.artifact import Artifact, load_artifact
from dtca_core.store.catalog import find_intact
from dtca_core.store.files import (
    PARTIAL_PATTERN,
    list_files,
    require_plain_file,
    sha256_of,
    sync,
    write_atomic,
)
from dtca_core.store.layout import LATEST, Layout
from dtca_core.store.locks import acquire, release
from dtca_core.store.manifest import MANIFEST, FileRecord, Manifest, content_digest
from dtca_core.store.provenance import Provenance


def publish(layout: Layout, provenance: Provenance) -> Artifact:
    """Return the artifact that the work folder has become; the caller holds its lock.

    If the store already holds the same content, undamaged, that stays and the work folder goes:
    an artifact is written once, and someone may be reading it.
    """
    kind, key = provenance.kind, provenance.key
    work, place = layout.building(kind, key), layout.artifact(kind, key)
    aside = layout.removing(kind, key)
    if not work.is_dir():
        raise ArtifactError(
            f"{work} does not exist, so there is nothing to publish as {kind}/{key}; write the "
            "files into the folder that work_folder(kind, key) gives."
        )
    manifest = _complete(work, provenance)
    existing = find_intact(layout, kind, key)
    if existing is not None and existing.content == manifest.content:
        _point_latest(layout, kind, key)
        discard(work, aside)
        return existing
    write_atomic(work / MANIFEST, manifest.to_json())
    if place.exists():
        _set_aside(place, aside)
    # The pointer goes before the rename: while it names what is not there, readers fall back.
    # Killed between the two the other way round, the artifact would never become the latest.
    _point_latest(layout, kind, key)
    os.rename(work, place)
    sync(place.parent)
    _delete(aside)
    return load_artifact(place)


def discard(path: Path, aside: Path) -> None:
    """Delete a folder such that nobody ever sees half of it: moved aside first, then deleted."""
    if path != aside:
        _set_aside(path, aside)
    _delete(aside)


def _set_aside(path: Path, aside: Path) -> None:
    _delete(aside)
    os.rename(path, aside)
    sync(path.parent)


def _delete(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _complete(work: Path, provenance: Provenance) -> Manifest:
    """Return the manifest of the work folder, whose files have reached the disk."""
    for partial in work.rglob(PARTIAL_PATTERN):
        partial.unlink()
    (work / MANIFEST).unlink(missing_ok=True)
    files = tuple(_record(work, name) for name in list_files(work))
    for folder in [work, *(path for path in work.rglob("*") if path.is_dir())]:
        sync(folder)
    return Manifest(**dict(provenance), content=content_digest(files), files=files)


def _record(work: Path, name: str) -> FileRecord:
    path = work / name
    require_plain_file(path)
    sync(path)
    return FileRecord(path=name, size=path.stat().st_size, sha256=sha256_of(path))


def _point_latest(layout: Layout, kind: str, key: str) -> None:
    # Builders of other keys write the same pointer, so the key's own lock is not enough.
    lock = acquire(layout.lock(kind, LATEST))
    try:
        write_atomic(layout.latest(kind), f"{key}\n".encode())
    finally:
        release(lock)

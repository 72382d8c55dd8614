"""Damage: where the files of an artifact are not what its manifest says."""

from dataclasses import dataclass
from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.artifact import Artifact, external_content
from dtca_core.store.files import list_files, require_plain_file, sha256_of
from dtca_core.store.manifest import MANIFEST, FileRecord


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One file that is not what it must be."""

    path: str
    """Relative to the artifact's folder."""
    problem: str
    """What is wrong, such as `missing` or `truncated: 10 of 20 bytes`."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


def find_damage(artifact: Artifact) -> list[Damage]:
    """Return all that is wrong with the files, every byte of which is read."""
    if artifact.manifest is None:
        return _external_damage(artifact)
    damages: list[Damage] = []
    for file in artifact.manifest.files:
        if problem := _problem(artifact.path / file.path, file):
            damages.append(Damage(path=file.path, problem=problem))
    known = {MANIFEST, *(file.path for file in artifact.manifest.files)}
    for path in list_files(artifact.path):
        if path not in known:
            damages.append(Damage(path=path, problem="not in the manifest"))
    return damages


def _problem(path: Path, file: FileRecord) -> str | None:
    try:
        require_plain_file(path)
        size = path.stat().st_size
        if size < file.size:
            return f"truncated: {size} of {file.size} bytes"
        if size > file.size:
            return f"grown: {size} bytes instead of {file.size}"
        return None if sha256_of(path) == file.sha256 else "altered: SHA-256 differs"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"unreadable: {error.strerror}"
    except ArtifactError:
        return "not a plain file"


def _external_damage(artifact: Artifact) -> list[Damage]:
    name = artifact.path.name
    if not artifact.path.exists():
        return [Damage(path=name, problem="missing")]
    if external_content(artifact.path) != artifact.content:
        return [Damage(path=name, problem="altered: content differs")]
    return []

"""An artifact: a folder of the store, or a file or folder that a person made."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.files import list_files, sha256_of
from dtca_core.store.keys import digest
from dtca_core.store.manifest import MANIFEST, Manifest, read_manifest
from dtca_core.store.provenance import InputRecord


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """What a stage reads or has written."""

    kind: str
    key: str
    """Digest of what it was made of; for an external one, its content."""
    content: str
    """Digest of what its files hold."""
    path: Path
    """The folder, or the single file."""
    manifest: Manifest | None
    """None for an external artifact: a plain file or folder that a person made."""

    @property
    def reference(self) -> str:
        """Short name for people, such as `weights/0a1b2c3d4e5f`."""
        return f"{self.kind}/{self.key[:12]}"

    @property
    def input_record(self) -> InputRecord:
        """What the manifest of an artifact made from this one says of it."""
        return InputRecord(kind=self.kind, key=self.key, content=self.content)


def load_artifact(folder: Path) -> Artifact:
    """Return the artifact of a folder with a manifest; its files are not read.

    Raises:
        ArtifactError: the manifest is missing or wrong, or a file lies behind a link to
            somewhere outside the folder.
    """
    manifest = read_manifest(folder / MANIFEST)
    inside = folder.resolve()
    for file in manifest.files:
        if not (folder / file.path).resolve().is_relative_to(inside):
            raise ArtifactError(
                f"{folder / MANIFEST} lists {file.path!r}, which is a link out of the artifact. "
                "An artifact holds its own files; restore it or build it again."
            )
    return Artifact(
        kind=manifest.kind,
        key=manifest.key,
        content=manifest.content,
        path=folder,
        manifest=manifest,
    )


def external_artifact(kind: str, path: Path) -> Artifact:
    """Return a plain file or folder as an artifact whose key is its content."""
    content = external_content(path)
    return Artifact(kind=kind, key=content, content=content, path=path, manifest=None)


def external_content(path: Path) -> str:
    """Return the digest of a file, or of all files in a folder but the hidden ones.

    The name of a single file does not count, but its suffix does: it decides how it is read.
    """
    if path.is_file():
        return digest([(path.suffix, sha256_of(path), path.stat().st_size)])
    names = [name for name in list_files(path) if not _is_hidden(name)]
    for name in names:
        if not (path / name).is_file():
            raise ArtifactError(
                f"{path / name} is not a file or leads to none; a folder that is used as an "
                "artifact needs files, or links to files. Give a copy of the folder without it."
            )
    if not names:
        raise ArtifactError(f"folder {path} is empty; give a folder with files, or a file.")
    return files_digest(path, [path / name for name in names])


def files_digest(folder: Path, files: Sequence[Path]) -> str:
    """Return the digest of some files of a folder: their names in it, contents and sizes."""
    return digest(
        [(str(f.relative_to(folder)), sha256_of(f), f.stat().st_size) for f in sorted(files)]
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))

"""The manifest: where an artifact comes from, and what its files must look like."""

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from pydantic import Field, ValidationError, field_validator, model_validator

from dtca_core.errors import ArtifactError, ConfigError
from dtca_core.store.keys import digest
from dtca_core.store.provenance import Digest, Provenance, Record

MANIFEST = "manifest.json"
LOGS = "logs/"
"""Folder whose files are kept and verified, but differ between identical runs."""


class FileRecord(Record):
    """What one file must look like."""

    path: str
    """Relative to the artifact's folder, with forward slashes."""
    size: int = Field(ge=0)
    """Bytes."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        plain = PurePosixPath(path)
        if str(plain) != path or plain.is_absolute() or {"..", "."} & {*plain.parts, path}:
            raise ValueError(f"{path!r} is not a plain path inside the artifact's folder")
        if "\0" in path or path == MANIFEST:
            raise ValueError(f"{path!r} cannot be a file of an artifact")
        return path


def content_digest(files: Iterable[FileRecord]) -> str:
    """Return the digest of what the files hold; those under `logs/` do not count."""
    counted = [file for file in files if not file.path.startswith(LOGS)]
    return digest(sorted((file.path, file.sha256, file.size) for file in counted))


class Manifest(Provenance):
    """The manifest of a published artifact."""

    content: Digest
    """Digest of the files that count as content."""
    files: tuple[FileRecord, ...]
    """Every file, sorted by path, `logs/` included and the manifest excluded."""

    @model_validator(mode="after")
    def _content_follows(self) -> "Manifest":
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("files are not sorted by path or one is listed twice")
        if self.content != content_digest(self.files):
            raise ValueError(f"content={self.content} does not follow from the files listed")
        return self

    def to_json(self) -> bytes:
        """Return the bytes of `manifest.json`, for people to read too."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False).encode() + b"\n"


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of a file, or raise ArtifactError that names it and what is wrong."""
    todo = "Restore the artifact or build it again."
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}. {todo}") from None
    except ConfigError as error:
        raise ArtifactError(f"{path} is not a manifest: {error} {todo}") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "the manifest"
        raise ArtifactError(f"{path} is not a manifest: {name}: {first['msg']}. {todo}") from None

"""Files: written so that a reader sees the old one or the new one and never half of one."""

import hashlib
import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dtca_core.errors import ArtifactError, DataError

PARTIAL_PATTERN = ".*.partial"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all, and survives a power cut once it appeared.

    Two processes may not write the same path at once. Missing parent folders are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    sync(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write plain values as indented ASCII JSON; the same value gives the same bytes."""
    try:
        text = json.dumps(value, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{path} was not written: {error}. JSON holds text, finite numbers, booleans and null; "
            "write null for what is undefined."
        ) from None
    write_atomic(path, text.encode("ascii") + b"\n")


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> list[str]:
    """Return the relative path of all in the folder that is not a folder, links included."""
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        found += [(Path(parent) / name).relative_to(folder).as_posix() for name in files + links]
    return sorted(found)


def require_plain_file(path: Path) -> None:
    """Raise ArtifactError unless the path is a regular file, not a link, pipe or socket."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ArtifactError(
            f"{path} is a link or a special file; an artifact holds plain files only. "
            "Replace it with a copy of what it stands for, or remove it."
        )


@contextmanager
def explained_writes(root: Path) -> Generator[None, None, None]:
    """Turn a failure of the disk into an ArtifactError that says where and what to do."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"cannot write artifacts in {root}: {error}. They need a folder that you may write, "
            "with space in it; set DTCA_ARTIFACTS to one."
        ) from error

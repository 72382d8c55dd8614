"""The layout: where in the store each artifact, build, lock and pointer lies."""

import re
from dataclasses import dataclass
from pathlib import Path

from dtca_core.errors import ArtifactError
from dtca_core.store.keys import DIGEST_LENGTH

BUILDING = ".building-"
REMOVING = ".removing-"
LATEST = "latest"
_KIND = re.compile(r"[a-z][a-z0-9_-]*")
_KEY = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names under one root; creates nothing.

    A store on anything but a local disk starts here and in `files`, `locks` and `publication`:
    no other module names a path or relies on what a local disk can do.
    """

    root: Path
    """Absolute, links resolved."""

    def kind(self, kind: str) -> Path:
        """Return the folder of a kind."""
        if not _KIND.fullmatch(kind):
            raise ArtifactError(
                f"{kind!r} is not a kind of artifact; use a lower-case name such as 'weights'."
            )
        return self.root / kind

    def artifact(self, kind: str, key: str) -> Path:
        """Return the folder of a published artifact."""
        return self.kind(kind) / _checked(key)

    def building(self, kind: str, key: str) -> Path:
        """Return the folder in which an artifact is built; a killed build resumes in it."""
        return self.kind(kind) / f"{BUILDING}{_checked(key)}"

    def removing(self, kind: str, key: str) -> Path:
        """Return the name under which a folder is out of sight while it is deleted."""
        return self.kind(kind) / f"{REMOVING}{_checked(key)}"

    def lock(self, kind: str, name: str) -> Path:
        """Return the lock file of a key, or of the pointer `latest`."""
        return self.kind(kind) / ".locks" / name

    def latest(self, kind: str) -> Path:
        """Return the text file that holds the key of the artifact last published."""
        return self.kind(kind) / LATEST

    def kinds(self) -> list[str]:
        """Return every kind that has a folder, sorted."""
        return [folder.name for folder in _folders(self.root) if _KIND.fullmatch(folder.name)]

    def published(self, kind: str) -> list[Path]:
        """Return every visible folder of a kind, with or without a manifest, sorted."""
        return [path for path in _folders(self.kind(kind)) if not path.name.startswith(".")]

    def unfinished(self, kind: str) -> list[Path]:
        """Return what builds and removals have left or are busy with, sorted."""
        folders = _folders(self.kind(kind))
        return [path for path in folders if path.name.startswith((BUILDING, REMOVING))]

    def owner(self, path: Path) -> tuple[str, str]:
        """Return kind and key of a folder in the store; refuses any other path."""
        key = path.name.removeprefix(BUILDING).removeprefix(REMOVING)
        kind = path.parent
        if kind.parent != self.root or not is_key(key) or not _KIND.fullmatch(kind.name):
            raise ArtifactError(
                f"{path} is not an artifact of the store {self.root}, so it is left alone; "
                "delete it yourself if it must go."
            )
        return kind.name, key


def is_key(name: str) -> bool:
    """Return whether a name is a whole key."""
    return _KEY.fullmatch(name) is not None


def _checked(key: str) -> str:
    if not is_key(key):
        raise ArtifactError(
            f"{key!r} is not a key; it needs {DIGEST_LENGTH} hexadecimal characters, as "
            "artifact_key gives."
        )
    return key


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []

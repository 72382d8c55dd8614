"""The store: artifacts under one root, which is a local folder."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dtca_core.errors import ConfigError
from dtca_core.store import publication, references, upkeep
from dtca_core.store.artifact import Artifact
from dtca_core.store.catalog import find_intact, list_artifacts
from dtca_core.store.damage import Damage, find_damage
from dtca_core.store.files import explained_writes
from dtca_core.store.layout import Layout
from dtca_core.store.locks import acquire, release
from dtca_core.store.manifest import MANIFEST
from dtca_core.store.provenance import Provenance

# One slash will do: Path("s3://bucket") has already lost the other.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class Store:
    """Artifacts under one root.

    To build one: `find` it; if it is not there, take `locked`, `find` again, write into
    `work_folder`, and `publish`.
    """

    def __init__(self, root: Path | str) -> None:
        if _URL.match(str(root)):
            raise ConfigError(
                f"the artifact root {root} is a URL, and artifacts are kept on a local disk only; "
                "set DTCA_ARTIFACTS to a folder."
            )
        self.root = Path(root).expanduser().resolve()
        self._layout = Layout(root=self.root)

    def find(self, kind: str, key: str) -> Artifact | None:
        """Return the artifact if it is complete and undamaged; every byte is checked."""
        return find_intact(self._layout, kind, key)

    def damage(self, artifact: Artifact) -> list[Damage]:
        """Return each file that is missing, truncated, altered or not in the manifest."""
        return find_damage(artifact)

    @contextmanager
    def locked(
        self, kind: str, key: str, on_wait: Callable[[], None] | None = None
    ) -> Generator[None, None, None]:
        """Hold the right to build an artifact; wait while another process holds it.

        Args:
            kind: the artifact's kind.
            key: the artifact's key.
            on_wait: called once if there is someone to wait for; may raise to give up.
        """
        with explained_writes(self.root):
            lock = acquire(self._layout.lock(kind, key), on_wait)
        try:
            yield
        finally:
            release(lock)

    def work_folder(self, kind: str, key: str) -> Path:
        """Return the folder to build in; what a killed build has written is still there."""
        folder = self._layout.building(kind, key)
        with explained_writes(self.root):
            folder.mkdir(parents=True, exist_ok=True)
            # Killed just before its rename, a build has left one; it is no longer true.
            (folder / MANIFEST).unlink(missing_ok=True)
        return folder

    def publish(self, provenance: Provenance) -> Artifact:
        """Return the artifact that the work folder has become; call it while `locked`.

        All files in the work folder belong to the artifact, but for the temporary ones of
        `write_atomic`. The same content that is already there, undamaged, is left in place.
        """
        with explained_writes(self.root):
            return publication.publish(self._layout, provenance)

    def resolve(self, kind: str, reference: str) -> Artifact:
        """Return the intact artifact that `latest`, a key or its prefix, or a path means."""
        return references.resolve(self._layout, kind, reference)

    def artifacts(self, kind: str | None = None) -> list[Artifact]:
        """Return all artifacts, or those of a kind, newest last; `verify` reports bad ones."""
        return list_artifacts(self._layout, self._kinds(kind))

    def verify(self, kind: str | None = None) -> list[upkeep.Verdict]:
        """Return a verdict on each folder, with what is damaged; every byte is read."""
        return upkeep.verify(self._layout, self._kinds(kind))

    def leftovers(self) -> list[Path]:
        """Return the folders that killed builds and removals left and nobody works in."""
        return upkeep.list_leftovers(self._layout)

    def unreferenced(self) -> list[Artifact]:
        """Return what is neither the latest of its kind nor went, by any way, into one."""
        return upkeep.list_unreferenced(self._layout)

    def remove(self, target: Artifact | Path) -> None:
        """Delete an artifact or a leftover, out of sight first; refused while it is built."""
        path = target.path if isinstance(target, Artifact) else target
        with explained_writes(self.root):
            upkeep.remove(self._layout, path.resolve())

    def _kinds(self, kind: str | None) -> list[str]:
        return self._layout.kinds() if kind is None else [kind]

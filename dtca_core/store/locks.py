"""Locks: one builder per artifact, on one machine's disk.

A lock belongs to the open file, so the kernel drops it when its holder dies, however it dies.
Not for NFS. A process that is forked (not started) while the lock is held shares it.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def acquire(path: Path, on_wait: Callable[[], None] | None = None) -> int:
    """Return the open lock file, held exclusively; blocks until it is free.

    Args:
        path: the lock file; it is made if missing and stays when the lock is released.
        on_wait: called once if another holds the lock; may raise to give up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _try(descriptor):
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Someone removed the file in between, and another process may hold its successor.
        os.close(descriptor)


def release(descriptor: int) -> None:
    """Release a lock, also for children that were forked while it was held."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether anyone holds the lock at this moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

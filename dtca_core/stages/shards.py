"""Durable pieces of a stage's work: a killed stage resumes at the first unfinished one."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from dtca_core.store import write_table


def build_shards(
    folder: Path,
    stem: str,
    count: int,
    size: int,
    build: Callable[[int, int], pa.Table],
    on_done: Callable[[int], None],
) -> None:
    """Write items 0 to `count` in shards of `size`, leaving those alone that are there.

    A shard is named by the items it covers, so that a run with another shard size finds no
    shard that is not its own; those that are left from it are removed.

    Args:
        folder: where the shards go, as `<stem>-<first>-<end>.parquet`.
        stem: beginning of the names.
        count: number of items.
        size: items per shard.
        build: returns the rows of items `first` to `end`.
        on_done: called with the number of items done so far, before each shard and at the end.
    """
    ranges = [(first, min(first + size, count)) for first in range(0, count, size)]
    paths = {_name(stem, *span): span for span in ranges}
    for path in shard_paths(folder, stem):
        if path.name not in paths:
            path.unlink()
    for name, (first, end) in paths.items():
        if not (folder / name).exists():
            on_done(first)
            write_table(folder / name, build(first, end))
    on_done(count)


def shard_paths(folder: Path, stem: str) -> list[Path]:
    """Return the shards of a folder, in the order of their items."""
    return sorted(folder.glob(f"{stem}-????????-????????.parquet"))


def _name(stem: str, first: int, end: int) -> str:
    return f"{stem}-{first:08d}-{end:08d}.parquet"

"""Tests of shards: what is found again, what is not, and in which order."""

import pyarrow as pa
import pytest

from dtca_core.stages.shards import build_shards, shard_paths
from dtca_core.store import read_table, table_from_rows

SCHEMA = pa.schema([pa.field("item", pa.int32(), nullable=False)])


def build_items(folder, count, size, stem="items", dies_at=None):
    """Build shards of numbers; return which were asked for, and what was reported."""
    built, done = [], []

    def build(first, end):
        if first == dies_at:
            raise KeyboardInterrupt
        built.append((first, end))
        return table_from_rows([{"item": item} for item in range(first, end)], SCHEMA)

    build_shards(folder, stem, count, size, build, done.append)
    return built, done


def items(folder, stem="items"):
    return read_table(shard_paths(folder, stem), SCHEMA)["item"].to_pylist()


def test_shards_cover_the_items_in_order_and_report_each(tmp_path):
    built, done = build_items(tmp_path, 7, 3)
    assert built == [(0, 3), (3, 6), (6, 7)]
    assert done == [0, 3, 6, 7]
    assert items(tmp_path) == list(range(7))
    assert [path.name for path in shard_paths(tmp_path, "items")] == [
        "items-00000000-00000003.parquet",
        "items-00000003-00000006.parquet",
        "items-00000006-00000007.parquet",
    ]


def test_a_killed_build_resumes_at_the_first_unfinished_shard(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build_items(tmp_path, 10, 3, dies_at=6)
    before = [path.stat().st_mtime_ns for path in shard_paths(tmp_path, "items")]
    built, done = build_items(tmp_path, 10, 3)
    assert built == [(6, 9), (9, 10)]
    assert done == [6, 9, 10]
    assert [path.stat().st_mtime_ns for path in shard_paths(tmp_path, "items")][:2] == before
    assert items(tmp_path) == list(range(10))


def test_another_shard_size_finds_none_that_is_not_its_own_and_leaves_none(tmp_path):
    build_items(tmp_path, 6, 3)
    built, _ = build_items(tmp_path, 6, 2)
    assert built == [(0, 2), (2, 4), (4, 6)]
    assert items(tmp_path) == list(range(6))
    # By hand: of sizes 2 and 4, only the shard of items 4 to 6 is the same.
    built, _ = build_items(tmp_path, 6, 4)
    assert built == [(0, 4)]
    assert items(tmp_path) == list(range(6))


def test_stems_do_not_touch_each_other_even_where_one_begins_with_the_other(tmp_path):
    build_items(tmp_path, 4, 2, stem="results-16x4")
    build_items(tmp_path, 6, 3, stem="results-16x40")
    built, done = build_items(tmp_path, 4, 2, stem="results-16x4")
    assert (built, done) == ([], [4])
    assert items(tmp_path, "results-16x4") == list(range(4))
    assert items(tmp_path, "results-16x40") == list(range(6))


def test_no_item_gives_no_shard(tmp_path):
    assert build_items(tmp_path, 0, 3) == ([], [0])
    assert shard_paths(tmp_path, "items") == []
    assert items(tmp_path) == []

"""Tests of Parquet shards: explicit schemas, same bytes, and files that are not what they say."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import ArtifactError, DataError
from dtca_core.store import read_table, table_from_rows, write_table

SCHEMA = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("steps", pa.list_(pa.int32()), nullable=False),
        pa.field("delta_p", pa.float32()),
    ]
)


def row(i, steps=(1, 2), delta_p=0.5):
    return {"problem_id": f"p{i}", "steps": list(steps), "delta_p": delta_p}


def shard(path, *rows):
    write_table(path, table_from_rows(list(rows), SCHEMA))
    return path


@pytest.mark.parametrize("order", [1, -1])
def test_a_shard_of_empty_lists_and_nulls_reads_in_any_order(tmp_path, order):
    # PQ01: without a schema the first shard would have lists of type null.
    rows = [row(0, steps=(), delta_p=None), row(1)][::order]
    paths = [shard(tmp_path / f"{i}.parquet", rows[i]) for i in range(2)]
    assert read_table(paths, SCHEMA).to_pylist() == rows


def test_no_shard_and_a_shard_without_rows_give_a_typed_empty_table(tmp_path):
    # PQ02
    empty = shard(tmp_path / "empty.parquet")
    for paths in ([], [empty], [empty, empty]):
        table = read_table(paths, SCHEMA)
        assert table.num_rows == 0
        assert table.schema.equals(SCHEMA)


def test_rows_gathered_one_by_one_become_one_row_group(tmp_path):
    # PQ05: 2000 small tables written one after the other would make 2000 row groups.
    rows = [row(i) for i in range(2000)]
    one_by_one = pa.concat_tables([table_from_rows([each], SCHEMA) for each in rows])
    write_table(tmp_path / "gathered.parquet", one_by_one)
    shard(tmp_path / "at_once.parquet", *rows)
    assert pq.read_metadata(tmp_path / "gathered.parquet").num_row_groups == 1
    assert (tmp_path / "gathered.parquet").read_bytes() == (
        tmp_path / "at_once.parquet"
    ).read_bytes()


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 99), max_size=3), st.none() | st.floats(width=32))),
    st.data(),
)
def test_the_same_rows_give_the_same_bytes_however_they_were_sliced(tmp_path_factory, rows, data):
    folder = tmp_path_factory.getbasetemp()
    table = table_from_rows([row(i, *values) for i, values in enumerate(rows)], SCHEMA)
    cut = data.draw(st.integers(0, len(rows)))
    write_table(folder / "whole.parquet", table)
    write_table(folder / "cut.parquet", pa.concat_tables([table[:cut], table[cut:]]))
    written = (folder / "whole.parquet").read_bytes()
    assert (folder / "cut.parquet").read_bytes() == written
    write_table(folder / "again.parquet", read_table([folder / "whole.parquet"], SCHEMA))
    assert (folder / "again.parquet").read_bytes() == written


def test_nan_stays_apart_from_null(tmp_path):
    path = shard(tmp_path / "a.parquet", row(0, delta_p=float("nan")), row(1, delta_p=None))
    column = read_table([path], SCHEMA)["delta_p"]
    assert column.null_count == 1
    assert str(column[0].as_py()) == "nan"


def test_a_lone_surrogate_is_refused_with_its_row_and_column():
    # PQ08
    rows = [row(0), {**row(1), "problem_id": "a\ud800b"}]
    with pytest.raises(DataError, match=r"row 1, column 'problem_id': 'a\\ud800b'.*drop the row"):
        table_from_rows(rows, SCHEMA)


def test_bytes_that_are_not_text_are_refused_before_the_file_is_opened(tmp_path):
    # The UTF-8 form of a lone surrogate, which no Python string gives but other writers do.
    offsets, text = pa.py_buffer(b"\0\0\0\0\3\0\0\0"), pa.py_buffer(b"\xed\xa0\x80")
    broken = pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])
    table = pa.table({"problem_id": broken})
    with pytest.raises(DataError, match=r"a\.parquet was not written: .*UTF8"):
        write_table(tmp_path / "a.parquet", table)
    assert not list(tmp_path.iterdir())


def test_null_where_a_value_is_needed_is_refused_before_the_file_is_opened(tmp_path):
    # pyarrow would write it as an empty list.
    table = table_from_rows([{**row(0), "steps": None}], SCHEMA)
    with pytest.raises(DataError, match=r"null in \['steps'\]"):
        write_table(tmp_path / "a.parquet", table)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problem_id": "p"}, "row 0 has the columns"),
        ({**row(0), "extra": 1}, "row 0 has the columns"),
        ({**row(0), "steps": ["a"]}, "row 0, column 'steps'"),
        ({**row(0), "steps": [2**40]}, "row 0, column 'steps'"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(DataError, match=message):
        table_from_rows([changed], SCHEMA)


def test_a_shard_of_another_schema_is_refused_by_its_columns(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"problem_id": ["p"], "steps": [[]], "more": [1]}), path)
    with pytest.raises(ArtifactError) as caught:
        read_table([path], SCHEMA)
    message = str(caught.value)
    assert str(path) in message
    assert "'more' is not expected" in message
    assert "'delta_p' is missing" in message
    assert "'steps' is list<element: null> and not list<item: int32>" in message
    assert "problem_id" not in message


def test_a_shard_with_null_where_a_value_is_needed_is_refused(tmp_path):
    path = tmp_path / "other.parquet"
    optional = pa.schema([field.with_nullable(True) for field in SCHEMA])
    pq.write_table(pa.Table.from_pylist([{**row(0), "steps": None}], schema=optional), path)
    with pytest.raises(ArtifactError, match=r"holds null in \['steps'\]"):
        read_table([path], SCHEMA)


def test_a_truncated_a_flipped_and_a_missing_shard_are_refused_by_name(tmp_path):
    path = shard(tmp_path / "a.parquet", *(row(i) for i in range(50)))
    whole = path.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ArtifactError, match=r"a\.parquet is not a whole Parquet file"):
            read_table([path], SCHEMA)
    path.unlink()
    with pytest.raises(ArtifactError, match=r"a\.parquet does not exist"):
        read_table([path], SCHEMA)

"""Tables: Parquet shards with an explicit schema; the same rows give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# pyarrow ships no types.
# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false
import pyarrow as pa
import pyarrow.parquet as pq

from dtca_core.errors import ArtifactError, DataError
from dtca_core.store.files import write_atomic

ROW_GROUP_SIZE = 65_536
"""Rows per row group; a shard has one or few of them."""
_REFUSED = (pa.ArrowException, ValueError, TypeError, OverflowError)


def table_from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return the table of these rows, whose names must be exactly those of the schema.

    Raises:
        DataError: a value that its column cannot hold, such as text with a lone surrogate.
    """
    names: list[str] = sorted(schema.names)
    columns: list[pa.Array[Any]] = []
    for i, row in enumerate(rows):
        if sorted(row) != names:
            raise DataError(f"row {i} has the columns {sorted(row)}; it needs {names}.")
    for field in schema:
        values = [row[field.name] for row in rows]
        try:
            columns.append(pa.array(values, type=field.type))
        except _REFUSED:
            reasons = [(i, _refusal(value, field.type)) for i, value in enumerate(values)]
            i, reason = next((i, reason) for i, reason in reasons if reason is not None)
            raise DataError(
                f"row {i}, column {field.name!r}: {values[i]!r} is not {field.type} ({reason}). "
                "Correct or drop the row."
            ) from None
    return pa.table(columns, schema=schema)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as one Parquet file, whole or not at all; the same table, the same bytes.

    Raises:
        DataError: the table holds text that is not UTF-8, or null where its schema allows none.
            The file is not opened then.
    """
    if nulls := _wrongly_null(table):
        raise DataError(f"{path} was not written: null in {nulls}, which need values; fill them.")
    try:
        table.validate(full=True)
        sink = pa.BufferOutputStream()
        # One chunk a column: pages end where chunks end, and how rows were gathered must not show.
        pq.write_table(
            table.combine_chunks(), sink, row_group_size=ROW_GROUP_SIZE, compression="zstd"
        )
    except pa.ArrowException as error:
        raise DataError(
            f"{path} was not written: {error}. Correct the rows; table_from_rows names the one."
        ) from None
    write_atomic(path, sink.getvalue().to_pybytes())


def read_table(paths: Sequence[Path], schema: pa.Schema) -> pa.Table:
    """Return the rows of all shards, in the order given; no shard gives an empty table."""
    return pa.concat_tables([schema.empty_table(), *(_read(path, schema) for path in paths)])


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    todo = "Restore it or build its artifact again."
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            if differences := _differences(found, schema):
                raise ArtifactError(f"{path} has other columns: {'; '.join(differences)}. {todo}")
            table = file.read().select(schema.names)
        table = pa.table(table.columns, schema=schema)
        table.validate(full=True)
        if nulls := _wrongly_null(table):
            raise ArtifactError(f"{path} holds null in {nulls}, which need values. {todo}")
    except FileNotFoundError:
        raise ArtifactError(f"{path} does not exist. {todo}") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise ArtifactError(f"{path} is not a whole Parquet file: {reason}. {todo}") from None
    return table


def _differences(found: pa.Schema, needed: pa.Schema) -> list[str]:
    """Return one sentence for each column in which two schemas differ."""
    differences = [f"{name!r} is not expected" for name in found.names if name not in needed.names]
    for field in needed:
        if field.name not in found.names:
            differences.append(f"{field.name!r} is missing")
        elif found.field(field.name).type != field.type:
            actual = found.field(field.name).type
            differences.append(f"{field.name!r} is {actual} and not {field.type}")
    return differences


def _wrongly_null(table: pa.Table) -> list[str]:
    """Return the columns that hold null though their schema allows none.

    Parquet has no place for them: pyarrow would write empty lists in place of null ones.
    """
    required = [field.name for field in table.schema if not field.nullable]
    return [name for name in required if table[name].null_count > 0]


def _refusal(value: Any, kind: pa.DataType) -> str | None:
    """Return why a column cannot hold a value; None if it can."""
    try:
        pa.array([value], type=kind)
    except _REFUSED as error:
        return str(error)
    return None

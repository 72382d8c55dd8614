"""Contributions as any program may have written them, checked before anything is averaged.

Columns that weights do not need are ignored, and rows may come in any order, in any number of
files. What would bend a mean is refused by name: a token twice, NaN, characters outside the text.
"""

from pathlib import Path
from typing import Any

# pyarrow ships no types.
# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from dtca_core.errors import DataError
from dtca_core.records import (
    CONTRIBUTION_SCHEMA,
    CONTRIBUTION_STEM,
    RESPONSE_SCHEMA,
    RESPONSE_STEM,
)

_TOKEN_COLUMNS = ("rollout_id", "position", "delta_p", "char_start", "char_end")
_RESPONSE_COLUMNS = ("rollout_id", "response_text", "special_positions")

_START, _END, _DELTA_P = pl.col("char_start"), pl.col("char_end"), pl.col("delta_p")
_IMPOSSIBLE = [
    (pl.col("position") < 0, "positions are counted from 0"),
    (
        _DELTA_P.is_nan() | _DELTA_P.is_infinite() | (_DELTA_P < 0),
        "delta_p={delta_p} is neither a finite number of at least 0 nor null, which says that it "
        "is undefined",
    ),
    (
        (_START < 0) | (_START > _END) | (pl.col("length") < _END),
        "characters {char_start} to {char_end} are not in its text of {length} characters",
    ),
]
"""What no measurement gives, and how to say so of a row."""


def read_measurements(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tokens and the responses of a folder, in the order of the responses.

    Returns:
        Tokens, sorted by response and position: `rollout_id`, `position`, `delta_p`,
        `char_start`, `char_end`, `is_special`. Responses, of these tokens alone: `rollout_id`,
        `response_text`.

    Raises:
        DataError: a file, column or row that cannot be used; it says which.
    """
    tokens = _read(folder, CONTRIBUTION_STEM, CONTRIBUTION_SCHEMA, _TOKEN_COLUMNS)
    responses = _read(folder, RESPONSE_STEM, RESPONSE_SCHEMA, _RESPONSE_COLUMNS)
    if tokens.is_empty():
        raise DataError(
            f"{folder} has no row in its {CONTRIBUTION_STEM} files; weights need the contributions "
            "of some tokens. Measure at least one response."
        )
    _refuse_repeated(folder, responses, ["rollout_id"])
    _refuse_repeated(folder, tokens, ["rollout_id", "position"])
    _refuse_without_text(folder, tokens, responses)
    joined = tokens.join(responses.with_row_index("order"), on="rollout_id").sort(
        "order", "position"
    )
    _refuse_impossible(folder, joined)
    return (
        joined.select(
            *_TOKEN_COLUMNS,
            is_special=pl.col("special_positions").list.contains(pl.col("position")),
        ),
        responses.filter(pl.col("rollout_id").is_in(tokens["rollout_id"].unique().implode())).drop(
            "special_positions"
        ),
    )


def _read(folder: Path, stem: str, schema: pa.Schema, columns: tuple[str, ...]) -> pl.DataFrame:
    paths = sorted(folder.glob(f"{stem}*.parquet"))
    if not paths:
        raise DataError(
            f"{folder} holds no {stem}*.parquet; give a folder that the contribution stage wrote, "
            "or one with the files that artifacts/README.md describes."
        )
    needed = [schema.field(name) for name in columns]
    tables = [_read_file(path, needed) for path in paths]
    frame = pl.from_arrow(pa.concat_tables(tables))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _read_file(path: Path, needed: list[Any]) -> pa.Table:
    """Return the needed columns of a file, converted where their type differs but holds as much."""
    try:
        with pq.ParquetFile(path) as file:
            missing = [field for field in needed if field.name not in file.schema_arrow.names]
            if missing:
                listed = ", ".join(f"{field.name} ({field.type})" for field in missing)
                raise DataError(
                    f"{path} lacks the columns {listed}; it has "
                    f"{', '.join(file.schema_arrow.names)}. Add or rename them."
                )
            table = file.read(columns=[field.name for field in needed])
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} is not a whole Parquet file: {reason}. Write it again.") from None
    return pa.table({field.name: _column(path, table, field) for field in needed})


def _column(path: Path, table: pa.Table, field: Any) -> Any:
    column = table[field.name]
    if column.null_count and not field.nullable:
        raise DataError(
            f"{path} holds {column.null_count} nulls in column {field.name!r}, which needs a value "
            "in each row. Fill them."
        )
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise DataError(
            f"{path} has column {field.name!r} as {column.type}, which is not {field.type} "
            f"({error}). Write it as {field.type}."
        ) from None


def _refuse_repeated(folder: Path, rows: pl.DataFrame, key: list[str]) -> None:
    repeated = rows.select(key).filter(pl.struct(key).is_duplicated())
    if not repeated.is_empty():
        row = repeated.row(0, named=True)
        first = ", ".join(f"{name} {value!r}" for name, value in row.items())
        raise DataError(
            f"{folder} has {len(repeated)} rows that share their {' and '.join(key)} with another, "
            f"such as {first}; each is to be there once. Two runs may be mixed, or a file be there "
            "twice: remove one."
        )


def _refuse_without_text(folder: Path, tokens: pl.DataFrame, responses: pl.DataFrame) -> None:
    unknown = tokens.join(responses, on="rollout_id", how="anti")["rollout_id"].unique().sort()
    if len(unknown):
        raise DataError(
            f"{folder} has contributions of {len(unknown)} responses without a text, such as "
            f"{unknown[0]}; the artifact mixes two runs, measure contributions again."
        )


def _refuse_impossible(folder: Path, tokens: pl.DataFrame) -> None:
    """Refuse values that no measurement gives."""
    tokens = tokens.with_columns(length=pl.col("response_text").str.len_chars())
    for is_impossible, explanation in _IMPOSSIBLE:
        wrong = tokens.filter(is_impossible)
        if not wrong.is_empty():
            row = wrong.row(0, named=True)
            raise DataError(
                f"{folder}, rollout_id {row['rollout_id']!r}, position {row['position']}: "
                f"{explanation.format(**row)}. {len(wrong)} of {len(tokens)} rows are so; correct "
                "them, or measure the contributions again."
            )

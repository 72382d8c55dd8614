"""Rows of problem files: JSON, JSON Lines, Parquet. What the rows mean is for `problems.py`."""

import json
from pathlib import Path
from typing import Any, cast

# pyarrow ships no types.
# pyright: reportMissingTypeStubs=false
import pyarrow as pa
import pyarrow.parquet as pq

from dtca_core.errors import DataError

Row = tuple[str, Any]
"""The place of a row, for messages, and the row as it was read."""


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, in its order.

    Args:
        path: a `.json` list of objects, `.jsonl` with one object a line, or `.parquet`.

    Raises:
        DataError: the file is missing, of another format, damaged, or without rows.
    """
    readers = {".json": _json_rows, ".jsonl": _jsonl_rows, ".parquet": _parquet_rows}
    if path.suffix.lower() not in readers:
        raise DataError(
            f"problem file {path} ends in {path.suffix or 'nothing'!r}; give a file that ends in "
            f"{', '.join(readers)}."
        )
    if not path.is_file():
        raise DataError(f"problem file {path} does not exist; correct the path.")
    rows = readers[path.suffix.lower()](path)
    if not rows:
        raise DataError(f"problem file {path} holds no problems; it needs at least one.")
    return rows


def _utf8(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"problem file {path} is not UTF-8 at byte {error.start}; save it as UTF-8."
        ) from None


def _json_rows(path: Path) -> list[Row]:
    try:
        rows = json.loads(_utf8(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"problem file {path} is not JSON: line {error.lineno}, column {error.colno}: "
            f"{error.msg}. Repair it; one object a line belongs in a .jsonl file."
        ) from None
    if not isinstance(rows, list):
        raise DataError(
            f"problem file {path} holds a {type(rows).__name__}; it needs a list of objects."
        )
    return _numbered(rows, path)


def _numbered(rows: list[Any], path: Path) -> list[Row]:
    return [(f"{path}, row {number}", row) for number, row in enumerate(rows, 1)]


def _jsonl_rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    # Not splitlines(): JSON strings may hold the other line separators of Unicode.
    for number, line in enumerate(_utf8(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append((f"{path}, line {number}", json.loads(line)))
        except json.JSONDecodeError as error:
            raise DataError(
                f"problem file {path} is not JSON in line {number}, column {error.colno}: "
                f"{error.msg}. Repair or remove that line."
            ) from None
    return rows


def _parquet_rows(path: Path) -> list[Row]:
    try:
        rows: list[Any] = pq.read_table(path).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(cast(Exception, error)).partition("\n")[0]
        raise DataError(f"problem file {path} is not Parquet ({reason}); write it again.") from None
    return _numbered(rows, path)

"""Problems with their reference answers: the record, its Parquet schema, and reading files.

Reading from the hub is left out.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

# pyarrow ships no types.
# pyright: reportMissingTypeStubs=false
import pyarrow as pa
import pyarrow.parquet as pq

from dtca_core.data.contamination import problem_key
from dtca_core.errors import DataError
from dtca_core.store import read_table

PROBLEM_SCHEMA = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("question", pa.string(), nullable=False),
        pa.field("answer", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
    ]
)
"""One row per problem; split is train, validation or test."""

FROM_FILE = "file"
"""The kind of a problem that was read from a file."""

Row = tuple[str, Any]
"""A row as it was read, and the place in the file for messages."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A question with the one answer that is right."""

    problem_id: str
    """First 16 hexadecimal digits of the SHA-256 of the question."""
    question: str
    """What is asked, without any instruction."""
    answer: str
    """The reference answer alone, without its solution; blank where the file gives none."""
    kind: str
    """What sort of problem it is: a generator's template, or `FROM_FILE`."""


def problem_id(question: str) -> str:
    """Return the name of a problem: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(question.encode()).hexdigest()[:16]


def read_problems(path: str | Path, question_column: str, answer_column: str) -> list[Problem]:
    """Return the problems of a file, in its order, duplicates included.

    Of an answer in the manner of GSM8K, a solution and then `####`, what follows the last
    mark is the reference. A blank answer is kept, as published files hold some; see
    `drop_unanswered`.

    Args:
        path: a `.json` list of objects, `.jsonl` with one object a line, or `.parquet`.
        question_column: column of the question.
        answer_column: column of the answer.
    """
    path = Path(path)
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
    return [_problem(row, question_column, answer_column, place) for place, row in rows]


def deduplicate(problems: Sequence[Problem]) -> tuple[list[Problem], int]:
    """Return the first of each set of problems with the same normalised question.

    Returns:
        the problems kept, in their order, and how many were dropped.
    """
    first: dict[str, Problem] = {}
    for problem in problems:
        first.setdefault(problem_key(problem.question), problem)
    return list(first.values()), len(problems) - len(first)


def drop_unanswered(problems: Sequence[Problem]) -> tuple[list[Problem], int]:
    """Return the problems that have an answer: the others could never be solved.

    Returns:
        the problems kept, in their order, and how many were dropped.
    """
    kept = [problem for problem in problems if problem.answer]
    return kept, len(problems) - len(kept)


def _problem(row: Any, question_column: str, answer_column: str, place: str) -> Problem:
    if not isinstance(row, dict):
        raise DataError(
            f"{place} is a {type(row).__name__}; each problem needs an object with columns."
        )
    columns = cast(dict[str, Any], row)
    question = _text(columns, question_column, place)
    answer = _text(columns, answer_column, place)
    if not question.strip():
        raise DataError(f"{place}: {question_column!r} is blank; write a question or remove it.")
    return Problem(
        problem_id=problem_id(question),
        question=question,
        answer=answer.rpartition("####")[2].strip(),
        kind=FROM_FILE,
    )


def _text(row: dict[str, Any], column: str, place: str) -> str:
    """Return one value of a row, or raise DataError that says what is wrong with it."""
    if column not in row:
        raise DataError(
            f"{place} has no column {column!r}; it has {', '.join(map(repr, row)) or 'none'}. Set "
            "question_column and answer_column to two of them."
        )
    value = row[column]
    if not isinstance(value, str):
        found = "null" if value is None else f"{value!r}, a {type(value).__name__}"
        raise DataError(f"{place}: {column!r} is {found}; it needs text.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(
            f"{place}: {column!r} holds half of a surrogate pair, which no file can store; "
            "repair the text or remove the row."
        )
    return value


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


def read_split(path: Path, split: str) -> list[Problem]:
    """Return the problems of one split of a dataset artifact's Parquet file, in its order."""
    rows = read_table([path], PROBLEM_SCHEMA).to_pylist()
    fields = ("problem_id", "question", "answer", "kind")
    return [Problem(**{f: row[f] for f in fields}) for row in rows if row["split"] == split]

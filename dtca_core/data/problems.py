"""Problems with their reference answers: the record, its Parquet schema, and which are kept."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

# pyarrow ships no types.
# pyright: reportMissingTypeStubs=false
import pyarrow as pa

from dtca_core.data.normalisation import problem_key
from dtca_core.data.rows import Row, read_rows
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

QUESTION_COLUMNS = ("question", "problem")
ANSWER_COLUMNS = ("answer", "ground_truth_answer")
"""Names that published files use; the first that a row has is taken."""


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
    """Where it is from: a generator's template, `FROM_FILE`, or the name of a hub dataset."""


def problem_id(question: str) -> str:
    """Return the name of a problem: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(question.encode()).hexdigest()[:16]


def read_problems(
    path: str | Path, question_column: str | None = None, answer_column: str | None = None
) -> list[Problem]:
    """Return the problems of a file, in its order, duplicates included.

    Args:
        path: a file that `read_rows` reads.
        question_column: as of `problems_of`.
        answer_column: as of `problems_of`.
    """
    return problems_of(read_rows(Path(path)), question_column, answer_column, FROM_FILE)


def problems_of(
    rows: Sequence[Row], question_column: str | None, answer_column: str | None, kind: str
) -> list[Problem]:
    """Return the problems that rows hold, in their order, duplicates included.

    Of an answer in the manner of GSM8K, a solution and then `####`, what follows the last
    mark is the reference. A number as an answer becomes its text. A blank answer is kept, as
    published files hold some; see `drop_unanswered`.

    Args:
        rows: rows with their places.
        question_column: column of the question; None: the first of `QUESTION_COLUMNS` there is.
        answer_column: column of the answer; None: the first of `ANSWER_COLUMNS` there is.
        kind: kind of the problems.
    """
    asked = QUESTION_COLUMNS if question_column is None else (question_column,)
    told = ANSWER_COLUMNS if answer_column is None else (answer_column,)
    return [_problem(row, asked, told, place, kind) for place, row in rows]


def deduplicate(problems: Sequence[Problem]) -> tuple[list[Problem], list[Problem]]:
    """Return the first of each set of problems with the same normalised question.

    Returns:
        the problems kept and the problems dropped, each in their order.
    """
    first: dict[str, Problem] = {}
    dropped: list[Problem] = []
    for problem in problems:
        if first.setdefault(problem_key(problem.question), problem) is not problem:
            dropped.append(problem)
    return list(first.values()), dropped


def num_contradicting(kept: Sequence[Problem], dropped: Sequence[Problem]) -> int:
    """Return how many dropped duplicates give another answer than the one that was kept.

    Answers are compared as text, so that 1/2 contradicts 0.5: it is a hint to look.
    """
    answers = {problem_key(problem.question): problem.answer for problem in kept}
    return sum(answers[problem_key(p.question)] != p.answer for p in dropped)


def drop_unanswered(problems: Sequence[Problem]) -> tuple[list[Problem], int]:
    """Return the problems that have an answer: the others could never be solved.

    Returns:
        the problems kept, in their order, and how many were dropped.
    """
    kept = [problem for problem in problems if problem.answer]
    return kept, len(problems) - len(kept)


def read_split(path: Path, split: str) -> list[Problem]:
    """Return the problems of one split of a dataset artifact's Parquet file, in its order."""
    rows = read_table([path], PROBLEM_SCHEMA).to_pylist()
    fields = ("problem_id", "question", "answer", "kind")
    return [Problem(**{f: row[f] for f in fields}) for row in rows if row["split"] == split]


def _problem(
    row: Any, asked: tuple[str, ...], told: tuple[str, ...], place: str, kind: str
) -> Problem:
    if not isinstance(row, dict):
        raise DataError(
            f"{place} is a {type(row).__name__}; each problem needs an object with columns."
        )
    columns = cast(dict[str, Any], row)
    question_column = _column(columns, asked, place)
    question = _text(columns[question_column], question_column, place)
    if not question.strip():
        raise DataError(f"{place}: {question_column!r} is blank; write a question or remove it.")
    answer_column = _column(columns, told, place)
    answer = columns[answer_column]
    if not _is_number(answer):
        answer = _text(answer, answer_column, place)
    return Problem(
        problem_id=problem_id(question),
        question=question,
        answer=str(answer).rpartition("####")[2].strip(),
        kind=kind,
    )


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _column(row: dict[str, Any], names: tuple[str, ...], place: str) -> str:
    """Return the first of these columns that a row has, or raise DataError with those it has."""
    for name in names:
        if name in row:
            return name
    raise DataError(
        f"{place} has no column {' or '.join(map(repr, names))}; it has "
        f"{', '.join(map(repr, row)) or 'none'}. Name two of them in data.question_column and "
        "data.answer_column, or in data.evaluation_question_column and "
        "data.evaluation_answer_column if it is the evaluation file."
    )


def _text(value: Any, column: str, place: str) -> str:
    """Return a value that is text, or raise DataError that says what is wrong with it."""
    if not isinstance(value, str):
        found = "null" if value is None else f"{value!r}, a {type(value).__name__}"
        raise DataError(f"{place}: {column!r} is {found}; it needs text.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(
            f"{place}: {column!r} holds half of a surrogate pair, which no file can store; "
            "repair the text or remove the row."
        )
    return value

"""Tests of problems: files that can be read, and the message for each that cannot."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dtca_core.data.problems import (
    PROBLEM_SCHEMA,
    Problem,
    deduplicate,
    drop_unanswered,
    num_contradicting,
    problem_id,
    read_problems,
)
from dtca_core.errors import DataError

DATA = Path(__file__).parents[3] / "shared" / "data"

ROWS = [
    {"question": "What is 2 + 2?", "answer": "4", "level": "1"},
    {"question": "Wie viel ist \u00bd?\u2028Bitte.", "answer": "2/4 = 1/2\n#### 1/2", "level": "2"},
]


def written(folder, name, rows):
    """Write rows in the format that the name asks for."""
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def refusal(path, question="question", answer="answer"):
    """Return the message with which a file is refused."""
    with pytest.raises(DataError) as error:
        read_problems(path, question, answer)
    return str(error.value)


def make(question, answer="1"):
    return Problem(problem_id=problem_id(question), question=question, answer=answer, kind="file")


@pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.parquet", "P.JSONL"])
def test_every_format_gives_the_same_problems(tmp_path, name):
    path = written(tmp_path, name.lower(), ROWS).rename(tmp_path / name)
    problems = read_problems(path, "question", "answer")
    assert [p.question for p in problems] == [row["question"] for row in ROWS]
    assert [p.answer for p in problems] == ["4", "1/2"]
    assert {p.kind for p in problems} == {"file"}
    assert problems[0].problem_id == hashlib.sha256(b"What is 2 + 2?").hexdigest()[:16]
    assert read_problems(str(path), "question", "answer") == problems


def test_problems_are_rows_of_the_schema(tmp_path):
    problems = read_problems(written(tmp_path, "p.json", ROWS), "question", "answer")
    rows = [{**vars(p), "split": "train"} for p in problems]
    table = pa.Table.from_pylist(rows, schema=PROBLEM_SCHEMA)
    table.validate(full=True)
    assert table.column_names == ["problem_id", "split", "question", "answer", "kind"]


def test_any_column_may_hold_question_and_answer(tmp_path):
    path = written(tmp_path, "p.json", [{"problem": "Add.", "solution": "a ## b"}])
    assert read_problems(path, "problem", "solution")[0].answer == "a ## b"


def test_the_last_mark_of_gsm8k_counts(tmp_path):
    rows = [{"question": "q", "answer": "#### 3\nno\n####  1,200 "}]
    assert read_problems(written(tmp_path, "p.jsonl", rows), "question", "answer")[0].answer == (
        "1,200"
    )


def test_a_byte_order_mark_and_blank_lines_are_no_problem(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("\ufeff" + json.dumps(ROWS[0]) + "\r\n\r\n", encoding="utf-8")
    assert len(read_problems(path, "question", "answer")) == 1


def test_a_missing_file_is_refused(tmp_path):
    assert "no.json does not exist" in refusal(tmp_path / "no.json")
    (tmp_path / "folder.json").mkdir()
    assert "does not exist" in refusal(tmp_path / "folder.json")


@pytest.mark.parametrize("name", ["p.csv", "p"])
def test_another_format_is_refused_with_the_known_ones(tmp_path, name):
    assert ".json, .jsonl, .parquet" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.parquet"])
def test_a_file_without_rows_is_refused(tmp_path, name):
    assert "holds no problems" in refusal(written(tmp_path, name, []))


@pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.parquet"])
def test_a_missing_column_is_refused_with_those_that_exist(tmp_path, name):
    message = refusal(written(tmp_path, name, ROWS), answer="solution")
    assert "no column 'solution'; it has 'question', 'answer', 'level'" in message


@pytest.mark.parametrize(
    ("name", "place"), [("p.json", "row 2"), ("p.jsonl", "line 2"), ("p.parquet", "row 2")]
)
def test_a_null_is_refused_with_its_place(tmp_path, name, place):
    rows = [ROWS[0], {**ROWS[1], "answer": None}]
    assert f"{name}, {place}: 'answer' is null; it needs text." in refusal(
        written(tmp_path, name, rows)
    )


@pytest.mark.parametrize("name", ["p.json", "p.jsonl", "p.parquet"])
@pytest.mark.parametrize(("answer", "text"), [(18, "18"), (-0.5, "-0.5")])
def test_a_number_is_an_answer(tmp_path, name, answer, text):
    path = written(tmp_path, name, [{"question": "q", "answer": answer}])
    assert [p.answer for p in read_problems(path)] == [text]


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("answer", True, "True, a bool"),
        ("answer", float("nan"), "nan, a float"),
        ("answer", ["1"], "['1'], a list"),
        ("question", 18, "18, a int"),
    ],
)
def test_what_is_neither_text_nor_number_is_refused_with_its_place(tmp_path, column, value, found):
    row = {"question": "q", "answer": "1", column: value}
    message = refusal(written(tmp_path, "p.json", [row]))
    assert f"row 1: {column!r} is {found}; it needs text." in message


@pytest.mark.parametrize(
    "columns",
    [("question", "answer"), ("question", "ground_truth_answer"), ("problem", "answer")],
)
def test_columns_of_published_files_need_not_be_named(tmp_path, columns):
    # As in GSM8K, in the files of Drift, and in MATH500, which has a worked solution besides.
    row = dict(zip(columns, ("What is 2 + 2?", "4"), strict=True)) | {"solution": "It is 4."}
    (problem,) = read_problems(written(tmp_path, "p.json", [row]))
    assert (problem.question, problem.answer) == ("What is 2 + 2?", "4")


def test_a_named_column_wins_over_a_known_one(tmp_path):
    row = {"question": "long", "short": "What?", "answer": "no", "final": "4"}
    (problem,) = read_problems(written(tmp_path, "p.json", [row]), "short", "final")
    assert (problem.question, problem.answer) == ("What?", "4")


def test_a_file_without_a_known_column_is_refused_with_both_settings(tmp_path):
    path = written(tmp_path, "p.json", [{"prompt": "q", "answer": "1"}])
    message = refusal(path, None, None)
    assert "no column 'question' or 'problem'; it has 'prompt', 'answer'" in message
    assert "data.question_column" in message
    assert "data.evaluation_question_column" in message


def test_a_row_that_is_no_object_is_refused(tmp_path):
    assert "row 2 is a list" in refusal(written(tmp_path, "p.json", [ROWS[0], [1]]))


def test_json_that_is_no_list_is_refused(tmp_path):
    assert "holds a dict; it needs a list" in refusal(written(tmp_path, "p.json", ROWS[0]))


def test_a_blank_question_is_refused(tmp_path):
    rows = [ROWS[0], {"question": " \n", "answer": "1"}]
    assert "row 2: 'question' is blank" in refusal(written(tmp_path, "p.json", rows))


def test_half_a_surrogate_pair_is_refused(tmp_path):
    rows = [{"question": "a\ud800b", "answer": "1"}]
    assert "row 1: 'question' holds half of a surrogate pair" in refusal(
        written(tmp_path, "p.json", rows)
    )


def test_broken_json_is_refused_with_its_line(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('[\n{"question": "q",\n "answer": }\n]')
    assert "not JSON: line 3, column 12" in refusal(path)
    path = tmp_path / "p.jsonl"
    path.write_text('{"question": "q", "answer": "1"}\n\n{"question": "q"\n')
    assert "not JSON in line 3" in refusal(path)


@pytest.mark.parametrize("name", ["p.json", "p.jsonl"])
def test_text_that_is_not_utf8_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b'["\xff"]')
    assert "not UTF-8 at byte 2" in refusal(tmp_path / name)


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "p.parquet").write_text("no")
    assert "is not Parquet" in refusal(tmp_path / "p.parquet")


def test_the_first_of_equal_problems_is_kept():
    problems = [make("What is 2+2?", "4"), make("Other"), make("what is $2 + 2$", "5")]
    assert deduplicate(problems) == (problems[:2], problems[2:])
    assert deduplicate([]) == ([], [])


def test_duplicates_with_another_answer_are_told_from_mere_repetition():
    problems = [make("What is 2+2?", "4"), make("what is $2 + 2$", "5"), make("What is 2+2?", "4")]
    kept, dropped = deduplicate(problems)
    assert len(dropped) == 2
    assert num_contradicting(kept, dropped) == 1


def test_problems_without_an_answer_are_kept_on_reading_and_dropped_on_request(tmp_path):
    rows = [{"question": "a", "answer": ""}, {"question": "b", "answer": "so\n#### "}, ROWS[0]]
    problems = read_problems(written(tmp_path, "p.json", rows), "question", "answer")
    assert [p.answer for p in problems] == ["", "", "4"]
    assert drop_unanswered(problems) == ([problems[2]], 2)


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are absent")
@pytest.mark.parametrize(
    ("name", "counts"),
    [  # problems, duplicates, of these with another answer, without an answer
        ("gsm8k_train.jsonl", (7473, 0, 0, 0)),
        ("gsm8k_test.jsonl", (1319, 0, 0, 0)),
        ("math500.json", (500, 0, 0, 0)),
        ("math_train.json", (8523, 3, 0, 2)),
    ],
)
def test_published_files_are_read_without_naming_their_columns(name, counts):
    problems = read_problems(DATA / name)
    kept, dropped = deduplicate(problems)
    contradicting, unanswered = num_contradicting(kept, dropped), drop_unanswered(problems)[1]
    assert (len(problems), len(dropped), contradicting, unanswered) == counts
    assert not any("####" in problem.answer for problem in problems)

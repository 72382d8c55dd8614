"""Tests of contributions that another program wrote: what is read, what is refused and how."""

import math

import polars as pl
import pytest

from dtca_core.errors import DataError
from dtca_core.records import CONTRIBUTION_SCHEMA, RESPONSE_SCHEMA
from dtca_core.weights.measurements import read_measurements

TOKENS = pl.DataFrame(
    {
        "rollout_id": ["b", "a", "b", "a"],
        "position": [1, 0, 0, 1],
        "delta_p": [0.5, None, 1.0, 0.25],
        "char_start": [1, 0, 0, 2],
        "char_end": [2, 2, 1, 2],
    }
)
RESPONSES = pl.DataFrame(
    {
        "rollout_id": ["b", "unused", "a"],
        "response_text": ["7🙂", "", "ab"],
        "special_positions": [[], [0], [1]],
    },
    schema_overrides={"special_positions": pl.List(pl.Int64)},
)


@pytest.fixture
def given(tmp_path):
    """Return a function that writes tables as a foreign program may, and returns the folder."""

    def write(tokens=TOKENS, responses=RESPONSES):
        tokens.write_parquet(tmp_path / "contribution.parquet")
        responses.write_parquet(tmp_path / "responses.parquet")
        return tmp_path

    return write


def test_rows_are_put_in_the_order_of_responses_and_positions(given):
    tokens, responses = read_measurements(given())
    assert responses.rows() == [("b", "7🙂"), ("a", "ab")]
    assert tokens.rows() == [
        ("b", 0, 1.0, 0, 1, False),
        ("b", 1, 0.5, 1, 2, False),
        ("a", 0, None, 0, 2, False),
        ("a", 1, 0.25, 2, 2, True),
    ]
    assert tokens["delta_p"].dtype == pl.Float32


def test_order_shards_types_and_further_columns_change_nothing(given, tmp_path):
    expected = read_measurements(given())
    further = pl.lit("whatever").alias("note")
    other = TOKENS.reverse().with_columns(further, pl.col("rollout_id").cast(pl.Categorical))
    folder = given(other, RESPONSES.with_columns(further))
    (folder / "contribution.parquet").unlink()
    other[:1].write_parquet(folder / "contribution-part-1.parquet")
    other[1:].with_columns(pl.col("position").cast(pl.Int8), pl.col("delta_p").cast(pl.Float32))[
        :, ::-1
    ].write_parquet(folder / "contribution-part-0.parquet")
    for table, same in zip(read_measurements(folder), expected, strict=True):
        assert table.equals(same)


def test_the_schemas_of_the_contribution_stage_are_read():
    assert set(TOKENS.columns) <= set(CONTRIBUTION_SCHEMA.names)
    assert set(RESPONSES.columns) == set(RESPONSE_SCHEMA.names)


def changed(column, value, row=0):
    """The tokens with one value replaced."""
    values = TOKENS[column].to_list()
    values[row] = value
    return TOKENS.with_columns(pl.Series(column, values, strict=False))


REFUSED = {
    "NaN": (changed("delta_p", math.nan), "'b', position 1: delta_p=nan is neither .* 1 of 4 rows"),
    "infinite": (changed("delta_p", math.inf), "position 1: delta_p=inf is neither a finite"),
    "negative": (changed("delta_p", -0.5), "delta_p=-0.5 is neither .* correct them"),
    "twice": (
        changed("position", 0),
        "2 rows that share their rollout_id and position .*'b', .* 0;",
    ),
    "negative position": (changed("position", -1), "position -1: positions are counted from 0"),
    "negative start": (changed("char_start", -1), "characters -1 to 2 are not in its text of 2"),
    "backwards": (changed("char_end", 0), "characters 1 to 0 are not in its text of 2"),
    "outside": (changed("char_end", 3), "characters 1 to 3 are not in its text of 2 characters"),
    "no position": (changed("position", None), "holds 1 nulls in column 'position', which needs"),
    "no such response": (changed("rollout_id", "c"), "1 responses without a text, such as c"),
    "missing": (
        TOKENS.drop("char_start", "char_end"),
        r"contribution.parquet lacks the columns char_start \(int32\), char_end \(int32\); it has "
        "rollout_id, position, delta_p. Add or rename",
    ),
    "text for a number": (
        TOKENS.with_columns(position=pl.lit("first")),
        "column 'position' as .*string.*, which is not int32 .* Write it as int32",
    ),
    "half a position": (TOKENS.with_columns(position=pl.lit(0.5)), "'position' as double"),
    "no row": (TOKENS.clear(), "has no row in its contribution files; weights need"),
}


@pytest.mark.parametrize(("tokens", "message"), REFUSED.values(), ids=REFUSED)
def test_tokens_that_cannot_be_are_refused(given, tokens, message):
    with pytest.raises(DataError, match=message):
        read_measurements(given(tokens))


def test_a_response_that_is_there_twice_is_refused(given):
    with pytest.raises(DataError, match=r"2 rows that share their rollout_id with another.* 'a'"):
        read_measurements(given(responses=pl.concat([RESPONSES, RESPONSES[2:]])))


def test_a_response_without_its_list_of_special_tokens_is_refused(given):
    missing = RESPONSES.with_columns(special_positions=pl.lit(None, pl.List(pl.Int32)))
    with pytest.raises(DataError, match="3 nulls in column 'special_positions'"):
        read_measurements(given(responses=missing))


def test_files_that_are_none_are_refused(given):
    folder = given()
    (folder / "responses.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match=r"responses\.parquet is not a whole Parquet file"):
        read_measurements(folder)
    (folder / "responses.parquet").unlink()
    with pytest.raises(DataError, match=r"holds no responses\*\.parquet; give a folder"):
        read_measurements(folder)

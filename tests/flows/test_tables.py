"""Tests of the tables at the end of a run: published numbers beside measured ones."""

import io

import pytest
from rich.console import Console

from dtca_core.evaluation.summary import OWN_SETTINGS
from flows.tables import evaluation_table, published_lines

PUBLISHED = {
    "model": "LLaDA-8B-Instruct",
    "dataset": "MATH500",
    "gen_length": 128,
    "percent": 26.0,
    "source": "d1, table of baselines",
}


def summary(interval, settings=OWN_SETTINGS):
    budget = {
        "gen_length": 128,
        "steps": 64,
        "total": 500,
        "correct": 135,
        "accuracy": 0.27,
        "interval": interval,
        "truncated": 0.3,
        "no_answer": 0.05,
        "undecided": 0.002,
        "boxed": 0.9,
        "tokens_per_step": 2.0,
        "published": [PUBLISHED] if settings == OWN_SETTINGS else [],
    }
    return {
        "protocol": "d1",
        "task": "math",
        "settings": settings,
        "num_problems": 500,
        "budgets": [budget],
    }


@pytest.mark.parametrize(
    ("interval", "where"),
    [((0.23, 0.31), "inside"), ((0.1, 0.2), "above"), ((0.3, 0.4), "below")],
)
def test_a_published_number_is_placed_beside_the_measured_range(interval, where):
    assert published_lines(summary(interval)) == [
        "published: 26.0 at 128 tokens, LLaDA-8B-Instruct on MATH500 (d1, table of baselines); "
        f"{where} the range measured"
    ]


def test_at_other_settings_no_published_number_compares():
    (line,) = published_lines(summary((0.2, 0.3), "not of the protocol"))
    assert line.startswith("not the protocol's own settings")


def test_the_table_shows_counts_ranges_and_shares():
    console = Console(file=io.StringIO(), width=120)
    console.print(evaluation_table(summary((0.23, 0.31))))
    printed = console.file.getvalue()
    for part in (
        "500 problems",
        "128/64",
        "135/500",
        "27.0",
        "23.0-31.0",
        "0.2",
        "published: 26.0",
    ):
        assert part in printed

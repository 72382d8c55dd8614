"""The summary of an evaluation: an accuracy never stands without its count and interval."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dtca_core.config import Budget
from dtca_core.evaluation.answers import Examination
from dtca_core.evaluation.comparison import wilson_interval
from dtca_core.evaluation.protocols import Published, find_setup

OWN_SETTINGS = "of the protocol"
"""What a summary says of its settings where they are the protocol's own."""


def summarise(
    rows: Sequence[Mapping[str, Any]], exam: Examination, budget: Budget
) -> dict[str, Any]:
    """Return the summary of one budget from rows of `EVALUATION_SCHEMA`; there is at least one.

    Accuracies published for the protocol at this length are in it where its own settings are
    used, and only there.
    """
    total = len(rows)
    correct = sum(row["correct"] for row in rows)
    return {
        **budget.model_dump(),
        "total": total,
        "correct": correct,
        "accuracy": correct / total,
        "interval": list(wilson_interval(correct, total)),
        "truncated": sum(not row["has_ended"] for row in rows) / total,
        "no_answer": sum(row["extracted_answer"] is None for row in rows) / total,
        "undecided": sum(row["undecided"] for row in rows) / total,
        "boxed": sum(row["boxed"] for row in rows) / total,
        "tokens_per_step": sum(budget.gen_length / row["num_steps"] for row in rows) / total,
        "published": [asdict(known) for known in _published(exam, budget)],
    }


def _published(exam: Examination, budget: Budget) -> list[Published]:
    expected = find_setup(exam.protocol, exam.task).expected if exam.is_published else ()
    return [known for known in expected if known.gen_length == budget.gen_length]

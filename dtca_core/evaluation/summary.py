"""The summary of an evaluation: an accuracy never stands without its count and interval."""

from collections.abc import Mapping, Sequence
from typing import Any

from dtca_core.config import Budget
from dtca_core.evaluation.comparison import wilson_interval


def summarise(rows: Sequence[Mapping[str, Any]], budget: Budget) -> dict[str, Any]:
    """Return the summary of one budget from rows of `EVALUATION_SCHEMA`; there is at least one."""
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
        "tokens_per_step": sum(budget.gen_length / row["num_steps"] for row in rows) / total,
    }

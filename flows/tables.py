"""The tables that a person reads at the end of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from dtca_core.evaluation.comparison import PairedComparison
from dtca_core.weights import WeightArtifact


def weights_table(weights: WeightArtifact) -> Table:
    """Return category weights, heaviest first, with what they were estimated from."""
    table = Table(title=f"Category weights ({weights.tagger} tagger)", title_justify="left")
    for name in ("category", "weight", "mean delta-P", "s.e.", "tokens"):
        table.add_column(name, justify="left" if name == "category" else "right")
    ranked = sorted(weights.categories.items(), key=lambda item: (-item[1].weight, item[0]))
    for category, estimate in ranked:
        error = estimate.standard_error
        rare = " *" if estimate.count < weights.min_count else ""
        table.add_row(
            category,
            f"{estimate.weight:.3f}{rare}",
            f"{estimate.mean_delta_p:.4f}",
            "-" if error is None else f"{error:.4f}",
            str(estimate.count),
        )
    if any(estimate.count < weights.min_count for _, estimate in ranked):
        table.caption = f"* seen fewer than {weights.min_count} times: the mean weight"
    return table


def accuracy_table(
    before: Mapping[str, Any], after: Mapping[str, Any], comparisons: list[PairedComparison]
) -> Table:
    """Return accuracy before and after training at each budget, with 95 % intervals."""
    title = f"Accuracy on {after['num_problems']} problems, protocol {after['protocol']}, 95 %"
    table = Table(title=title, title_justify="left")
    for name in ("tokens", "steps", "before", "after", "difference", "p"):
        table.add_column(name, justify="right")
    for old, new, pair in zip(before["budgets"], after["budgets"], comparisons, strict=True):
        low, high = pair.interval
        table.add_row(
            str(new["gen_length"]),
            str(new["steps"]),
            _accuracy(old),
            _accuracy(new),
            f"{100 * pair.difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})",
            f"{pair.p_value:.2g}",
        )
    return table


def _accuracy(summary: Mapping[str, Any]) -> str:
    low, high = summary["interval"]
    return f"{100 * summary['accuracy']:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def size_of(path: Path) -> str:
    """Return the size of all files below a folder, in MB."""
    total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return f"{total / 1e6:.1f} MB"

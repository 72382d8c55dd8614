"""The tables that a person reads at the end of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from dtca_core.evaluation.comparison import PairedComparison
from dtca_core.weights import WeightArtifact


def weights_table(weights: WeightArtifact) -> Table:
    """Return category weights, heaviest first, with what they were estimated from."""
    table = Table(
        title=f"Category weights ({weights.tagger} tagger)", title_justify="left", box=SIMPLE_HEAD
    )
    for name in ("category", "weight", "range", "mean delta-P", "s.e.", "tokens"):
        table.add_column(name, justify="left" if name == "category" else "right")
    ranked = sorted(weights.categories.items(), key=lambda item: (-item[1].weight, item[0]))
    for category, estimate in ranked:
        error, interval = estimate.standard_error, estimate.weight_interval
        rare = " *" if estimate.count < weights.min_count else ""
        table.add_row(
            category,
            f"{estimate.weight:.3f}{rare}",
            "-" if interval is None else f"{interval[0]:.3f}-{interval[1]:.3f}",
            f"{estimate.mean_delta_p:.4f}",
            "-" if error is None else f"{error:.4f}",
            str(estimate.count),
        )
    table.caption = "range: 95 % interval over responses"
    if any(estimate.count < weights.min_count for _, estimate in ranked):
        table.caption += f"; * seen fewer than {weights.min_count} times: the mean weight"
    return table


def accuracy_table(
    before: Mapping[str, Any], after: Mapping[str, Any], comparisons: list[PairedComparison]
) -> Table:
    """Return accuracy before and after training at each budget, with 95 % intervals."""
    table = Table(
        title=f"Accuracy in % on {after['num_problems']} problems, protocol {after['protocol']}",
        title_justify="left",
        caption="budget: tokens/steps; ranges: 95 % intervals",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("budget", "before", "range", "after", "range", "change", "range", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for old, new, pair in zip(before["budgets"], after["budgets"], comparisons, strict=True):
        table.add_row(
            f"{new['gen_length']}/{new['steps']}",
            f"{100 * old['accuracy']:.1f}",
            _range(old["interval"]),
            f"{100 * new['accuracy']:.1f}",
            _range(new["interval"]),
            f"{100 * pair.difference:+.1f}",
            " ".join(f"{100 * bound:+.1f}" for bound in pair.interval),
            f"{pair.p_value:.1g}",
        )
    return table


def _range(interval: Sequence[float]) -> str:
    low, high = interval
    return f"{100 * low:.1f}-{100 * high:.1f}"


def size_of(path: Path) -> str:
    """Return the size of all files below a folder, in MB."""
    total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return f"{total / 1e6:.1f} MB"

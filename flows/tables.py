"""The tables that a person reads at the end of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from dtca_core.evaluation.comparison import PairedComparison
from dtca_core.evaluation.summary import OWN_SETTINGS
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
        caption="\n".join(
            ["budget: tokens/steps; ranges: 95 % intervals", *published_lines(after)]
        ),
        caption_justify="left",
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


def evaluation_table(summary: Mapping[str, Any]) -> Table:
    """Return what one evaluation found at each budget, with what was published for it."""
    table = Table(
        title=f"Accuracy in % on {summary['num_problems']} problems, protocol "
        f"{summary['protocol']}, {summary['task']} answers",
        title_justify="left",
        caption="\n".join(
            [
                "budget: tokens/steps; range: 95 % interval; shares of responses in %",
                *published_lines(summary),
            ]
        ),
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    shares = {
        "cut off": "truncated",
        "no answer": "no_answer",
        "undecided": "undecided",
        "boxed": "boxed",
    }
    for name in ("budget", "right", "%", "range", *shares, "t/step"):
        table.add_column(name, justify="right", no_wrap=True)
    for budget in summary["budgets"]:
        table.add_row(
            f"{budget['gen_length']}/{budget['steps']}",
            f"{budget['correct']}/{budget['total']}",
            f"{100 * budget['accuracy']:.1f}",
            _range(budget["interval"]),
            *(f"{100 * budget[share]:.1f}" for share in shares.values()),
            f"{budget['tokens_per_step']:.2f}",
        )
    return table


def published_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each published accuracy of these budgets, or why none compares."""
    if summary["settings"] != OWN_SETTINGS:
        return ["not the protocol's own settings: no published number compares"]
    return [
        f"published: {known['percent']:.1f} at {known['gen_length']} tokens, {known['model']} on "
        f"{known['dataset']} ({known['source']}); {_beside(known['percent'], budget['interval'])}"
        for budget in summary["budgets"]
        for known in budget["published"]
    ]


def _beside(percent: float, interval: Sequence[float]) -> str:
    """Return where a published accuracy lies beside the interval that was measured."""
    low, high = (100 * bound for bound in interval)
    if low <= percent <= high:
        return "inside the range measured"
    return "above the range measured" if percent > high else "below the range measured"


def _range(interval: Sequence[float]) -> str:
    low, high = interval
    return f"{100 * low:.1f}-{100 * high:.1f}"


def size_of(path: Path) -> str:
    """Return the size of all files below a folder, in MB."""
    total = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return f"{total / 1e6:.1f} MB"

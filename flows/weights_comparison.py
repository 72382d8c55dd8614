"""What `dtca weights diff` prints: two weight artifacts side by side."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from dtca_core.stages.weights import weights_file
from dtca_core.store import Artifact
from dtca_core.weights import (
    CategoryChange,
    WeightArtifact,
    WeightsComparison,
    compare_weights,
)
from tasks.references import resolve


def show_weights_comparison(before: str, after: str, console: Console) -> None:
    """Print how the second of two weight artifacts differs from the first."""
    artifacts = [resolve("weights", reference) for reference in (before, after)]
    sources = [_contribution_of(artifact) for artifact in artifacts]
    comparison = compare_weights(
        *(WeightArtifact.read(weights_file(artifact)) for artifact in artifacts),
        share_responses=sources[0] is not None and sources[0] == sources[1],
    )
    for side, artifact in zip(("before", "after"), artifacts, strict=True):
        console.print(f"{side:<6}  {artifact.path}", soft_wrap=True, markup=False)
    console.print(weights_comparison_table(comparison))
    for caveat in comparison.caveats:
        console.print(caveat, soft_wrap=True, markup=False)
    if None in sources:
        console.print(
            "A file by path does not say which responses it is from; if both are from the same, "
            "they are not independent.",
            soft_wrap=True,
        )


def _contribution_of(artifact: Artifact) -> str | None:
    """Return the content digest of what weights were estimated from; None if nobody recorded it."""
    if artifact.manifest is None:
        return None
    return artifact.manifest.inputs["contribution"].content


def weights_comparison_table(comparison: WeightsComparison) -> Table:
    """Return how each category differs between two weight artifacts, largest change first."""
    table = Table(
        title="Mean delta-P and weight per category, before and after",
        title_justify="left",
        caption="* moved by more than noise: p < 0.05, corrected for all categories; "
        "-: not listed, or too few to test",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    names = ("tokens", "after", "mean", "after", "change", "p", "weight", "after")
    table.add_column("category", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    ranked = sorted(comparison.changes, key=lambda change: -abs(change.difference or 0.0))
    for change in ranked:
        table.add_row(change.category, *_cells(change))
    return table


def _cells(change: CategoryChange) -> list[str]:
    estimates = (change.before, change.after)
    p_value = "-" if change.p_value is None else f"{change.p_value:.1g}"
    return [
        *("-" if one is None else str(one.count) for one in estimates),
        *("-" if one is None else f"{one.mean_delta_p:.4f}" for one in estimates),
        "-" if change.difference is None else f"{change.difference:+.4f}",
        f"{p_value} *" if change.has_moved else p_value,
        *("-" if one is None else f"{one.weight:.3f}" for one in estimates),
    ]

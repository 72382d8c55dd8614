"""The report: one HTML file that needs no network, no script and no other file.

The same inputs give the same bytes. What differs from run to run, as the date does, is in the
manifests of the artifacts it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dtca_core.errors import DataError
from dtca_core.evaluation.comparison import PairedComparison
from dtca_core.report.figures import (
    DotRow,
    Mark,
    Number,
    Point,
    Series,
    curve_panel,
    dot_plot,
    printable,
)
from dtca_core.weights import CategoryEstimate, WeightArtifact

LineageRow = tuple[str, str, str]
"""Input, reference of its artifact, and a note. No times: the same inputs give the same page."""

_MISSING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"
_SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """Everything that the report shows."""

    title: str
    weights: WeightArtifact
    metrics: list[dict[str, Any]]
    """Rows of `metrics.jsonl`; any metric may be missing from a row."""
    before: dict[str, Any]
    """Summary of the evaluation of the model that training began with."""
    after: dict[str, Any]
    """Summary of the evaluation of the trained model, with the same budgets."""
    comparisons: list[PairedComparison]
    """One per budget, in order."""
    examples: list[dict[str, Any]]
    """question, reference, before_text, before_correct, after_text, after_correct."""
    lineage: list[LineageRow]
    config: dict[str, Any]
    """The resolved config, of plain values."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One of the training curves."""

    title: str
    unit: str
    curves: Mapping[str, str]
    """Name in the legend, by metric."""
    reading: str
    """What it says, for someone who does not know the method."""


PANELS = (
    Panel(
        title="Reward and validation accuracy",
        unit="share of answers that are right",
        curves={"reward": "reward", "validation_accuracy": "validation accuracy"},
        reading="Reward: sampled answers to training problems. Validation accuracy: greedy answers "
        "to problems that training never sees.",
    ),
    Panel(
        title="Entropy",
        unit="nats per token",
        curves={"entropy": "entropy"},
        reading="How undecided the model is about the tokens it trains on. Towards 0 it stops "
        "exploring.",
    ),
    Panel(
        title="Rise and fall of entropy",
        unit="nats per unit of learning rate",
        curves={"entropy_rise": "rise P", "entropy_fall": "fall N"},
        reading="What an update is expected to add to and take from entropy, per response, before "
        "balancing.",
    ),
    Panel(
        title="Entropy balance",
        unit="lambda, no unit",
        curves={"lambda": "lambda"},
        reading="Above 0, falls outweigh rises, and the update favours rises; below 0 the "
        "reverse. At its limit the balance is clipped.",
    ),
    Panel(
        title="Steps selected",
        unit="denoising steps per response",
        curves={"steps_selected": "steps"},
        reading="How many steps of a response are trained on. Fewer: credit is concentrated.",
    ),
    Panel(
        title="Gradient norm",
        unit="norm before clipping",
        curves={"gradient_norm": "gradient norm"},
        reading="Size of the update's gradient. A lone spike is one odd batch; steady growth is "
        "trouble.",
    ),
    Panel(
        title="Answers missing or cut off",
        unit="share of responses",
        curves={"no_answer": "no answer found", "undecided": "undecided", "truncated": "no end"},
        reading="Responses without a readable answer, those that could not be judged within the "
        "limits, and those that fill their length without ending.",
    ),
    Panel(
        title="Groups that teach",
        unit="share of groups",
        curves={"groups_with_variance": "groups with variance"},
        reading="Prompts whose responses are not all right or all wrong. Only these give a signal.",
    ),
    Panel(
        title="Response length",
        unit="tokens",
        curves={"response_tokens": "response tokens"},
        reading="Mean tokens of a response up to its end.",
    ),
)
"""The training curves, in the order of the page; one without any value is left out."""


def render_report(inputs: ReportInputs) -> str:
    """Return the report as HTML.

    Raises DataError where the two evaluations and their comparisons are not of the same budgets.
    """
    budgets = _budgets(inputs)
    page = (
        _environment()
        .get_template("report.html.jinja")
        .render(
            title=inputs.title,
            protocol=inputs.after.get("protocol", _MISSING),
            num_problems=inputs.after.get("num_problems", 0),
            budgets=budgets,
            accuracy_figure=Markup(_accuracy_figure(budgets)),
            weights=inputs.weights,
            categories=_by_mean(inputs.weights),
            category_figure=Markup(category_figure(inputs.weights)),
            panels=_panels(inputs.metrics),
            num_updates=int(max((row["update"] for row in inputs.metrics), default=0)),
            examples=inputs.examples,
            lineage=inputs.lineage,
            config=yaml.safe_dump(inputs.config, sort_keys=False, allow_unicode=True),
        )
    )
    return printable(page)


def category_figure(weights: WeightArtifact) -> str:
    """Return the mean contribution of each category with its 95% interval, as SVG."""
    rows = [
        DotRow(
            label=name,
            marks=[_contribution(estimate, is_rare)],
            note=f"{estimate.weight:.2f}",
        )
        for name, estimate, is_rare in _by_mean(weights)
    ]
    any_rare = any(mark.is_hollow for row in rows for mark in row.marks)
    return dot_plot(
        rows,
        names=["mean, 95% interval"],
        hollow_name=f"seen less than {weights.min_count} times" if any_rare else "",
        unit="mean contribution (delta-P, summed probability)",
        title="Mean contribution of each token category",
        note_title="weight",
    )


def _contribution(estimate: CategoryEstimate, is_rare: bool) -> Mark:
    """Return a mean with its interval over responses; none where a person left it out."""
    interval = estimate.mean_interval
    low, high = (None, None) if interval is None else interval
    return Mark(value=estimate.mean_delta_p, low=low, high=high, is_hollow=is_rare)


def _by_mean(weights: WeightArtifact) -> list[tuple[str, Any, bool]]:
    """Return name, estimate and whether it is rare, of each category, largest mean first."""
    ordered = sorted(weights.categories.items(), key=lambda item: (-item[1].mean_delta_p, item[0]))
    return [(name, estimate, estimate.count < weights.min_count) for name, estimate in ordered]


def _budgets(inputs: ReportInputs) -> list[dict[str, Any]]:
    """Return label, before, after and comparison of each budget."""
    before, after = inputs.before["budgets"], inputs.after["budgets"]
    labels = [[_label(one) for one in side] for side in (before, after)]
    if labels[0] != labels[1] or len(inputs.comparisons) != len(before):
        raise DataError(
            f"evaluations of {labels[0]} and of {labels[1]} with {len(inputs.comparisons)} "
            "comparisons cannot be set side by side; evaluate both models with the same budgets."
        )
    keys = ("label", "before", "after", "comparison")
    columns = zip(labels[0], before, after, inputs.comparisons, strict=True)
    return [dict(zip(keys, column, strict=True)) for column in columns]


def _label(budget: Mapping[str, Any]) -> str:
    return f"{budget['gen_length']} tokens, {budget['steps']} steps"


def _accuracy_figure(budgets: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        DotRow(
            label=budget["label"],
            marks=[_accuracy(budget["before"]), _accuracy(budget["after"])],
            note=_points_of(budget["comparison"].difference),
        )
        for budget in budgets
    ]
    return dot_plot(
        rows,
        names=["before training", "after training"],
        unit="accuracy (%), with 95% interval",
        title="Accuracy before and after training, in percent",
        note_title="points",
    )


def _accuracy(summary: Mapping[str, Any]) -> Mark:
    low, high = summary["interval"]
    return Mark(value=100.0 * summary["accuracy"], low=100.0 * low, high=100.0 * high)


def _panels(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the curves that have values, drawn over the same updates."""
    updates = [float(row["update"]) for row in metrics]
    extent = (min(updates, default=0.0), max(updates, default=0.0))
    drawn: list[dict[str, Any]] = []
    for panel in PANELS:
        series = [_series(metrics, metric, name) for metric, name in panel.curves.items()]
        if any(one.points for one in series):
            svg = curve_panel(series, extent=extent, unit=panel.unit, title=panel.title)
            drawn.append({"panel": panel, "svg": Markup(svg)})
    return drawn


def _series(metrics: Sequence[Mapping[str, Any]], metric: str, name: str) -> Series:
    points: list[Point] = [
        (float(row["update"]), float(row[metric]))
        for row in metrics
        if row.get(metric) is not None and isfinite(row[metric])
    ]
    return Series(name=name, points=points, is_smoothed=metric != "validation_accuracy")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dtca_core.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "percent": _percent,
        "percents": _percents,
        "points": _points_of,
        "number": _number,
        "count": _count,
        "p_value": _p_value,
        "verdict": _verdict,
    }
    cast(dict[str, Callable[..., str]], environment.filters).update(filters)
    return environment


def _percent(share: Number | None) -> str:
    return _MISSING if share is None or not isfinite(share) else f"{100 * share:.1f}%"


def _percents(shares: Sequence[Number]) -> str:
    low, high = shares
    return f"{100 * low:.1f} to {100 * high:.1f}%"


def _points_of(difference: Number) -> str:
    """Return a difference of shares in points, with its sign."""
    text = f"{100 * difference:+.1f}".replace("-", _MINUS)
    return "0.0" if text[1:] == "0.0" else text


def _number(value: Number | None, decimals: int) -> str:
    if value is None or not isfinite(value):
        return _MISSING
    return f"{value:,.{decimals}f}".replace("-", _MINUS)


def _count(value: int) -> str:
    return f"{value:,}"


def _p_value(p: Number) -> str:
    if p < 0.001:
        return "< 0.001"
    return f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def _verdict(comparison: PairedComparison) -> str:
    """Return what the exact test allows to say."""
    if comparison.total == 0:
        return "Nothing was compared."
    if comparison.p_value >= _SIGNIFICANT:
        return "Chance alone could explain this difference."
    change = "better" if comparison.difference > 0 else "worse"
    return f"Training made the model {change}, beyond what chance explains."

"""Report: one self-contained HTML page of what came out and where it came from."""

import json
from pathlib import Path
from typing import Any

from dtca_core.config import Budget, Settings
from dtca_core.data.problems import read_split
from dtca_core.evaluation.comparison import PairedComparison, paired_test
from dtca_core.report.page import LineageRow, ReportInputs, render_report
from dtca_core.stages.evaluate import SUMMARY_FILE, read_results
from dtca_core.stages.prepare import PROBLEMS_FILE
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.stages.weights import weights_file
from dtca_core.store import Artifact
from dtca_core.training.metrics import read_metrics
from dtca_core.weights import WeightArtifact

REPORT_FILE = "report.html"


class ReportConfig(Settings):
    """The report has nothing to set."""


def build(context: StageContext) -> Counts:
    """Write report.html."""
    inputs = context.inputs
    before, after = read_summary(inputs["before"]), read_summary(inputs["after"])
    page = render_report(
        ReportInputs(
            title="DTCA report",
            weights=WeightArtifact.read(weights_file(inputs["weights"])),
            metrics=read_metrics(inputs["checkpoint"].path / "metrics.jsonl"),
            before=before,
            after=after,
            comparisons=[
                compare(inputs["before"].path, inputs["after"].path, budget)
                for budget in budgets(after)
            ],
            examples=_examples(inputs, budgets(after)[-1]),
            lineage=[_lineage(name, artifact) for name, artifact in inputs.items()],
            config={name: _config(artifact) for name, artifact in inputs.items()},
        )
    )
    (context.folder / REPORT_FILE).write_text(page, encoding="utf-8")
    context.listener.progress(1, 1, "pages")
    return {}


def read_summary(artifact: Artifact) -> dict[str, Any]:
    """Return the summary of an evaluation artifact."""
    return json.loads((artifact.path / SUMMARY_FILE).read_text(encoding="utf-8"))


def budgets(summary: dict[str, Any]) -> list[Budget]:
    """Return the budgets of an evaluation, in order."""
    return [
        Budget(gen_length=entry["gen_length"], steps=entry["steps"]) for entry in summary["budgets"]
    ]


def compare(before: Path, after: Path, budget: Budget) -> PairedComparison:
    """Return the comparison of two evaluations of the same problems, problem by problem."""
    first = {row["problem_id"]: row["correct"] for row in read_results(before, budget)}
    second = {row["problem_id"]: row["correct"] for row in read_results(after, budget)}
    return paired_test([first[name] for name in second], list(second.values()))


def _examples(inputs: Any, budget: Budget, count: int = 6) -> list[dict[str, Any]]:
    """Return a few problems with both responses, those that training changed first."""
    problems = read_split(inputs["dataset"].path / PROBLEMS_FILE, "test")
    before = {row["problem_id"]: row for row in read_results(inputs["before"].path, budget)}
    after = {row["problem_id"]: row for row in read_results(inputs["after"].path, budget)}
    rows = [
        {
            "question": problem.question,
            "reference": problem.answer,
            "before_text": before[problem.problem_id]["response_text"],
            "before_correct": before[problem.problem_id]["correct"],
            "after_text": after[problem.problem_id]["response_text"],
            "after_correct": after[problem.problem_id]["correct"],
        }
        for problem in problems
    ]
    gained = [row for row in rows if row["after_correct"] and not row["before_correct"]]
    lost = [row for row in rows if row["before_correct"] and not row["after_correct"]]
    return (gained[: count - 2] + lost[:2] + rows)[:count]


def _lineage(name: str, artifact: Artifact) -> LineageRow:
    """Return an input with its counts; what it took is not told, for that differs between runs."""
    if artifact.manifest is None:
        return name, artifact.reference, "given by path"
    counts = [f"{count:.4g} {what}" for what, count in artifact.manifest.counts.items()]
    return name, artifact.reference, ", ".join(counts).replace("_", " ")


def _config(artifact: Artifact) -> dict[str, Any]:
    return artifact.manifest.config if artifact.manifest else {}


REPORT = StageSpec(
    name="report",
    kind="report",
    version=2,
    config=ReportConfig,
    inputs=("dataset", "weights", "checkpoint", "before", "after"),
    needs_model=False,
    build=build,
)

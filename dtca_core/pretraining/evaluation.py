"""What a freshly made model can do: greedy accuracy on test problems, by budget and by kind."""

from collections.abc import Sequence
from typing import Any

from dtca_core.config import Budget, EvaluateConfig
from dtca_core.data.problems import Problem
from dtca_core.evaluation.answers import Examination, answers_at, examination
from dtca_core.evaluation.comparison import wilson_interval
from dtca_core.models import MaskPredictor


def evaluate_model(
    predictor: MaskPredictor, problems: Sequence[Problem], config: EvaluateConfig
) -> list[dict[str, Any]]:
    """Return accuracy, count, interval and accuracy by kind of problem, for each budget."""
    exam = examination(config, problems)
    return [_evaluate_at(predictor, problems, exam, budget, config) for budget in exam.budgets]


def _evaluate_at(
    predictor: MaskPredictor,
    problems: Sequence[Problem],
    exam: Examination,
    budget: Budget,
    config: EvaluateConfig,
) -> dict[str, Any]:
    rollouts = answers_at(predictor, problems, exam, budget, config)
    by_kind: dict[str, list[bool]] = {}
    for problem, score in zip(rollouts.problems, rollouts.scores, strict=True):
        by_kind.setdefault(problem.kind, []).append(score.correct)
    correct = sum(score.correct for score in rollouts.scores)
    return {
        **budget.model_dump(),
        "total": len(problems),
        "correct": correct,
        "accuracy": correct / len(problems),
        "interval": list(wilson_interval(correct, len(problems))),
        "by_kind": {kind: sum(right) / len(right) for kind, right in sorted(by_kind.items())},
    }

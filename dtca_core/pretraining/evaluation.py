"""What a freshly made model can do: greedy accuracy on test problems, by budget and by kind."""

from collections.abc import Sequence
from typing import Any

from dtca_core.config import Budget, EvaluateConfig
from dtca_core.data.problems import Problem
from dtca_core.evaluation.comparison import wilson_interval
from dtca_core.models import MaskPredictor
from dtca_core.rollouts import roll_out


def evaluate_model(
    predictor: MaskPredictor, problems: Sequence[Problem], config: EvaluateConfig
) -> list[dict[str, Any]]:
    """Return accuracy, count, interval and accuracy by kind of problem, for each budget."""
    return [_evaluate_at(predictor, problems, config, budget) for budget in config.budgets]


def _evaluate_at(
    predictor: MaskPredictor, problems: Sequence[Problem], config: EvaluateConfig, budget: Budget
) -> dict[str, Any]:
    rollouts = roll_out(
        predictor,
        problems,
        config.sampler_at(budget),
        num_samples=1,
        protocol=config.protocol,
        seed=config.seed,
        purpose="evaluation",
        batch_size=config.batch_size,
    )
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

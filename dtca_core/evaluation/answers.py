"""Answers at a budget: the one way in which problems are put to a model to evaluate it."""

from collections.abc import Sequence

from dtca_core.config import Budget, EvaluateConfig
from dtca_core.data.problems import Problem
from dtca_core.models import MaskPredictor
from dtca_core.rollouts import RolloutBatch, roll_out


def answers_at(
    predictor: MaskPredictor, problems: Sequence[Problem], config: EvaluateConfig, budget: Budget
) -> RolloutBatch:
    """Return one response to each problem, denoised at a budget, with its score."""
    return roll_out(
        predictor,
        problems,
        config.sampler_at(budget),
        num_samples=1,
        protocol=config.protocol,
        seed=config.seed,
        purpose="evaluation",
        batch_size=config.batch_size,
    )

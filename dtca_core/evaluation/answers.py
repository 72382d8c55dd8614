"""Answers at a budget: the one way in which problems are put to a model to evaluate it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dtca_core.config import Budget, EvaluateConfig, SamplerConfig
from dtca_core.data.problems import Problem
from dtca_core.evaluation.protocols import Task, find_setup, task_of
from dtca_core.models import MaskPredictor
from dtca_core.rollouts import RolloutBatch, roll_out


@dataclass(frozen=True, kw_only=True)
class Examination:
    """How a data set is put to a model: a protocol, and at which settings."""

    protocol: str
    task: Task
    sampler: SamplerConfig
    budgets: tuple[Budget, ...]
    is_published: bool
    """Whether the settings are the protocol's own, so that published numbers compare."""


def examination(config: EvaluateConfig, problems: Sequence[Problem]) -> Examination:
    """Return how these problems, a whole split, are put to a model."""
    task = task_of([problem.answer for problem in problems])
    setup = find_setup(config.protocol, task)
    sampler, budgets = config.sampler or setup.sampler, config.budgets or setup.budgets
    own = {budget: setup.sampler.at(budget) for budget in setup.budgets}
    return Examination(
        protocol=config.protocol,
        task=task,
        sampler=sampler,
        budgets=budgets,
        is_published=all(own.get(budget) == sampler.at(budget) for budget in budgets),
    )


def answers_at(
    predictor: MaskPredictor,
    problems: Sequence[Problem],
    exam: Examination,
    budget: Budget,
    config: EvaluateConfig,
) -> RolloutBatch:
    """Return one response to each problem, denoised at a budget, with its score."""
    return roll_out(
        predictor,
        problems,
        exam.sampler.at(budget),
        num_samples=1,
        protocol=exam.protocol,
        task=exam.task,
        seed=config.seed,
        purpose="evaluation",
        batch_size=config.batch_size,
    )

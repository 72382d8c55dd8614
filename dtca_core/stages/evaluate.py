"""Evaluate: accuracy on the evaluation problems at several budgets, under a named protocol."""

from typing import Any

import pyarrow as pa

from dtca_core.config import Budget, EvaluateConfig
from dtca_core.data.problems import read_split
from dtca_core.evaluation.answers import answers_at, examination
from dtca_core.evaluation.summary import OWN_SETTINGS, summarise
from dtca_core.models import load_predictor
from dtca_core.records import EVALUATION_SCHEMA
from dtca_core.rollouts import RolloutBatch
from dtca_core.stages.prepare import PROBLEMS_FILE
from dtca_core.stages.shards import build_shards, shard_paths
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import read_table, table_from_rows, write_json

SUMMARY_FILE = "summary.json"


def stem(budget: Budget) -> str:
    """Return the beginning of the names of a budget's shards."""
    return f"results-{budget.gen_length}x{budget.steps}"


def build(context: StageContext) -> Counts:
    """Write one row per problem and budget, and the summary of each budget."""
    config: EvaluateConfig = context.config
    problems = read_split(context.inputs["dataset"].path / PROBLEMS_FILE, "test")
    model = context.model_config
    predictor = load_predictor(model.source, device=model.device, dtype=model.dtype)
    exam = examination(config, problems)
    total = len(problems) * len(exam.budgets)
    for done, budget in enumerate(exam.budgets):
        before = done * len(problems)
        build_shards(
            context.folder,
            stem(budget),
            len(problems),
            config.shard_size,
            lambda first, end, budget=budget: _table(
                answers_at(predictor, problems[first:end], exam, budget, config), budget
            ),
            lambda end, before=before: context.listener.progress(before + end, total, "answers"),
        )
    summaries = [
        summarise(read_results(context.folder, budget), exam, budget) for budget in exam.budgets
    ]
    summary = {
        "protocol": exam.protocol,
        "task": exam.task,
        "sampler": exam.sampler.model_dump(exclude={"gen_length", "steps"}),
        "settings": OWN_SETTINGS if exam.is_published else "not of the protocol",
        "num_problems": len(problems),
        "budgets": summaries,
    }
    write_json(context.folder / SUMMARY_FILE, summary)
    return {f"accuracy_{s['gen_length']}x{s['steps']}": s["accuracy"] for s in summaries}


def read_results(folder: Any, budget: Budget) -> list[dict[str, Any]]:
    """Return the rows of one budget, in the order of the problems."""
    return read_table(shard_paths(folder, stem(budget)), EVALUATION_SCHEMA).to_pylist()


def _table(rollouts: RolloutBatch, budget: Budget) -> pa.Table:
    return table_from_rows(_rows(rollouts, budget), EVALUATION_SCHEMA)


def _rows(rollouts: RolloutBatch, budget: Budget) -> list[dict[str, Any]]:
    trajectories = rollouts.trajectories
    return [
        {
            "problem_id": problem.problem_id,
            "gen_length": budget.gen_length,
            "steps": budget.steps,
            "correct": score.correct,
            "undecided": score.undecided,
            "boxed": score.boxed,
            "extracted_answer": score.extracted,
            "reason": score.reason,
            "response_text": rollouts.texts[b],
            "num_response_tokens": int(trajectories.num_response_tokens[b]),
            "has_ended": rollouts.has_ended[b],
            "num_steps": int(trajectories.num_steps[b]),
        }
        for b, (problem, score) in enumerate(zip(rollouts.problems, rollouts.scores, strict=True))
    ]


EVALUATE = StageSpec(
    name="evaluate",
    kind="evaluation",
    version=2,
    config=EvaluateConfig,
    inputs=("dataset",),
    needs_model=True,
    build=build,
)

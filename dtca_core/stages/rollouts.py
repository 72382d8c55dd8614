"""Rollouts: responses to training problems, with the record of how each was denoised."""

from typing import Any

import pyarrow as pa

from dtca_core.config import RolloutsConfig
from dtca_core.data.problems import read_split
from dtca_core.errors import DataError
from dtca_core.evaluation.protocols import task_of
from dtca_core.models import load_predictor
from dtca_core.records import ROLLOUT_SCHEMA
from dtca_core.rollouts import roll_out, rollout_rows
from dtca_core.stages.prepare import PROBLEMS_FILE
from dtca_core.stages.shards import build_shards, shard_paths
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import read_table, table_from_rows

STEM = "rollouts"


def build(context: StageContext) -> Counts:
    """Write one shard of trajectories per `shard_size` problems."""
    config: RolloutsConfig = context.config
    problems = read_split(context.inputs["dataset"].path / PROBLEMS_FILE, "train")
    if len(problems) < config.num_prompts:
        raise DataError(
            f"the dataset has {len(problems)} training problems, rollouts.num_prompts is "
            f"{config.num_prompts}; lower it or prepare more problems."
        )
    task = task_of([problem.answer for problem in problems])
    model = context.model_config
    predictor = load_predictor(model.source, device=model.device, dtype=model.dtype)
    num_positions = config.num_prompts * config.num_samples * config.sampler.gen_length
    decided = 0

    def on_positions(count: int) -> None:
        nonlocal decided
        decided += count
        context.listener.progress(decided, num_positions, "tokens")

    def on_done(end: int) -> None:
        nonlocal decided
        decided = end * config.num_samples * config.sampler.gen_length
        context.listener.progress(decided, num_positions, "tokens")

    def shard(first: int, end: int) -> pa.Table:
        rollouts = roll_out(
            predictor,
            problems[first:end],
            config.sampler,
            num_samples=config.num_samples,
            protocol=config.protocol,
            task=task,
            seed=config.seed,
            purpose="rollouts",
            batch_size=config.batch_size,
            progress=on_positions,
        )
        return table_from_rows(rollout_rows(rollouts, predictor.tokenizer), ROLLOUT_SCHEMA)

    build_shards(context.folder, STEM, config.num_prompts, config.shard_size, shard, on_done)
    written = read_table(shard_paths(context.folder, STEM), ROLLOUT_SCHEMA)
    rewards: list[Any] = written["reward"].to_pylist()
    return {"rollouts": len(rewards), "mean_reward": sum(rewards) / len(rewards)}


ROLLOUTS = StageSpec(
    name="rollouts",
    kind="rollouts",
    version=2,
    config=RolloutsConfig,
    inputs=("dataset",),
    needs_model=True,
    build=build,
)

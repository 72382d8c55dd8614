"""Contribution: delta-P of every committed token of the rollouts, by the model that made them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from jaxtyping import Float, Int
from torch import Tensor

from dtca_core.categories import is_special, token_spans
from dtca_core.config import ContributionConfig
from dtca_core.contribution import contributions, num_masked_after
from dtca_core.models import load_predictor
from dtca_core.records import (
    CONTRIBUTION_SCHEMA,
    CONTRIBUTION_STEM,
    RESPONSE_SCHEMA,
    RESPONSE_STEM,
    ROLLOUT_SCHEMA,
    TrajectoryBatch,
)
from dtca_core.rollouts import trajectories_of
from dtca_core.stages import rollouts as rollouts_stage
from dtca_core.stages.shards import build_shards, shard_paths
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import read_table, table_from_rows

STEM = CONTRIBUTION_STEM
RESPONSES_STEM = RESPONSE_STEM


def build(context: StageContext) -> Counts:
    """Write one shard of contributions per `shard_size` responses, and the responses' texts."""
    config: ContributionConfig = context.config
    source = shard_paths(context.inputs["rollouts"].path, rollouts_stage.STEM)
    rows = read_table(source, ROLLOUT_SCHEMA).to_pylist()
    model = context.model_config
    predictor = load_predictor(model.source, device=model.device, dtype=model.dtype)
    tokenizer = predictor.tokenizer

    def shard(first: int, end: int) -> pa.Table:
        part = rows[first:end]
        trajectories = trajectories_of(part)
        prompts = [row["prompt_ids"] for row in part]
        delta_p = contributions(predictor, prompts, trajectories, config)
        return table_from_rows(_rows(part, trajectories, delta_p, tokenizer), CONTRIBUTION_SCHEMA)

    def responses(first: int, end: int) -> pa.Table:
        return table_from_rows(
            [_response(row, tokenizer) for row in rows[first:end]], RESPONSE_SCHEMA
        )

    def on_done(end: int) -> None:
        context.listener.progress(end, len(rows), "responses")

    build_shards(
        context.folder, RESPONSES_STEM, len(rows), config.shard_size, responses, lambda _: None
    )
    build_shards(context.folder, STEM, len(rows), config.shard_size, shard, on_done)
    column = read_table(shard_paths(context.folder, STEM), CONTRIBUTION_SCHEMA)["delta_p"]
    return {
        "responses": len(rows),
        "tokens": len(column),
        "tokens_with_delta_p": len(column) - column.null_count,
    }


def _rows(
    rollouts: Sequence[Mapping[str, Any]],
    trajectories: TrajectoryBatch,
    delta_p: Float[Tensor, "B L"],
    tokenizer: Any,
) -> list[dict[str, Any]]:
    """Return one row of `CONTRIBUTION_SCHEMA` per token of each response."""
    remaining: Int[Tensor, "B L"] = num_masked_after(trajectories)
    result: list[dict[str, Any]] = []
    for b, rollout in enumerate(rollouts):
        ids = rollout["response_ids"][: rollout["num_response_tokens"]]
        _, spans = token_spans(tokenizer, ids)
        for i, (token, (start, end)) in enumerate(zip(ids, spans, strict=True)):
            value = float(delta_p[b, i])
            result.append(
                {
                    "rollout_id": rollout["rollout_id"],
                    "position": i,
                    "step": rollout["commit_step"][i],
                    "token_id": token,
                    "confidence": rollout["commit_confidence"][i],
                    "delta_p": None if math.isnan(value) else value,
                    "num_masked_after": int(remaining[b, i]),
                    "char_start": start,
                    "char_end": end,
                }
            )
    return result


def _response(rollout: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    special = is_special(tokenizer, rollout["response_ids"][: rollout["num_response_tokens"]])
    return {
        "rollout_id": rollout["rollout_id"],
        "response_text": rollout["response_text"],
        "special_positions": [i for i, yes in enumerate(special) if yes],
    }


CONTRIBUTION = StageSpec(
    name="contribution",
    kind="contribution",
    version=1,
    config=ContributionConfig,
    inputs=("rollouts",),
    needs_model=True,
    build=build,
)

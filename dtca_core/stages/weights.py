"""Weights: mean contribution and weight of each part of speech. Needs no model and no GPU."""

from itertools import groupby
from pathlib import Path
from typing import Any

from dtca_core.categories import load_tagger, token_categories
from dtca_core.config import WeightsConfig
from dtca_core.errors import DataError
from dtca_core.records import CONTRIBUTION_SCHEMA, RESPONSE_SCHEMA, TAGGED_SCHEMA
from dtca_core.stages import contribution as contribution_stage
from dtca_core.stages.shards import shard_paths
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import Artifact, read_table, table_from_rows, write_table
from dtca_core.weights import estimate_weights

WEIGHTS_FILE = "weights.json"
TOKENS_FILE = "tokens.parquet"


def weights_file(artifact: Artifact) -> Path:
    """Return the weights.json of an artifact, which may be that file itself."""
    return artifact.path if artifact.path.is_file() else artifact.path / WEIGHTS_FILE


def build(context: StageContext) -> Counts:
    """Write weights.json and the tagged tokens that it was averaged from."""
    config: WeightsConfig = context.config
    folder = context.inputs["contribution"].path
    tokens = _read(folder, contribution_stage.STEM, CONTRIBUTION_SCHEMA)
    responses = _read(folder, contribution_stage.RESPONSES_STEM, RESPONSE_SCHEMA)
    tagger = load_tagger(config.tagger)
    by_response = {
        name: list(rows) for name, rows in groupby(tokens, key=lambda row: row["rollout_id"])
    }
    unknown = by_response.keys() - {row["rollout_id"] for row in responses}
    if unknown:
        raise DataError(
            f"{folder} has contributions of {len(unknown)} responses without a text, such as "
            f"{min(unknown)}; the artifact mixes two runs, measure contributions again."
        )
    responses = [row for row in responses if row["rollout_id"] in by_response]
    categories = token_categories(
        tagger,
        [row["response_text"] for row in responses],
        [_spans(by_response[row["rollout_id"]]) for row in responses],
        [
            _special(by_response[row["rollout_id"]], set(row["special_positions"]))
            for row in responses
        ],
    )
    rows: list[dict[str, Any]] = [
        {
            "rollout_id": token["rollout_id"],
            "position": token["position"],
            "category": category,
            "delta_p": token["delta_p"],
        }
        for response, names in zip(responses, categories, strict=True)
        for token, category in zip(by_response[response["rollout_id"]], names, strict=True)
    ]
    estimate = estimate_weights(
        [row["delta_p"] for row in rows], [row["category"] for row in rows], config, tagger
    )
    write_table(context.folder / TOKENS_FILE, table_from_rows(rows, TAGGED_SCHEMA))
    estimate.write(context.folder / WEIGHTS_FILE)
    context.listener.progress(len(rows), len(rows), "tokens")
    return {"tokens": len(rows), "categories": len(estimate.categories)}


def _read(folder: Path, stem: str, schema: Any) -> list[dict[str, Any]]:
    paths = shard_paths(folder, stem)
    if not paths:
        raise DataError(
            f"{folder} holds no {stem}-*.parquet; give a folder that the contribution stage wrote."
        )
    return read_table(paths, schema).to_pylist()


def _spans(tokens: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(token["char_start"], token["char_end"]) for token in tokens]


def _special(tokens: list[dict[str, Any]], positions: set[int]) -> list[bool]:
    return [token["position"] in positions for token in tokens]


WEIGHTS = StageSpec(
    name="weights",
    kind="weights",
    version=1,
    config=WeightsConfig,
    inputs=("contribution",),
    needs_model=False,
    build=build,
)

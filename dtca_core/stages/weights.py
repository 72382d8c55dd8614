"""Weights: mean contribution and weight of each part of speech. Needs no model and no GPU."""

from itertools import chain
from pathlib import Path

import polars as pl
import pyarrow as pa

from dtca_core.categories import Tagger, load_tagger, token_categories
from dtca_core.config import WeightsConfig
from dtca_core.records import TAGGED_SCHEMA
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.store import Artifact, write_table
from dtca_core.weights import estimate_weights
from dtca_core.weights.measurements import read_measurements

WEIGHTS_FILE = "weights.json"
TOKENS_FILE = "tokens.parquet"


def weights_file(artifact: Artifact) -> Path:
    """Return the weights.json of an artifact, which may be that file itself."""
    return artifact.path if artifact.path.is_file() else artifact.path / WEIGHTS_FILE


def build(context: StageContext) -> Counts:
    """Write weights.json and the tagged tokens that it was averaged from."""
    config: WeightsConfig = context.config
    tokens, responses = read_measurements(context.inputs["contribution"].path)
    tagger = load_tagger(config.tagger)
    tagged = tokens.with_columns(category=pl.Series(_categories(tagger, tokens, responses)))
    estimate = estimate_weights(
        tagged["delta_p"], tagged["category"], tagged["rollout_id"], config, tagger
    )
    columns = {
        field.name: tagged[field.name].to_arrow().cast(field.type) for field in TAGGED_SCHEMA
    }
    write_table(context.folder / TOKENS_FILE, pa.table(columns, schema=TAGGED_SCHEMA))
    estimate.write(context.folder / WEIGHTS_FILE)
    context.listener.progress(len(tagged), len(tagged), "tokens")
    return {
        "tokens": len(tagged),
        "responses": len(responses),
        "categories": len(estimate.categories),
    }


def _categories(tagger: Tagger, tokens: pl.DataFrame, responses: pl.DataFrame) -> list[str]:
    """Return the category of each token; both tables are in the order of the responses."""
    spans, special = [], []
    for _, rows in tokens.group_by("rollout_id", maintain_order=True):
        spans.append(list(zip(rows["char_start"], rows["char_end"], strict=True)))
        special.append(rows["is_special"].to_list())
    texts = responses["response_text"].to_list()
    return list(chain.from_iterable(token_categories(tagger, texts, spans, special)))


WEIGHTS = StageSpec(
    name="weights",
    kind="weights",
    version=2,
    config=WeightsConfig,
    inputs=("contribution",),
    needs_model=False,
    build=build,
)

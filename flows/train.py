"""The flow `dtca-train`."""

from prefect import flow

from dtca_core.config import ModelConfig, TrainConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-train", flow_run_name="train")
def train(
    config: TrainConfig = TrainConfig(),
    model: ModelConfig = ModelConfig(),
    dataset: str = "latest",
    weights: str = "latest",
    refresh: bool = False,
) -> ArtifactRef:
    """Train the model with per-token credit, in a process of its own.

    Args:
        config: the run.
        model: the model to start from.
        dataset: which dataset artifact: latest, a key or its beginning, or a path.
        weights: which weights artifact, or the path of a weights.json.
        refresh: train again even if the store holds the checkpoint.
    """
    inputs = {"dataset": pin("dataset", dataset), "weights": pin("weights", weights)}
    return build_stage("train", "train", config, inputs, model, refresh=refresh)

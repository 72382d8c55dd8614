"""The flow `dtca-rollouts`."""

from prefect import flow

from dtca_core.config import ModelConfig, RolloutsConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-rollouts", flow_run_name="rollouts")
def rollouts(
    config: RolloutsConfig = RolloutsConfig(),
    model: ModelConfig = ModelConfig(),
    dataset: str = "latest",
    refresh: bool = False,
) -> ArtifactRef:
    """Sample responses to training problems and record how each was denoised.

    Args:
        config: how many, and how they are denoised.
        model: the model to sample from.
        dataset: which dataset artifact: latest, a key or its beginning, or a path.
        refresh: sample again even if the store holds them.
    """
    inputs = {"dataset": pin("dataset", dataset)}
    return build_stage("rollouts", "rollouts", config, inputs, model, refresh=refresh)

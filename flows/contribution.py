"""The flow `dtca-contribution`."""

from prefect import flow

from dtca_core.config import ContributionConfig, ModelConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-contribution", flow_run_name="contribution")
def contribution(
    config: ContributionConfig = ContributionConfig(),
    model: ModelConfig = ModelConfig(),
    rollouts: str = "latest",
    refresh: bool = False,
) -> ArtifactRef:
    """Measure how much each committed token raised confidence in what was still masked.

    Args:
        config: how it is measured.
        model: the model that made the rollouts.
        rollouts: which rollouts artifact: latest, a key or its beginning, or a path.
        refresh: measure again even if the store holds it.
    """
    inputs = {"rollouts": pin("rollouts", rollouts)}
    return build_stage("contribution", "contribution", config, inputs, model, refresh=refresh)

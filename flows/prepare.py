"""The flow `dtca-prepare`."""

from prefect import flow

from dtca_core.config import DataConfig
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-prepare", flow_run_name="prepare")
def prepare(config: DataConfig = DataConfig(), refresh: bool = False) -> ArtifactRef:
    """Make the problems to train, validate and evaluate on.

    Args:
        config: which problems.
        refresh: make them again even if the store holds them.
    """
    return build_stage("prepare", "prepare", config, {}, refresh=refresh)

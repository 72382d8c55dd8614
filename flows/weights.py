"""The flow `dtca-weights`."""

from prefect import flow

from dtca_core.config import WeightsConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-weights", flow_run_name="weights")
def weights(
    config: WeightsConfig = WeightsConfig(),
    contribution: str = "latest",
    refresh: bool = False,
) -> ArtifactRef:
    """Estimate category weights from recorded contributions; needs no model and no GPU.

    Args:
        config: tagger, scale and bounds.
        contribution: which contribution artifact: latest, a key or its beginning, or a path.
        refresh: estimate again even if the store holds them.
    """
    inputs = {"contribution": pin("contribution", contribution)}
    return build_stage("weights", "weights", config, inputs, refresh=refresh)

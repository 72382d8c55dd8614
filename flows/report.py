"""The flow `dtca-report`."""

from prefect import flow

from dtca_core.stages.report import ReportConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-report", flow_run_name="report")
def report(
    before: str,
    after: str = "latest",
    dataset: str = "latest",
    weights: str = "latest",
    checkpoint: str = "latest",
    refresh: bool = False,
) -> ArtifactRef:
    """Write one HTML page of what came out.

    Args:
        before: which evaluation artifact is that of the base model.
        after: which evaluation artifact is that of the trained model.
        dataset: which dataset artifact both were evaluated on.
        weights: which weights artifact was trained with.
        checkpoint: which checkpoint artifact was evaluated.
        refresh: write it again even if the store holds it.
    """
    inputs = {
        "dataset": pin("dataset", dataset),
        "weights": pin("weights", weights),
        "checkpoint": pin("checkpoint", checkpoint),
        "before": pin("evaluation", before),
        "after": pin("evaluation", after),
    }
    return build_stage("report", "report", ReportConfig(), inputs, refresh=refresh)

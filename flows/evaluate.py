"""The flow `dtca-evaluate`."""

from prefect import flow

from dtca_core.config import EvaluateConfig, ModelConfig
from flows.start import pin
from tasks.references import ArtifactRef
from tasks.stages import build_stage


@flow(name="dtca-evaluate", flow_run_name="evaluate")
def evaluate(
    config: EvaluateConfig = EvaluateConfig(),
    model: ModelConfig = ModelConfig(),
    dataset: str = "latest",
    checkpoint: str | None = None,
    refresh: bool = False,
) -> ArtifactRef:
    """Measure accuracy on the evaluation problems at several budgets.

    Args:
        config: protocol, sampler and budgets.
        model: the model to evaluate, and its device and type in any case.
        dataset: which dataset artifact: latest, a key or its beginning, or a path.
        checkpoint: a checkpoint artifact to evaluate instead: latest, a key or a path.
        refresh: evaluate again even if the store holds it.
    """
    inputs = {"dataset": pin("dataset", dataset)}
    trained = None if checkpoint is None else pin("checkpoint", checkpoint)[1]
    name = "evaluate-base" if trained is None else "evaluate"
    return build_stage(name, "evaluate", config, inputs, model, trained, refresh)

"""The flow `dtca`: every stage, in order, each the same flow that runs alone."""

from prefect import flow

from dtca_core.config import PipelineConfig
from dtca_core.stages.pipeline import check
from flows.contribution import contribution
from flows.evaluate import evaluate
from flows.prepare import prepare
from flows.report import report
from flows.rollouts import rollouts
from flows.train import train
from flows.weights import weights
from tasks.references import ArtifactRef


@flow(name="dtca", flow_run_name="full-pipeline")
def pipeline(config: PipelineConfig = PipelineConfig()) -> dict[str, ArtifactRef]:
    """Run the whole pipeline; whatever the store holds already is not done again.

    Args:
        config: one section per stage, and the model that they share.
    """
    check(config)
    model = config.model
    dataset = prepare(config.data)
    sampled = rollouts(config.rollouts, model, dataset.key)
    measured = contribution(config.contribution, model, sampled.key)
    weighed = weights(config.weights, measured.key)
    before = evaluate(config.evaluate, model, dataset.key)
    trained = train(config.train, model, dataset.key, weighed.key)
    after = evaluate(config.evaluate, model, dataset.key, trained.key)
    page = report(before.key, after.key, dataset.key, weighed.key, trained.key)
    return {
        "prepare": dataset,
        "rollouts": sampled,
        "contribution": measured,
        "weights": weighed,
        "evaluate-base": before,
        "train": trained,
        "evaluate": after,
        "report": page,
    }

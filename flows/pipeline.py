"""The flow `dtca`: every stage, in order, each the same flow that runs alone."""

from prefect import flow

from dtca_core.config import PipelineConfig
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
    model = config.model
    dataset = prepare(config.data).result()
    sampled = rollouts(config.rollouts, model, dataset.key).result()
    measured = contribution(config.contribution, model, sampled.key).result()
    weighed = weights(config.weights, measured.key).result()
    before = evaluate(config.evaluate, model, dataset.key).result()
    trained = train(config.train, model, dataset.key, weighed.key).result()
    after = evaluate(config.evaluate, model, dataset.key, trained.key).result()
    page = report(before.key, after.key, dataset.key, weighed.key, trained.key).result()
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

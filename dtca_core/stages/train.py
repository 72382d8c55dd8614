"""Train: reinforcement learning in a process of its own; the artifact is a model folder."""

import shutil
from typing import Any

from dtca_core.config import TrainConfig
from dtca_core.stages.prepare import PROBLEMS_FILE
from dtca_core.stages.spec import Counts, StageContext, StageSpec
from dtca_core.stages.weights import WEIGHTS_FILE, weights_file
from dtca_core.training.job import TrainJob
from dtca_core.training.launch import run_training
from dtca_core.training.metrics import read_metrics

MODEL_FOLDER = "model"
"""Folder of a checkpoint artifact that holds the model."""


def build(context: StageContext) -> Counts:
    """Train, resuming what a killed run has left; write the model, its metrics and its weights."""
    config: TrainConfig = context.config
    # The checkpoint says what it was trained with, whoever deletes the weight artifact.
    shutil.copyfile(weights_file(context.inputs["weights"]), context.folder / WEIGHTS_FILE)
    job = TrainJob(
        config=config,
        model=context.model_config,
        problems=context.inputs["dataset"].path / PROBLEMS_FILE,
        weights=weights_file(context.inputs["weights"]),
        output=context.folder,
    )

    def on_event(event: dict[str, Any]) -> None:
        note = f"reward {event['reward']:.2f}" if event["event"] == "update" else ""
        context.listener.progress(event["update"], config.updates, "updates", note)

    run_training(job, on_event)
    shutil.rmtree(job.state_folder)
    rows = read_metrics(job.metrics_file)
    validation = [row["validation_accuracy"] for row in rows if "validation_accuracy" in row]
    return {
        "updates": config.updates,
        "validation_accuracy_before": validation[0],
        "validation_accuracy_after": validation[-1],
    }


TRAIN = StageSpec(
    name="train",
    kind="checkpoint",
    version=2,
    config=TrainConfig,
    inputs=("dataset", "weights"),
    needs_model=True,
    build=build,
    program="dtca_core.training.__main__",
)

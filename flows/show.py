"""Running flows from a terminal: one line per stage as it ends, then the results."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from dtca_core.config import PipelineConfig, PretrainConfig
from dtca_core.errors import ConfigError
from dtca_core.stages import STAGES
from dtca_core.stages.report import REPORT_FILE, budgets, compare, read_summary
from dtca_core.stages.weights import weights_file
from dtca_core.weights import WeightArtifact
from flows.contribution import contribution
from flows.evaluate import evaluate
from flows.pipeline import pipeline
from flows.prepare import prepare
from flows.rollouts import rollouts
from flows.tables import accuracy_table, evaluation_table, weights_table
from flows.train import train
from flows.weights import weights
from tasks.logger import LOGGERS, is_said
from tasks.references import ArtifactRef, open_store, resolve

FLOWS: Mapping[str, Callable[..., ArtifactRef]] = {
    "prepare": prepare,
    "rollouts": rollouts,
    "contribution": contribution,
    "weights": weights,
    "train": train,
    "evaluate": evaluate,
}
"""The flow of each stage that the command line runs alone."""

INPUTS: Mapping[str, tuple[str, ...]] = {
    "prepare": (),
    "rollouts": ("dataset",),
    "contribution": ("rollouts",),
    "weights": ("contribution",),
    "train": ("dataset", "weights"),
    "evaluate": ("dataset", "checkpoint"),
}
"""What each stage can be told to read."""


class _Lines(logging.Handler):
    """Prints what stages say, without Prefect's own lines."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self.console = console
        self.addFilter(is_said)

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        self.console.print(record.getMessage(), soft_wrap=True)


def show_lines(console: Console) -> None:
    """Print what stages say from now on."""
    for name in LOGGERS:
        logging.getLogger(name).addHandler(_Lines(console))


def run_pipeline(config: PipelineConfig, console: Console) -> None:
    """Run the flow `dtca` and print what came out."""
    begin = time.monotonic()
    show_lines(console)
    console.print(f"artifacts in {open_store().root}", soft_wrap=True)
    made = pipeline(config)
    show_results(made, console)
    console.print(f"done in {time.monotonic() - begin:.0f} s")


def show_results(made: dict[str, ArtifactRef], console: Console) -> None:
    """Print category weights, accuracy before and after, and where the report is."""
    read = {name: resolve(ref.kind, ref.key) for name, ref in made.items()}
    console.print(weights_table(WeightArtifact.read(weights_file(read["weights"]))))
    before, after = read["evaluate-base"], read["evaluate"]
    summary = read_summary(after)
    pairs = [compare(before.path, after.path, budget) for budget in budgets(summary)]
    console.print(accuracy_table(read_summary(before), summary, pairs))
    console.print(f"report: {read['report'].path / REPORT_FILE}", soft_wrap=True)


def run_one_stage(
    name: str,
    config: PipelineConfig,
    references: dict[str, str],
    refresh: bool,
    console: Console,
) -> None:
    """Run the flow of one stage with the settings of its section."""
    show_lines(console)
    if name not in FLOWS:
        raise ConfigError(f"there is no stage {name!r}; use one of {', '.join(FLOWS)}.")
    foreign = sorted(set(references) - set(INPUTS[name]))
    if foreign:
        known = ", ".join(INPUTS[name]) or "nothing"
        raise ConfigError(f"stage {name!r} reads no {foreign[0]}; it reads {known}.")
    model = {"model": config.model} if STAGES[name].needs_model else {}
    section = config.data if name == "prepare" else getattr(config, name)
    made = FLOWS[name](section, refresh=refresh, **model, **references)
    if name == "evaluate":
        console.print(evaluation_table(read_summary(resolve(made.kind, made.key))))
    elif name == "weights":
        path = weights_file(resolve(made.kind, made.key))
        console.print(weights_table(WeightArtifact.read(path)))
    console.print(f"{made.path}", soft_wrap=True)


def run_pretraining(output: Path, steps: int | None, console: Console) -> None:
    """Run the flow that makes the embedded model."""
    from flows.pretrain import pretrain_embedded

    show_lines(console)
    config = PretrainConfig() if steps is None else PretrainConfig(steps=steps)
    pretrain_embedded(config, str(output))

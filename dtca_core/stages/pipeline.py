"""The whole pipeline: which stages, with which settings, reading what from whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dtca_core.config import ModelConfig, PipelineConfig, Settings
from dtca_core.models.chat import encode_prompt
from dtca_core.models.loading import check_model, model_folder, resolve_device
from dtca_core.stages.contribution import CONTRIBUTION
from dtca_core.stages.evaluate import EVALUATE
from dtca_core.stages.prepare import PREPARE
from dtca_core.stages.prepare import files as problem_files
from dtca_core.stages.report import REPORT, ReportConfig
from dtca_core.stages.rollouts import ROLLOUTS
from dtca_core.stages.spec import StageSpec
from dtca_core.stages.train import TRAIN
from dtca_core.stages.weights import WEIGHTS


def check(config: PipelineConfig) -> None:
    """Refuse, before any work, a model or files that no stage could use.

    Raises:
        ModelError: the model's folder is incomplete, or cannot be asked in words.
        DataError: a file of problems is not there.
    """
    model = check_model(model_folder(config.model.source))
    resolve_device(config.model.device)
    encode_prompt(model.tokenizer, [{"role": "user", "content": "1 + 1?"}])
    problem_files(config.data)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage of a pipeline."""

    name: str
    """Name within the pipeline."""
    spec: StageSpec
    config: Settings
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which step each input comes from, by the input's name."""
    model: ModelConfig | None = None
    """Which model it is given, for a stage that needs one."""
    trained_by: str | None = None
    """The step whose checkpoint is that model; None: the model of the config."""


def steps(config: PipelineConfig) -> list[Step]:
    """Return the steps in the order in which they run."""
    model = config.model
    dataset = {"dataset": "prepare"}
    return [
        Step(name="prepare", spec=PREPARE, config=config.data),
        Step(name="rollouts", spec=ROLLOUTS, config=config.rollouts, inputs=dataset, model=model),
        Step(
            name="contribution",
            spec=CONTRIBUTION,
            config=config.contribution,
            inputs={"rollouts": "rollouts"},
            model=model,
        ),
        Step(
            name="weights",
            spec=WEIGHTS,
            config=config.weights,
            inputs={"contribution": "contribution"},
        ),
        Step(
            name="evaluate-base",
            spec=EVALUATE,
            config=config.evaluate,
            inputs=dataset,
            model=model,
        ),
        Step(
            name="train",
            spec=TRAIN,
            config=config.train,
            inputs={**dataset, "weights": "weights"},
            model=model,
        ),
        Step(
            name="evaluate",
            spec=EVALUATE,
            config=config.evaluate,
            inputs=dataset,
            model=model,
            trained_by="train",
        ),
        Step(
            name="report",
            spec=REPORT,
            config=ReportConfig(),
            inputs={
                **dataset,
                "weights": "weights",
                "checkpoint": "train",
                "before": "evaluate-base",
                "after": "evaluate",
            },
        ),
    ]

"""The flow `dtca-pretrain`: makes the embedded model from nothing, and says what it can do."""

from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from dtca_core.config import EvaluateConfig, PretrainConfig
from dtca_core.data.word_problems import generated_problems
from dtca_core.models import load_predictor
from dtca_core.pretraining import evaluate_model, pretrain
from dtca_core.store import write_json
from tasks.listening import StageListener
from tasks.logger import say
from tasks.stages import console

NUM_PROBLEMS = 600
"""Test problems that a new model is evaluated on."""


@task(cache_policy=NO_CACHE)
def train_from_nothing(config: PretrainConfig, folder: Path) -> None:
    """Write a model that learned generated word problems with the masked-diffusion loss."""
    with StageListener("pretrain", console) as listener:

        def report(step: int, loss: float) -> None:
            listener.progress(step, config.steps, "steps", f"loss {loss:.3f}")

        pretrain(config, folder, report)
    write_json(folder / "recipe.json", config.model_dump(mode="json"))
    say(f"pretrain: wrote {folder}")


@task(cache_policy=NO_CACHE)
def say_what_it_can(folder: Path) -> None:
    """Write the accuracy of the new model beside it."""
    problems = generated_problems("test", NUM_PROBLEMS, seed=0)
    budgets = evaluate_model(load_predictor(folder), problems, EvaluateConfig())
    write_json(folder / "evaluation.json", budgets)
    for budget in budgets:
        say(f"pretrain: {budget['accuracy']:.1%} right at {budget['steps']} steps")


@flow(name="dtca-pretrain", flow_run_name="embedded")
def pretrain_embedded(config: PretrainConfig = PretrainConfig(), output: str = "model") -> str:
    """Make the embedded model: tokenizer, corpus and weights, all from the seed.

    Args:
        config: the recipe.
        output: folder to write; the committed model is in dtca_core/models/embedded.
    """
    train_from_nothing(config, Path(output))
    say_what_it_can(Path(output))
    return output

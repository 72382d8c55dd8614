"""The flow `dtca-pretrain`: makes the embedded model from nothing."""

from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from dtca_core.config import PretrainConfig
from dtca_core.pretraining import pretrain
from tasks.listening import StageListener
from tasks.logger import say
from tasks.stages import console


@task(cache_policy=NO_CACHE)
def train_from_nothing(config: PretrainConfig, folder: Path) -> None:
    """Write a model that learned generated word problems with the masked-diffusion loss."""
    with StageListener("pretrain", console) as listener:

        def report(step: int, loss: float) -> None:
            listener.progress(step, config.steps, "steps", f"loss {loss:.3f}")

        pretrain(config, folder, report)
    say(f"pretrain: wrote {folder}")


@flow(name="dtca-pretrain", flow_run_name="embedded")
def pretrain_embedded(config: PretrainConfig = PretrainConfig(), output: str = "model") -> str:
    """Make the embedded model: tokenizer, corpus and weights, all from the seed.

    Args:
        config: the recipe.
        output: folder to write; the committed model is in dtca_core/models/embedded.
    """
    train_from_nothing(config, Path(output))
    return output

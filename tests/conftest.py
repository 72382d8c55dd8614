"""One Hypothesis profile for every test, and the two small models that tests speak to."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("house", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("house")

# The golden vectors were made on one thread; more would only get in each other's way.
torch.set_num_threads(1)

# dtca_core is imported inside the fixtures: jaxtyping must hook it first.


@pytest.fixture(scope="session")
def golden_folder():
    """Folder of the LLaDA with random weights that other programs were run on."""
    return Path(__file__).parent / "golden" / "llada_tiny"


@pytest.fixture(scope="session")
def golden_predictor(golden_folder):
    """The model of `golden_folder`; tests leave it as it is."""
    from dtca_core.models import load_predictor

    return load_predictor(golden_folder)


@pytest.fixture(scope="session")
def tiny_pretraining():
    """Settings that make a model with a tokenizer in a second or two."""
    from dtca_core.config import PretrainConfig

    return PretrainConfig(
        steps=20,
        batch_size=8,
        d_model=32,
        n_layers=2,
        n_heads=2,
        mlp_hidden_size=64,
        warmup_steps=2,
        corpus_for_tokenizer=1000,
    )


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory, tiny_pretraining):
    """Folder of a model with a tokenizer and a chat template that has learnt next to nothing."""
    from dtca_core.pretraining import pretrain

    folder = tmp_path_factory.mktemp("model") / "tiny"
    pretrain(tiny_pretraining, folder, lambda _step, _loss: None)
    return folder


@pytest.fixture(scope="session")
def tiny_predictor(tiny_model_folder):
    """The model of `tiny_model_folder`; tests leave it as it is."""
    from dtca_core.models import load_predictor

    return load_predictor(tiny_model_folder)


@pytest.fixture(scope="session")
def finished_pipeline(tmp_path_factory, tiny_model_folder):
    """Store, settings and results of a small pipeline that ran whole; tests copy what they harm."""
    from dtca_core.store import Store
    from tests.stage_runs import run_pipeline, small_pipeline

    store = Store(tmp_path_factory.mktemp("pipeline"))
    config = small_pipeline(tiny_model_folder)
    return store, config, run_pipeline(store, config)


@pytest.fixture(scope="session")
def talking_model_folder(tmp_path_factory, tiny_pretraining):
    """Folder of a tiny model that has learnt long enough to state answers, right or wrong."""
    from dtca_core.pretraining import pretrain

    folder = tmp_path_factory.mktemp("model") / "talking"
    longer = {"steps": 150, "batch_size": 16, "warmup_steps": 20, "learning_rate": 1e-2}
    pretrain(tiny_pretraining.model_copy(update=longer), folder, lambda _step, _loss: None)
    return folder


@pytest.fixture(scope="session")
def solvable_problems(tmp_path_factory, talking_model_folder):
    """Problem file whose every answer is what the talking model says most: it earns rewards."""
    from dtca_core.models import load_predictor
    from tests.stage_runs import write_solvable_problems

    path = tmp_path_factory.mktemp("problems") / "problems.parquet"
    write_solvable_problems(load_predictor(talking_model_folder), path)
    return path

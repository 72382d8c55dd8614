"""A pipeline so small that a test can run it whole, and what tests listen to it with."""

from collections import Counter
from dataclasses import replace

from dtca_core.config import (
    Budget,
    ContributionConfig,
    DataConfig,
    EvaluateConfig,
    ModelConfig,
    PipelineConfig,
    RolloutsConfig,
    SamplerConfig,
    TrainConfig,
    WeightsConfig,
)
from dtca_core.data.problems import PROBLEM_SCHEMA
from dtca_core.data.word_problems import generated_problems
from dtca_core.rollouts import roll_out
from dtca_core.stages.pipeline import steps
from dtca_core.stages.run import model_input, run_stage
from dtca_core.store import table_from_rows, write_table

SAMPLER = SamplerConfig(gen_length=16, block_length=8, steps=8, temperature=1.0)


class Heard:
    """A listener that keeps what it is told."""

    def __init__(self):
        self.progressed, self.waited, self.noted = [], [], []

    def progress(self, done, total, unit, note=""):
        self.progressed.append((done, total, unit, note))

    def waiting(self, reference):
        self.waited.append(reference)

    def note(self, message):
        self.noted.append(message)


def small_pipeline(model_folder):
    """Settings of a pipeline whose stages take a moment each; several shards, one update."""
    return PipelineConfig(
        data=DataConfig(num_train=12, num_validation=4, num_test=5),
        model=ModelConfig(source=str(model_folder), device="cpu"),
        rollouts=RolloutsConfig(num_prompts=6, num_samples=2, sampler=SAMPLER, shard_size=2),
        contribution=ContributionConfig(shard_size=4),
        weights=WeightsConfig(min_count=2),
        train=TrainConfig(
            updates=1,
            prompts_per_update=2,
            samples_per_prompt=2,
            sampler=SAMPLER,
            validation_problems=2,
            regression_margin=1.0,
            # The tiny model earns no reward here; weight decay is what training changes it by.
            kl_coefficient=0.1,
            weight_decay=0.1,
        ),
        evaluate=EvaluateConfig(
            sampler=SAMPLER,
            budgets=(Budget(gen_length=16, steps=4), Budget(gen_length=16, steps=8)),
            shard_size=2,
        ),
    )


def run_step(store, step, found, listener=None, refresh=False):
    """Run one step with the artifacts of the steps before it."""
    checkpoint = found[step.trained_by].artifact if step.trained_by else None
    return run_stage(
        store,
        step.spec,
        step.config,
        inputs={name: found[source].artifact for name, source in step.inputs.items()},
        model=None if step.model is None else model_input(step.model, checkpoint),
        listener=listener or Heard(),
        refresh=refresh,
    )


def run_pipeline(store, config, until=None):
    """Run the steps in order, up to and including the one named, and return their results."""
    found = {}
    for step in steps(config):
        found[step.name] = run_step(store, step, found)
        if step.name == until:
            break
    return found


def write_solvable_problems(predictor, path):
    """Write problems whose reference is the number that the model says most often."""
    sizes = {"train": 8, "validation": 3}
    splits = {split: generated_problems(split, size, 0) for split, size in sizes.items()}
    rollouts = roll_out(
        predictor,
        splits["train"],
        SAMPLER,
        num_samples=8,
        protocol="plain",
        task="gsm8k",
        seed=0,
        purpose="test",
        batch_size=64,
    )
    said = [score.extracted for score in rollouts.scores if score.extracted is not None]
    ((answer, _),) = Counter(said).most_common(1)
    rows = [
        {**vars(replace(problem, answer=answer)), "split": split}
        for split, problems in splits.items()
        for problem in problems
    ]
    write_table(path, table_from_rows(rows, PROBLEM_SCHEMA))

"""Tests of the training run in this process, with a tiny model that earns some rewards."""

import shutil

import pytest
import torch

from dtca_core.config import CreditConfig, ModelConfig, TrainConfig, WeightsConfig
from dtca_core.data.problems import read_split
from dtca_core.errors import ArtifactError, DataError, TrainingError
from dtca_core.models import load_predictor
from dtca_core.store.files import sha256_of
from dtca_core.training.job import TrainJob
from dtca_core.training.loop import Trainer, problems_of_update
from dtca_core.training.metrics import read_metrics
from dtca_core.weights import estimate_weights
from tests.stage_runs import SAMPLER

CONFIG = TrainConfig(
    updates=4,
    prompts_per_update=3,
    samples_per_prompt=8,
    sampler=SAMPLER,
    learning_rate=1e-3,
    validation_problems=2,
    validate_every=2,
    save_every=2,
    regression_margin=1.0,
)


@pytest.fixture
def job_in(talking_model_folder, solvable_problems):
    """Return a function that makes the job of a run in a folder."""

    def job(folder, weights=None, **changes):
        return TrainJob(
            config=CONFIG.model_copy(update=changes),
            model=ModelConfig(source=str(talking_model_folder), device="cpu"),
            problems=solvable_problems,
            weights=weights,
            output=folder,
        )

    return job


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory, talking_model_folder, solvable_problems):
    """The folder of a run that was not interrupted, and its events."""
    events = []
    job = TrainJob(
        config=CONFIG,
        model=ModelConfig(source=str(talking_model_folder), device="cpu"),
        problems=solvable_problems,
        weights=None,
        output=tmp_path_factory.mktemp("run"),
    )
    Trainer(job, events.append).run()
    return job, events


def weight_file(folder, **changes):
    """A weights.json of the tagger that is installed, with some fields changed."""
    from dtca_core.categories import load_tagger

    tagger = load_tagger("math")
    artifact = estimate_weights(
        [0.1, 0.2, 0.6], ["NUM", "NUM", "NOUN"], ["a", "b", "b"], WeightsConfig(min_count=1), tagger
    )
    path = folder / "weights.json"
    artifact.model_copy(update=changes).write(path)
    return path


# ----------------------------------------------------------------------------------- a whole run


def test_a_run_reports_and_writes_every_update(whole_run):
    job, events = whole_run
    assert [(event["event"], event["update"]) for event in events] == [
        ("validation", 0),
        ("update", 1),
        ("update", 2),
        ("validation", 2),
        ("update", 3),
        ("update", 4),
        ("validation", 4),
    ]
    rows = read_metrics(job.metrics_file)
    assert [row["update"] for row in rows] == [0, 1, 2, 2, 3, 4, 4]
    updates = [row for row in rows if "reward" in row]
    for row in updates:
        assert 0 <= row["reward"] <= 1
        assert row["tokens_per_step"] == 2.0
        assert 1 <= row["response_tokens"] <= 16
        assert {"no_answer", "truncated", "groups_with_variance"} <= row.keys()
    learnt = [row for row in updates if "loss" in row]
    assert learnt, "no group had an advantage: the model earns no reward"
    for row in learnt:
        assert row["gradient_norm"] > 0
        assert row["tokens_trained"] > 0
        assert row["groups_with_variance"] > 0
        assert row["kl"] == 0.0
        assert -0.2 <= row["lambda"] <= 0.2
    timings = read_metrics(job.timings_file)
    assert [row["update"] for row in timings] == [1, 2, 3, 4]
    assert all(row["sampled_tokens_per_second"] > 0 for row in timings)
    assert all(row["peak_memory_mib"] > 0 for row in timings)
    assert list((job.output / "logs" / "tensorboard").iterdir())


def test_a_run_changes_the_model_and_writes_it_with_its_tokenizer(whole_run, talking_model_folder):
    job, _ = whole_run
    start = load_predictor(talking_model_folder)
    trained = load_predictor(job.model_folder)
    assert trained.tokenizer.get_vocab() == start.tokenizer.get_vocab()
    before, after = start.state_dict(), trained.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("batch_size", [5, 96])
def test_how_many_are_sampled_together_does_not_change_the_rewards(
    whole_run, job_in, tmp_path, batch_size
):
    job = job_in(tmp_path, updates=1, batch_size=batch_size, micro_batch_size=2)
    Trainer(job, lambda _event: None).run()
    (first, *_) = (row for row in read_metrics(whole_run[0].metrics_file) if "reward" in row)
    (found,) = (row for row in read_metrics(job.metrics_file) if "reward" in row)
    assert found == pytest.approx(first, rel=1e-3, abs=1e-5)


# -------------------------------------------------------------------------- stopped and resumed


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_a_resumed_run_is_the_run_that_was_not_interrupted(whole_run, job_in, tmp_path, stop_at):
    job, events = job_in(tmp_path), []

    def stop(event):
        if (event["event"], event["update"]) == ("update", stop_at):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Trainer(job, stop).run()
    assert not job.model_folder.exists()
    Trainer(job, events.append).run()
    # Checkpoints are written after updates 2 and 4; stopped in update 2, it was not there yet.
    if stop_at == 3:
        assert events[0] == {"event": "resumed", "update": 2}
    else:
        assert (events[0]["event"], events[0]["update"]) == ("validation", 0)
    expected, _ = whole_run
    assert job.metrics_file.read_bytes() == expected.metrics_file.read_bytes()
    weights = "model.safetensors"
    assert sha256_of(job.model_folder / weights) == sha256_of(expected.model_folder / weights)


def test_a_run_killed_before_its_model_was_written_only_writes_it(whole_run, job_in, tmp_path):
    expected, _ = whole_run
    job, events = job_in(tmp_path / "copy"), []
    shutil.copytree(expected.output, job.output)
    shutil.rmtree(job.model_folder)
    # As if the process had been killed in the middle of a line.
    with job.timings_file.open("a") as file:
        file.write('{"update": 4, "seco')
    Trainer(job, events.append).run()
    assert events == [{"event": "resumed", "update": 4}]
    weights = "model.safetensors"
    assert sha256_of(job.model_folder / weights) == sha256_of(expected.model_folder / weights)
    assert job.metrics_file.read_bytes() == expected.metrics_file.read_bytes()
    assert [row["update"] for row in read_metrics(job.timings_file)] == [1, 2, 3, 4]


# ------------------------------------------------------------------------ settings that matter


def test_divergence_from_the_start_is_measured_and_the_start_stays(job_in, tmp_path):
    job = job_in(tmp_path, updates=3, kl_coefficient=0.5)
    trainer = Trainer(job, lambda _event: None)
    before = {name: value.clone() for name, value in trainer.reference.state_dict().items()}
    trainer.run()
    rows = [row for row in read_metrics(job.metrics_file) if "reward" in row]
    assert all(row["responses_trained"] == 24 for row in rows)
    assert rows[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert max(row["kl"] for row in rows) > 0
    after = trainer.reference.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_category_weights_change_what_is_learnt_only_where_they_are_used(
    whole_run, job_in, tmp_path
):
    expected = read_metrics(whole_run[0].metrics_file)
    weights = weight_file(tmp_path)

    def losses(name, **changes):
        job = job_in(tmp_path / name, weights, **changes)
        Trainer(job, lambda _event: None).run()
        return read_metrics(job.metrics_file)

    assert losses("used") != expected
    assert losses("off", credit=CreditConfig(contribution=False)) == expected


def test_warm_up_raises_the_learning_rate_step_by_step(job_in, tmp_path):
    rates = []
    job = job_in(tmp_path, updates=3, warmup_updates=2, learning_rate=1e-3)
    trainer = Trainer(job, lambda event: rates.append(trainer.optimizer.param_groups[0]["lr"]))
    trainer.run()
    # By hand: validation sees the rate of the update before it: at 0 the full one, as it was set.
    assert rates == pytest.approx([1e-3, 5e-4, 1e-3, 1e-3, 1e-3, 1e-3][: len(rates)])
    assert 5e-4 in rates


# --------------------------------------------------------------------------------- what is refused


def test_a_run_that_harms_the_model_stops_and_says_so(job_in, tmp_path):
    job = job_in(tmp_path, updates=2, validate_every=1, regression_margin=0.1)
    trainer = Trainer(job, lambda _event: None)
    # A start that was right on every held-out problem, and a model that is not any more.
    trainer.metrics.write(0, {"validation_accuracy": 1.0})
    with pytest.raises(TrainingError, match=r"10% below its start of 100\.0%: training harms"):
        trainer.run()
    assert not job.model_folder.exists()


def test_weights_of_another_tagger_version_are_refused(job_in, tmp_path):
    path = weight_file(tmp_path, tagger_version="of last year")
    with pytest.raises(ArtifactError, match="made with tagger of last year, here it is"):
        Trainer(job_in(tmp_path, path), lambda _event: None)


def test_fewer_problems_than_an_update_needs_are_refused(job_in, tmp_path):
    with pytest.raises(DataError, match="has 8 train problems and training needs at least 9"):
        Trainer(job_in(tmp_path, prompts_per_update=9), lambda _event: None)


# ---------------------------------------------------------------------------- order of problems


def test_an_epoch_has_every_problem_once_and_the_next_another_order(solvable_problems):
    problems = read_split(solvable_problems, "train")
    config = CONFIG.model_copy(update={"prompts_per_update": 4})

    def epoch(first):
        return [
            problem
            for update in (first, first + 1)
            for problem in problems_of_update(problems, update, config)
        ]

    assert sorted(epoch(1), key=problems.index) == problems
    assert sorted(epoch(3), key=problems.index) == problems
    assert epoch(1) != epoch(3)
    assert epoch(1) == epoch(1)
    other = config.model_copy(update={"seed": 1})
    assert problems_of_update(problems, 1, other) != problems_of_update(problems, 1, config)


def test_a_rest_that_fills_no_update_is_passed_over(solvable_problems):
    problems = read_split(solvable_problems, "train")
    # By hand: 8 problems and 3 an update are 2 updates an epoch, and 2 problems are left out.
    seen = [problems_of_update(problems, update, CONFIG) for update in (1, 2, 3)]
    assert all(len(chosen) == 3 for chosen in seen)
    assert not {p.problem_id for p in seen[0]} & {p.problem_id for p in seen[1]}
    assert len({p.problem_id for p in seen[0] + seen[1]}) == 6

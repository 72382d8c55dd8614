"""The training run: sample groups, score, tag, give credit, update; strictly on-policy.

Everything random is a stream named by seed, update and problem, so that a resumed run is the run
that was not interrupted.
"""

import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator
from jaxtyping import Float
from torch import Tensor

from dtca_core.categories import load_tagger, token_categories
from dtca_core.config import TrainConfig
from dtca_core.data.problems import Problem, read_split
from dtca_core.errors import ArtifactError, ConfigError, DataError, TrainingError
from dtca_core.evaluation.protocols import Task, task_of
from dtca_core.models import MaskPredictor, load_predictor, save_predictor
from dtca_core.models.loading import model_folder
from dtca_core.randomness import stream
from dtca_core.rollouts import RolloutBatch, roll_out
from dtca_core.training.job import TrainJob
from dtca_core.training.metrics import MetricsWriter, read_metrics
from dtca_core.training.state import resume_state, save_state
from dtca_core.training.update import accumulate, prepare_lesson
from dtca_core.weights import WeightArtifact

Emit = Callable[[dict[str, Any]], None]
"""Called with an event as it happens: update, validation or resumed."""


class Trainer:
    """One process of a training run."""

    def __init__(self, job: TrainJob, emit: Emit) -> None:
        self.job, self.config, self.emit = job, job.config, emit
        self.problems = _problems(job, "train", job.config.prompts_per_update)
        self.task: Task = task_of([problem.answer for problem in self.problems])
        self.held_out = _problems(job, "validation", 1)[: job.config.validation_problems]
        self.category_weight = _CategoryWeight(job)
        self.accelerator = Accelerator(cpu=job.model.device == "cpu")
        if self.accelerator.num_processes > 1:
            raise ConfigError(
                f"train.accelerate_config starts {self.accelerator.num_processes} processes; "
                "training runs in one so far. Set num_processes to 1."
            )
        device, dtype = str(self.accelerator.device), job.model.dtype
        predictor = load_predictor(job.model.source, device=device, dtype=dtype)
        self.reference = None
        if job.config.kl_coefficient:
            self.reference = load_predictor(job.model.source, device=device, dtype=dtype)
        optimizer = torch.optim.AdamW(
            predictor.parameters(),
            lr=job.config.learning_rate,
            betas=job.config.betas,
            weight_decay=job.config.weight_decay,
        )
        self.update = resume_state(job.state_folder, predictor, optimizer)
        self.policy, self.optimizer = self.accelerator.prepare(predictor, optimizer)
        self.metrics = MetricsWriter(job, self.update)

    @property
    def predictor(self) -> MaskPredictor:
        """The policy without what accelerate wraps around it."""
        predictor = self.accelerator.unwrap_model(self.policy)
        assert isinstance(predictor, MaskPredictor)
        return predictor

    def run(self) -> None:
        """Train to the last update and write the model."""
        try:
            self._train()
        finally:
            self.metrics.close()
        source = model_folder(self.job.model.source)
        save_predictor(self.predictor, self.job.model_folder, tokenizer_from=source)

    def _train(self) -> None:
        if self.update:
            self.emit({"event": "resumed", "update": self.update})
        else:
            self._validate()
        while self.update < self.config.updates:
            self._step()
            if self.update % self.config.validate_every == 0 or self._is_last():
                self._validate()
            if self.update % self.config.save_every == 0 or self._is_last():
                self._save()

    def _is_last(self) -> bool:
        return self.update == self.config.updates

    def _step(self) -> None:
        """Do one update."""
        begin = time.perf_counter()
        self.update += 1
        rollouts = self._sample()
        sampled = time.perf_counter()
        weight = self.category_weight(rollouts)
        lesson = prepare_lesson(self.policy, self.predictor, rollouts, weight, self.config)
        values: dict[str, int | float] = _rollout_metrics(rollouts, self.config.samples_per_prompt)
        for group in self.optimizer.param_groups:
            group["lr"] = _learning_rate(self.update, self.config)
        if lesson is not None:
            self.optimizer.zero_grad()
            values |= lesson.metrics | accumulate(
                self.policy,
                self.reference,
                self.predictor.mask_id,
                lesson,
                self.config,
                self.accelerator.backward,
            )
            norm = self.accelerator.clip_grad_norm_(
                self.policy.parameters(), self.config.max_grad_norm
            )
            assert norm is not None, "only a sharded engine clips without saying how much"
            values["gradient_norm"] = float(norm)
            self.optimizer.step()
        self.metrics.write(self.update, values)
        timings = _timings(begin, sampled, rollouts)
        self.metrics.write_timings(self.update, timings)
        self.emit({"event": "update", "update": self.update, **values, **timings})

    def _sample(self) -> RolloutBatch:
        return roll_out(
            self.predictor,
            problems_of_update(self.problems, self.update, self.config),
            self.config.sampler,
            num_samples=self.config.samples_per_prompt,
            protocol=self.config.protocol,
            task=self.task,
            seed=self.config.seed,
            purpose=f"update {self.update}",
            batch_size=self.config.batch_size,
        )

    def _validate(self) -> None:
        """Measure greedy accuracy on held-out problems; stop a run that falls too far."""
        greedy = self.config.sampler.model_copy(update={"temperature": 0.0})
        rollouts = roll_out(
            self.predictor,
            self.held_out,
            greedy,
            num_samples=1,
            protocol=self.config.protocol,
            task=self.task,
            seed=self.config.seed,
            purpose="validation",
            batch_size=self.config.batch_size,
        )
        accuracy = sum(rollouts.rewards) / len(rollouts.rewards)
        self.metrics.write(self.update, {"validation_accuracy": accuracy})
        event = {"event": "validation", "update": self.update, "validation_accuracy": accuracy}
        self.emit(event)
        start = next(
            row["validation_accuracy"]
            for row in read_metrics(self.job.metrics_file)
            if "validation_accuracy" in row
        )
        if accuracy < start - self.config.regression_margin:
            raise TrainingError(
                f"validation accuracy is {accuracy:.1%} at update {self.update}, more than "
                f"{self.config.regression_margin:.0%} below its start of {start:.1%}: training "
                "harms the model. Lower train.learning_rate, set train.kl_coefficient, or raise "
                "train.regression_margin if this is meant."
            )

    def _save(self) -> None:
        save_state(
            self.job.state_folder,
            self.update,
            self.predictor,
            # accelerate's wrapper has no state of its own.
            getattr(self.optimizer, "optimizer", self.optimizer),
            self.config.keep_last,
        )


class _CategoryWeight:
    """The weight of each token of a rollout by its category; 1 for all where none are given."""

    def __init__(self, job: TrainJob) -> None:
        self._artifact = None
        if job.weights is not None and job.config.credit.contribution:
            self._artifact = WeightArtifact.read(job.weights)
            self._tagger = load_tagger(self._artifact.tagger)
            if self._tagger.version != self._artifact.tagger_version:
                raise ArtifactError(
                    f"{job.weights} was made with tagger {self._artifact.tagger_version}, here it "
                    f"is {self._tagger.version}; run the weights stage again."
                )

    def __call__(self, rollouts: RolloutBatch) -> Float[Tensor, "B L"]:
        length = rollouts.trajectories.response_ids.shape[1]
        if self._artifact is None:
            return rollouts.trajectories.is_response.float()
        categories = token_categories(
            self._tagger, rollouts.texts, rollouts.spans, rollouts.special
        )
        return self._artifact.weights_of(categories, length)


def problems_of_update(problems: list[Problem], update: int, config: TrainConfig) -> list[Problem]:
    """Return the problems of an update: those next in the epoch's own order.

    A rest of an epoch that does not fill an update is passed over.
    """
    per_epoch = len(problems) // config.prompts_per_update
    epoch, place = divmod(update - 1, per_epoch)
    order = torch.randperm(len(problems), generator=stream(config.seed, "problem order", epoch))
    begin = place * config.prompts_per_update
    return [problems[i] for i in order[begin : begin + config.prompts_per_update].tolist()]


def _problems(job: TrainJob, split: str, needed: int) -> list[Problem]:
    problems = read_split(job.problems, split)
    if len(problems) < needed:
        raise DataError(
            f"{job.problems} has {len(problems)} {split} problems and training needs at least "
            f"{needed}; prepare more problems or lower train.prompts_per_update."
        )
    return problems


def _learning_rate(update: int, config: TrainConfig) -> float:
    warm = min(1.0, update / config.warmup_updates) if config.warmup_updates else 1.0
    return config.learning_rate * warm


def _rollout_metrics(rollouts: RolloutBatch, group_size: int) -> dict[str, int | float]:
    reward = torch.tensor(rollouts.rewards)
    groups = reward.view(-1, group_size)
    length = rollouts.trajectories.num_response_tokens.float()
    full = rollouts.trajectories.response_ids.shape[1]
    return {
        "reward": reward.mean().item(),
        "groups_with_variance": (groups.amax(1) > groups.amin(1)).float().mean().item(),
        "response_tokens": length.mean().item(),
        "no_answer": sum(s.extracted is None for s in rollouts.scores) / len(rollouts.scores),
        "undecided": sum(s.undecided for s in rollouts.scores) / len(rollouts.scores),
        "truncated": 1 - sum(rollouts.has_ended) / len(rollouts.has_ended),
        "tokens_per_step": (full / rollouts.trajectories.num_steps).mean().item(),
    }


def _timings(begin: float, sampled: float, rollouts: RolloutBatch) -> dict[str, float]:
    end = time.perf_counter()
    tokens = rollouts.trajectories.response_ids.numel()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if torch.cuda.is_available():
        peak = torch.cuda.max_memory_allocated() / 2**20
    return {
        "seconds_sampling": round(sampled - begin, 3),
        "seconds_learning": round(end - sampled, 3),
        "sampled_tokens_per_second": round(tokens / (sampled - begin), 1),
        "peak_memory_mib": round(peak, 1),
    }

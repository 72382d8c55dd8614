"""Rollouts: sampled responses with their text and reward, in memory and as rows of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dtca_core.categories import is_special, token_spans
from dtca_core.config import SamplerConfig
from dtca_core.data.problems import Problem
from dtca_core.errors import DataError
from dtca_core.evaluation.protocols import QUESTION, Prompt, Task, find_setup
from dtca_core.evaluation.scoring import Score, demand_box, score_answers
from dtca_core.models import MaskPredictor
from dtca_core.models.chat import encode_between, encode_prompt
from dtca_core.randomness import stream
from dtca_core.records import TrajectoryBatch
from dtca_core.sampling import Progress, denoise


@dataclass(frozen=True, kw_only=True)
class RolloutBatch:
    """Responses to problems, `num_samples` in a row for each."""

    problems: tuple[Problem, ...]
    """The problem of each response."""
    samples: tuple[int, ...]
    """Which sample of its problem each response is, from 0."""
    prompts: tuple[tuple[int, ...], ...]
    """Prompt tokens of each response."""
    trajectories: TrajectoryBatch
    """How the responses were denoised."""
    texts: tuple[str, ...]
    """Decoded responses up to their end, without special tokens."""
    spans: tuple[tuple[tuple[int, int], ...], ...]
    """Characters of each response token in its text."""
    special: tuple[tuple[bool, ...], ...]
    """True for each response token that is special."""
    has_ended: tuple[bool, ...]
    """False where the response was cut off before an end token."""
    scores: tuple[Score, ...]
    """The verdict on each response."""

    @property
    def rewards(self) -> tuple[float, ...]:
        """1 for a right answer, 0 for a wrong one."""
        return tuple(float(score.correct) for score in self.scores)


def roll_out(
    predictor: MaskPredictor,
    problems: Sequence[Problem],
    sampler: SamplerConfig,
    *,
    num_samples: int,
    protocol: str,
    task: Task,
    seed: int,
    purpose: str,
    batch_size: int,
    progress: Progress | None = None,
) -> RolloutBatch:
    """Return `num_samples` responses to each problem, scored.

    A response depends on the seed, the purpose, its problem and its sample number, and neither
    on the other responses nor on `batch_size`.

    Args:
        predictor: the policy.
        problems: what to answer.
        sampler: how to denoise.
        num_samples: responses per problem.
        protocol: how a problem becomes a prompt and how its answer is read.
        task: what the answers of the data set look like.
        seed: seed of the run.
        purpose: names the use, such as "update 3", so that uses draw different samples.
        batch_size: responses denoised together.
        progress: called with the number of positions decided.
    """
    asked = [problem for problem in problems for _ in range(num_samples)]
    samples = [sample for _ in problems for sample in range(num_samples)]
    prompt = find_setup(protocol, task).prompt
    encoded = {p.problem_id: _encoded(predictor.tokenizer, prompt, p.question) for p in problems}
    prompts = [encoded[problem.problem_id] for problem in asked]
    generators = [
        stream(seed, purpose, problem.problem_id, sample)
        for problem, sample in zip(asked, samples, strict=True)
    ]
    trajectories = TrajectoryBatch.concatenate(
        [
            denoise(predictor, prompts[i:j], sampler, generators[i:j], progress)
            for i, j in _ranges(len(prompts), batch_size)
        ]
    )
    return _scored(predictor, asked, samples, prompts, trajectories, protocol, task)


def _encoded(tokenizer: Any, prompt: Prompt, question: str) -> list[int]:
    """Return the tokens of a protocol's prompt for a question."""
    if prompt.template is None:
        return encode_prompt(tokenizer, prompt.chat(question), prompt.prefill)
    before, _, after = prompt.template.partition(QUESTION)
    return encode_between(tokenizer, before, prompt.message(question), after + prompt.prefill)


def _ranges(count: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, count)) for start in range(0, count, size)]


def _scored(
    predictor: MaskPredictor,
    problems: Sequence[Problem],
    samples: Sequence[int],
    prompts: Sequence[Sequence[int]],
    trajectories: TrajectoryBatch,
    protocol: str,
    task: Task,
) -> RolloutBatch:
    lengths = trajectories.num_response_tokens.tolist()
    rows = zip(trajectories.response_ids.tolist(), lengths, strict=True)
    responses = [ids[:length] for ids, length in rows]
    decoded = [token_spans(predictor.tokenizer, ids) for ids in responses]
    texts = [text for text, _ in decoded]
    references = [problem.answer for problem in problems]
    scores = score_answers(texts, references, protocol=protocol, task=task)
    if find_setup(protocol, task).needs_box:
        scores = demand_box(scores)
    return RolloutBatch(
        problems=tuple(problems),
        samples=tuple(samples),
        prompts=tuple(map(tuple, prompts)),
        trajectories=trajectories,
        texts=tuple(texts),
        spans=tuple(tuple(spans) for _, spans in decoded),
        special=tuple(tuple(is_special(predictor.tokenizer, ids)) for ids in responses),
        has_ended=tuple(ids[-1] in predictor.end_ids for ids in responses),
        scores=tuple(scores),
    )


def rollout_rows(rollouts: RolloutBatch, tokenizer: Any) -> list[dict[str, Any]]:
    """Return one row of `ROLLOUT_SCHEMA` per response."""
    trajectories = rollouts.trajectories
    return [
        {
            "rollout_id": f"{problem.problem_id}-{sample}",
            "problem_id": problem.problem_id,
            "sample": sample,
            "prompt_ids": list(rollouts.prompts[b]),
            "response_ids": trajectories.response_ids[b].tolist(),
            "commit_step": trajectories.commit_step[b].tolist(),
            "commit_confidence": trajectories.commit_confidence[b].tolist(),
            "num_steps": int(trajectories.num_steps[b]),
            "block_length": trajectories.block_length,
            "prompt_text": tokenizer.decode(list(rollouts.prompts[b])),
            "response_text": rollouts.texts[b],
            "reward": float(rollouts.scores[b].correct),
            "extracted_answer": rollouts.scores[b].extracted,
            "num_response_tokens": int(trajectories.num_response_tokens[b]),
        }
        for b, (problem, sample) in enumerate(zip(rollouts.problems, rollouts.samples, strict=True))
    ]


def trajectories_of(rows: Sequence[Mapping[str, Any]]) -> TrajectoryBatch:
    """Return the trajectories that rows of `ROLLOUT_SCHEMA` record.

    Raises:
        DataError: the rows differ in length of response or block.
        TrajectoryError: a row contradicts itself.
    """
    shapes = {(len(row["response_ids"]), row["block_length"]) for row in rows}
    if len(shapes) != 1:
        raise DataError(
            f"rollouts of {len(shapes)} different shapes (response, block) stand in one shard: "
            f"{sorted(shapes)}; a shard holds rollouts of one sampler config. Sample them again."
        )
    return TrajectoryBatch(
        response_ids=torch.tensor([row["response_ids"] for row in rows]),
        commit_step=torch.tensor([row["commit_step"] for row in rows]),
        commit_confidence=torch.tensor([row["commit_confidence"] for row in rows]),
        num_steps=torch.tensor([row["num_steps"] for row in rows]),
        num_response_tokens=torch.tensor([row["num_response_tokens"] for row in rows]),
        block_length=rows[0]["block_length"],
        num_forwards=0,
    )

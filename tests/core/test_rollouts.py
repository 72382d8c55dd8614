"""Tests of rollouts: what a response depends on, and rows that a file can hold."""

import itertools

import pytest
import torch

from dtca_core.config import SamplerConfig
from dtca_core.data.problems import Problem, problem_id
from dtca_core.data.word_problems import word_problems
from dtca_core.errors import DataError, ModelError, TrajectoryError
from dtca_core.evaluation import Score
from dtca_core.models.chat import encode_prompt
from dtca_core.records import ROLLOUT_SCHEMA
from dtca_core.rollouts import roll_out, rollout_rows, trajectories_of
from dtca_core.store import read_table, table_from_rows, write_table

SAMPLER = SamplerConfig(gen_length=16, block_length=8, steps=8, temperature=1.0)
FIELDS = ("response_ids", "commit_step", "commit_confidence", "num_steps", "num_response_tokens")


@pytest.fixture(scope="module")
def problems():
    return [
        Problem(
            problem_id=problem_id(p.question),
            question=p.question,
            answer=str(p.answer),
            kind=p.kind,
        )
        for p in itertools.islice(word_problems("train", 0), 4)
    ]


@pytest.fixture(scope="module")
def rolled(tiny_predictor, problems):
    """Return a function that samples, each setting once."""

    def roll(**changes):
        options = {
            "sampler": SAMPLER,
            "num_samples": 2,
            "protocol": "plain",
            "task": "gsm8k",
            "seed": 0,
            "purpose": "test",
            "batch_size": 8,
        }
        asked = changes.pop("problems", problems)
        return roll_out(tiny_predictor, asked, **{**options, **changes})

    return roll


@pytest.fixture(scope="module")
def rollouts(rolled):
    return rolled()


def test_every_problem_has_its_samples_in_a_row(rollouts, problems):
    assert rollouts.problems == tuple(p for p in problems for _ in range(2))
    assert rollouts.samples == (0, 1) * 4
    assert len(rollouts.trajectories) == len(rollouts.texts) == len(rollouts.scores) == 8
    assert len(set(rollouts.texts)) > 1


def test_prompts_are_those_of_the_protocol(rolled, rollouts, problems, tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    message = [{"role": "user", "content": problems[1].question}]
    assert list(rollouts.prompts[2]) == encode_prompt(tokenizer, message)
    asked = {
        name: tokenizer.decode(list(rolled(protocol=name, num_samples=1).prompts[1]))
        for name in ("drift", "d1")
    }
    assert asked["drift"] == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>You need to put your final answer "
        f"in \\boxed{{}}. This is the problem:\n{problems[1].question}<|eot_id|><|startoftext|>"
        "<|start_header_id|>assistant<|end_header_id|>\n"
    )
    assert asked["d1"].endswith("<|start_header_id|>assistant<|end_header_id|>\n\n<reasoning>")
    assert f"</answer>\n\n{problems[1].question}<|eot_id|>" in asked["d1"]


def test_a_protocol_that_demands_a_box_pays_nothing_outside_of_one(tiny_predictor, monkeypatch):
    said = Score(correct=True, extracted="5", reason="equal")
    monkeypatch.setattr("dtca_core.rollouts.score_answers", lambda *_, **__: [said])
    problem = Problem(problem_id="0", question="What is 2 + 3?", answer="5", kind="file")
    rewards = {
        protocol: roll_out(
            tiny_predictor,
            [problem],
            SAMPLER,
            num_samples=1,
            protocol=protocol,
            task="gsm8k",
            seed=0,
            purpose="test",
            batch_size=1,
        ).rewards
        for protocol in ("plain", "drift")
    }
    assert rewards == {"plain": (1.0,), "drift": (0.0,)}


def test_texts_and_spans_are_those_of_the_response_tokens(rollouts, tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    for b, text in enumerate(rollouts.texts):
        length = int(rollouts.trajectories.num_response_tokens[b])
        ids = rollouts.trajectories.response_ids[b, :length].tolist()
        assert text == tokenizer.decode(ids, skip_special_tokens=True)
        assert len(rollouts.spans[b]) == len(rollouts.special[b]) == length
        special = [token in tokenizer.all_special_ids or token < 6 for token in ids]
        assert list(rollouts.special[b]) == special
        assert rollouts.has_ended[b] == (ids[-1] in tiny_predictor.end_ids)
        assert all(0 <= start <= end <= len(text) for start, end in rollouts.spans[b])


def test_a_reward_is_one_or_zero_by_the_score(rollouts):
    assert rollouts.rewards == tuple(1.0 if score.correct else 0.0 for score in rollouts.scores)


# ------------------------------------------------------------------ what a response depends on


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batch_size_changes_nothing(rolled, rollouts, batch_size):
    other = rolled(batch_size=batch_size)
    assert other.texts == rollouts.texts
    for name in FIELDS:
        theirs = getattr(other.trajectories, name)
        torch.testing.assert_close(theirs, getattr(rollouts.trajectories, name))


def test_other_problems_change_nothing(rolled, rollouts, problems):
    other = rolled(problems=problems[::-1], num_samples=1)
    assert other.texts == rollouts.texts[::2][::-1]


@pytest.mark.parametrize("change", [{"seed": 1}, {"purpose": "another"}])
def test_seed_and_purpose_change_the_samples(rolled, rollouts, change):
    assert rolled(**change).texts != rollouts.texts


def test_progress_adds_up_to_all_positions(rolled):
    told = []
    rolled(progress=told.append, batch_size=3)
    assert sum(told) == 8 * 16


def test_a_model_without_a_chat_template_is_refused(golden_predictor, problems):
    with pytest.raises(ModelError, match=r"^the model folder has no tokenizer with "):
        roll_out(
            golden_predictor,
            problems,
            SAMPLER,
            num_samples=1,
            protocol="plain",
            task="gsm8k",
            seed=0,
            purpose="test",
            batch_size=1,
        )


# ------------------------------------------------------------------------------------- rows


def test_rows_fit_the_schema_and_come_back_from_a_file(tmp_path, rollouts, tiny_predictor):
    rows = rollout_rows(rollouts, tiny_predictor.tokenizer)
    write_table(tmp_path / "shard.parquet", table_from_rows(rows, ROLLOUT_SCHEMA))
    read = read_table([tmp_path / "shard.parquet"], ROLLOUT_SCHEMA).to_pylist()
    assert read == rows
    again = trajectories_of(read)
    for name in FIELDS:
        assert torch.equal(getattr(again, name), getattr(rollouts.trajectories, name))
    assert again.block_length == 8
    assert torch.equal(again.is_response, rollouts.trajectories.is_response)


def test_a_row_says_what_was_asked_and_answered(rollouts, problems, tiny_predictor):
    rows = rollout_rows(rollouts, tiny_predictor.tokenizer)
    assert [row["rollout_id"] for row in rows[:3]] == [
        f"{problems[0].problem_id}-0",
        f"{problems[0].problem_id}-1",
        f"{problems[1].problem_id}-0",
    ]
    assert problems[0].question in rows[0]["prompt_text"]
    assert rows[0]["prompt_text"].endswith("<|start_header_id|>assistant<|end_header_id|>\n\n")
    assert tiny_predictor.tokenizer(rows[0]["prompt_text"], add_special_tokens=False)[
        "input_ids"
    ] == list(rows[0]["prompt_ids"])
    assert [row["reward"] for row in rows] == list(rollouts.rewards)
    assert [row["extracted_answer"] for row in rows] == [s.extracted for s in rollouts.scores]
    assert [row["response_text"] for row in rows] == list(rollouts.texts)


def test_rows_of_different_shapes_are_refused(rolled, rollouts, tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    short = rolled(sampler=SamplerConfig(gen_length=8, block_length=8, steps=8), num_samples=1)
    rows = [*rollout_rows(rollouts, tokenizer), *rollout_rows(short, tokenizer)]
    with pytest.raises(DataError, match=r"2 different shapes .*: \[\(8, 8\), \(16, 8\)\]; "):
        trajectories_of(rows)
    with pytest.raises(DataError, match="0 different shapes"):
        trajectories_of([])


def test_a_row_that_contradicts_itself_is_refused(rollouts, tiny_predictor):
    rows = rollout_rows(rollouts, tiny_predictor.tokenizer)
    rows[1]["num_steps"] -= 1
    with pytest.raises(TrajectoryError, match=r"^response 1 commits token "):
        trajectories_of(rows)

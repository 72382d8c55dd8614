"""Tests of pretraining: the loss by hand, the noise, the tokenizer, and a model in a moment."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import Budget, EvaluateConfig, SamplerConfig
from dtca_core.data.word_problems import generated_problems
from dtca_core.errors import ConfigError
from dtca_core.models import load_predictor
from dtca_core.models.chat import encode_prompt
from dtca_core.models.loading import load_tokenizer
from dtca_core.pretraining import evaluate_model, pretrain
from dtca_core.pretraining.loss import masked_at, masked_diffusion_loss, noise_levels
from dtca_core.pretraining.vocabulary import SPECIAL_TOKENS


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# ------------------------------------------------------------------------------------ loss


def test_loss_by_hand():
    # By hand: the odds of the two tokens are 1 : 3 at both masked positions. The first is token 1
    # at level 0.5: -log(3/4) / 0.5 = 0.57536. The second is token 0 at level 1: -log(1/4) =
    # 1.38629. Over the 4 tokens of the batch: (0.57536 + 1.38629) / 4 = 0.49041.
    logits = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]])
    loss = masked_diffusion_loss(logits, torch.tensor([1, 0]), torch.tensor([0.5, 1.0]), 4)
    torch.testing.assert_close(loss.item(), 0.49041, rtol=1e-4, atol=0.0)


def test_loss_of_nothing_masked_is_zero_and_has_a_gradient():
    logits = torch.zeros(0, 3, requires_grad=True)
    loss = masked_diffusion_loss(logits, torch.zeros(0).long(), torch.zeros(0), 4)
    loss.backward()
    assert loss.item() == 0.0
    assert logits.grad is not None


def test_loss_expects_the_same_at_every_level():
    # E[masked / level] = 1: a token costs -log p on average, however much is masked.
    logits = torch.randn(1, 5, generator=seeded())
    target = torch.tensor([2])
    expected = -logits.log_softmax(-1)[0, 2].item()
    for level in (0.1, 0.5, 1.0):
        masked = masked_at(torch.full((400,), level), 100, seeded())
        count = int(masked.sum())
        loss = masked_diffusion_loss(
            logits.expand(count, -1), target.expand(count), torch.full((count,), level), 40_000
        )
        assert loss.item() == pytest.approx(expected, rel=0.05)


@given(st.integers(1, 64), st.integers(0, 999))
def test_noise_levels_cover_the_unit_interval_evenly(count, seed):
    level = noise_levels(count, seeded(seed))
    assert ((level > 0) & (level <= 1)).all()
    # One in each of `count` equal parts: sorted, they are 1/count apart.
    ordered = level.sort().values
    gaps = torch.diff(ordered)
    torch.testing.assert_close(gaps, torch.full_like(gaps, 1 / count), rtol=0.0, atol=1e-5)
    assert ordered[0] <= 1 / count + 1e-5


def test_noise_levels_are_uniform_over_draws():
    generator = seeded()
    levels = torch.stack([noise_levels(3, generator) for _ in range(4000)])
    for column in levels.T:
        counts = torch.histc(column, bins=10, min=0, max=1)
        # By hand: 400 in each of ten bins, with a standard deviation of 19.
        assert ((counts > 320) & (counts < 480)).all()


def test_a_level_is_the_share_that_is_masked():
    level = torch.tensor([0.0, 0.25, 1.0])
    masked = masked_at(level, 4000, seeded())
    share = masked.float().mean(1)
    assert (share[0], share[2]) == (0.0, 1.0)
    assert abs(share[1].item() - 0.25) < 0.03


# ------------------------------------------------------------------------------- tokenizer


def test_words_boxes_and_digits_are_tokens_of_their_own(tiny_model_folder):
    tokenizer = load_tokenizer(tiny_model_folder)
    text = "Tom buys more, so he has 12+7=19 apples. The answer is \\boxed{19}.<|eot_id|>"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    words = [tokenizer.decode([token]) for token in ids]
    assert "".join(words) == text
    assert words[:2] == ["Tom", " buys"]
    assert words[words.index(" \\boxed{") :] == [" \\boxed{", "1", "9", "}", ".", "<|eot_id|>"]


@given(st.text(max_size=20).filter(lambda text: "<|" not in text))
def test_any_text_encodes_and_decodes(tiny_predictor, text):
    tokenizer = tiny_predictor.tokenizer
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_special_tokens_come_first_and_have_their_parts(tiny_predictor):
    tokenizer = tiny_predictor.tokenizer
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS)) == list(range(6))
    assert tokenizer.decode([tiny_predictor.mask_id]) == "<|mdm_mask|>"
    assert tokenizer.decode([tiny_predictor.eos_id]) == "<|endoftext|>"
    assert tiny_predictor.pad_id == tiny_predictor.eos_id


def test_a_prompt_is_the_published_template(tiny_predictor):
    prompt = encode_prompt(tiny_predictor.tokenizer, [{"role": "user", "content": " Hi? "}])
    assert tiny_predictor.tokenizer.decode(prompt) == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nHi?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


# -------------------------------------------------------------------------------- the loop


def test_a_short_training_writes_a_model_that_loads(tmp_path, tiny_pretraining):
    told = []
    config = tiny_pretraining.model_copy(update={"steps": 3})
    model = pretrain(config, tmp_path / "model", lambda step, loss: told.append((step, loss)))
    assert [step for step, _ in told] == [1, 2, 3]
    assert all(math.isfinite(loss) and loss > 0 for _, loss in told)
    assert not model.training
    loaded = load_predictor(tmp_path / "model")
    assert loaded.vocab_size == len(loaded.tokenizer)
    ids = torch.arange(10)[None]
    assert torch.equal(loaded.logits(ids), model.logits(ids))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path, tiny_pretraining):
    config = tiny_pretraining.model_copy(update={"steps": 2})
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        own = config.model_copy(update={"seed": seed})
        pretrain(own, tmp_path / name, lambda _step, _loss: None)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ac"]
    assert weights[0] != weights[1]


def test_training_lowers_the_loss(tmp_path, tiny_pretraining):
    losses = []
    config = tiny_pretraining.model_copy(update={"steps": 40, "learning_rate": 1e-2})
    pretrain(config, tmp_path, lambda _step, loss: losses.append(loss))
    # From the logarithm of the vocabulary to where common words are known.
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])


def test_responses_that_cannot_fit_are_told_instead_of_waited_for(tmp_path, tiny_pretraining):
    config = tiny_pretraining.model_copy(update={"gen_length": 4})
    with pytest.raises(ConfigError, match="200 responses in a row are longer than gen_length=4"):
        pretrain(config, tmp_path, lambda _step, _loss: None)


# ------------------------------------------------------------------------------ evaluation


def test_a_model_is_evaluated_at_each_budget_and_by_kind(tiny_predictor):
    config = EvaluateConfig(
        sampler=SamplerConfig(gen_length=8, block_length=8, steps=4),
        budgets=(Budget(gen_length=8, steps=2), Budget(gen_length=16, steps=4)),
    )
    problems = generated_problems("test", 12, seed=0)
    results = evaluate_model(tiny_predictor, problems, config)
    assert [(r["gen_length"], r["steps"]) for r in results] == [(8, 2), (16, 4)]
    for result in results:
        assert result["total"] == 12
        assert result["accuracy"] == result["correct"] / 12
        low, high = result["interval"]
        assert 0 <= low <= result["accuracy"] <= high <= 1
        assert list(result["by_kind"]) == sorted({problem.kind for problem in problems})
        counts = {kind: sum(p.kind == kind for p in problems) for kind in result["by_kind"]}
        right = sum(share * counts[kind] for kind, share in result["by_kind"].items())
        assert right == pytest.approx(result["correct"])

"""Training of the embedded model from nothing, on two CPU cores in less than an hour."""

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from dtca_core.config import PretrainConfig
from dtca_core.data.word_problems import corpus
from dtca_core.errors import ConfigError
from dtca_core.models import save_predictor
from dtca_core.models.chat import encode_prompt
from dtca_core.models.llada import Llada
from dtca_core.models.loading import load_tokenizer
from dtca_core.pretraining.loss import masked_at, masked_diffusion_loss, noise_levels
from dtca_core.pretraining.vocabulary import train_tokenizer
from dtca_core.randomness import stream
from dtca_core.sampling.state import pad_prompts

Report = Callable[[int, float], None]
"""Called after each step with its number, from 1, and its loss."""

_PATIENCE = 200
"""Responses in a row that may be too long, before it is clear that nearly all are."""


def pretrain(config: PretrainConfig, folder: Path, report: Report) -> Llada:
    """Return a model trained on the generated corpus, and write it to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    sample = itertools.islice(corpus(config.seed), config.corpus_for_tokenizer)
    train_tokenizer((text for pair in sample for text in pair), folder)
    model = _new_model(config, folder)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    masks = stream(config.seed, "pretraining masks")
    examples = _examples(model, config)
    for step in range(1, config.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * _schedule(step, config)
        batch = list(itertools.islice(examples, config.batch_size))
        loss = _loss(model, batch, masks)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step, loss.item())
    save_predictor(model, folder, tokenizer_from=None)
    return model.eval()


def _new_model(config: PretrainConfig, folder: Path) -> Llada:
    tokenizer = load_tokenizer(folder)
    shape = {
        "d_model": config.d_model,
        "n_heads": config.n_heads,
        "n_kv_heads": config.n_heads,
        "n_layers": config.n_layers,
        "mlp_hidden_size": config.mlp_hidden_size,
        "vocab_size": len(tokenizer),
        "embedding_size": len(tokenizer),
        "max_sequence_length": config.max_sequence_length,
        "rope": True,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": 1e-5,
        "block_type": "llama",
        "activation_type": "silu",
        "layer_norm_type": "rms",
        "weight_tying": False,
        "include_bias": False,
        "mask_token_id": tokenizer.mask_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "model_type": "llada",
        "architectures": ["LLaDAModelLM"],
    }
    model = Llada(shape, tokenizer=tokenizer)
    model.initialise(stream(config.seed, "weights"))
    return model


def _examples(model: Llada, config: PretrainConfig) -> Iterator[tuple[list[int], list[int]]]:
    """Yield prompts and responses as tokens, responses padded with end tokens; long ones are out.

    Raises:
        ConfigError: the responses are so long that next to none would be left.
    """
    num_too_long = 0
    for question, answer in corpus(config.seed + 1):
        prompt = encode_prompt(model.tokenizer, [{"role": "user", "content": question}])
        response = model.tokenizer(answer + "<|eot_id|>", add_special_tokens=False)["input_ids"]
        padding = config.gen_length - len(response)
        num_too_long = num_too_long + 1 if padding < 0 else 0
        if num_too_long == _PATIENCE:
            raise ConfigError(
                f"{_PATIENCE} responses in a row are longer than gen_length={config.gen_length}, "
                f"the last has {len(response)} tokens; raise gen_length or corpus_for_tokenizer."
            )
        if padding >= 0:
            yield prompt, response + [model.eos_id] * padding


def _loss(
    model: Llada, batch: list[tuple[list[int], list[int]]], generator: torch.Generator
) -> Tensor:
    prompts = [prompt for prompt, _ in batch]
    target: Int[Tensor, "B L"] = torch.tensor([response for _, response in batch])
    tokens, attention_mask = pad_prompts(model, prompts, target.shape[1])
    level = noise_levels(len(batch), generator)
    masked = masked_at(level, target.shape[1], generator)
    tokens[:, -target.shape[1] :] = target.masked_fill(masked, model.mask_id)
    chosen = torch.zeros_like(attention_mask)
    chosen[:, -target.shape[1] :] = masked
    logits = model(tokens, attention_mask, chosen)
    return masked_diffusion_loss(
        logits, target[masked], level[:, None].expand_as(masked)[masked], target.numel()
    )


def _schedule(step: int, config: PretrainConfig) -> float:
    """Return the share of the peak learning rate: linear warm-up, then a cosine to zero."""
    if step <= config.warmup_steps:
        return step / config.warmup_steps
    rest = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, rest)))

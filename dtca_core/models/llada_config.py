"""What a LLaDA config says: the sizes that are read, and the choices that are taken as given.

Fields about how weights were first drawn, or about the code that was published with them, say
nothing about the model and are not looked at.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtca_core.errors import ModelError

_FIXED = {
    "model_type": "llada",
    "block_type": "llama",
    "block_group_size": 1,
    "activation_type": "silu",
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "bias_for_layer_norm": False,
    "rope": True,
    "rope_full_precision": True,
    "rope_scaling": None,
    "alibi": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "multi_query_attention": None,
    "attention_layer_norm": False,
    "input_emb_norm": False,
    "weight_tying": False,
    "scale_logits": False,
    "attention_dropout": 0.0,
    "embedding_dropout": 0.0,
    "residual_dropout": 0.0,
}
"""Config fields that this implementation takes as given, also where they are left out."""


@dataclass(frozen=True, kw_only=True)
class LladaShape:
    """Sizes of a LLaDA model, in the field names of its published config."""

    d_model: int
    n_heads: int
    n_kv_heads: int
    n_layers: int
    mlp_hidden_size: int
    embedding_size: int
    max_sequence_length: int
    rope_theta: float
    rms_norm_eps: float
    mask_token_id: int
    eos_token_id: int
    pad_token_id: int

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.d_model // self.n_heads

    @classmethod
    def from_config(cls, config: Mapping[str, Any], origin: str) -> "LladaShape":
        """Return the shape that a published config describes, or raise ModelError."""
        for name, needed in _FIXED.items():
            found = config.get(name, needed)
            # Null, false and zero all say no.
            if found != needed and (found or needed):
                raise ModelError(
                    f"{origin} says {name}={found!r}; the LLaDA architecture here is "
                    f"{name}={needed!r} only. Use a LLaDA checkpoint, or add an adapter."
                )
        fields = cls.__dataclass_fields__
        if missing := [name for name in fields if name not in config]:
            raise ModelError(
                f"{origin} lacks {', '.join(missing)}; a LLaDA config holds these fields. "
                "Download the folder again."
            )
        if reason := _misfit(config):
            raise ModelError(f"{origin} says {reason}. Download the folder again.")
        numbers = {name: config[name] for name in fields}
        numbers |= {name: float(numbers[name]) for name in _SCALES}
        return cls(**numbers)


_SIZES = (
    "d_model",
    "n_heads",
    "n_kv_heads",
    "n_layers",
    "mlp_hidden_size",
    "embedding_size",
    "max_sequence_length",
)
_TOKENS = ("mask_token_id", "eos_token_id", "pad_token_id")
_SCALES = ("rope_theta", "rms_norm_eps")


def _misfit(config: Mapping[str, Any]) -> str:
    """Return what is impossible about the numbers of a config, or nothing."""
    config = {"vocab_size": config["embedding_size"], **config}
    for name in (*_SIZES, "vocab_size", *_TOKENS):
        low = 0 if name in _TOKENS else 1
        if type(config[name]) is not int or config[name] < low:
            return f"{name}={config[name]!r}; it needs an integer of at least {low}"
    for name in _SCALES:
        if type(config[name]) not in (int, float) or not 0 < config[name] < math.inf:
            return f"{name}={config[name]!r}; it needs a number above 0"
    return _token_misfit(config) or _size_misfit(config)


def _token_misfit(config: Mapping[str, Any]) -> str:
    """Return what is impossible about the tokens of a config, or nothing."""
    size, mask = config["embedding_size"], config["mask_token_id"]
    if config["vocab_size"] > size:
        return f"vocab_size={config['vocab_size']}, more than embedding_size={size}"
    for name in _TOKENS:
        if config[name] >= size:
            return f"{name}={config[name]}; its vocabulary has {size} tokens"
    for name in ("eos_token_id", "pad_token_id"):
        if config[name] == mask:
            return f"{name}={mask}, which is mask_token_id: what is real would be denoised"
    return ""


def _size_misfit(config: Mapping[str, Any]) -> str:
    """Return which sizes of a config do not fit together, or nothing."""
    for name, part in (("d_model", "n_heads"), ("n_heads", "n_kv_heads")):
        if config[name] % config[part]:
            return f"{name}={config[name]}, which is not a multiple of {part}={config[part]}"
    head_size = config["d_model"] // config["n_heads"]
    return f"heads that are {head_size} wide; rotation needs pairs" if head_size % 2 else ""

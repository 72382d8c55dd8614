"""LLaDA-8B-Instruct as it is published, without its weights: config, key names, tokenizer.

Config fields, special tokens and their ids are facts about the published folder. Its words are
not to be had here, so that the vocabulary below is single bytes and filler; the template is ours,
written to put the same tokens around the same words.
"""

import json
import math
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONFIG = {
    "activation_type": "silu",
    "alibi": False,
    "alibi_bias_max": 8.0,
    "architectures": ["LLaDAModelLM"],
    "attention_dropout": 0.0,
    "attention_layer_norm": False,
    "attention_layer_norm_with_affine": True,
    "auto_map": {
        "AutoConfig": "configuration_llada.LLaDAConfig",
        "AutoModelForCausalLM": "modeling_llada.LLaDAModelLM",
        "AutoModel": "modeling_llada.LLaDAModelLM",
    },
    "bias_for_layer_norm": False,
    "block_group_size": 1,
    "block_type": "llama",
    "d_model": 4096,
    "embedding_dropout": 0.0,
    "embedding_size": 126464,
    "eos_token_id": 126081,
    "flash_attention": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "init_cutoff_factor": None,
    "init_device": "meta",
    "init_fn": "mitchell",
    "init_std": 0.02,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "mask_token_id": 126336,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "mlp_ratio": 4,
    "model_type": "llada",
    "multi_query_attention": None,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "pad_token_id": 126081,
    "precision": "amp_bf16",
    "residual_dropout": 0.0,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_full_precision": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.46.3",
    "use_cache": False,
    "vocab_size": 126464,
    "weight_tying": False,
}
"""Every field of config.json."""

SMALL = {"d_model": 64, "n_heads": 4, "n_kv_heads": 4, "n_layers": 2, "mlp_hidden_size": 96}
"""Sizes that make a model of the published vocabulary small enough for a test."""

START, END, MASK = 126080, 126081, 126336
HEADER, HEADER_END, TURN_END = 126346, 126347, 126348
SPECIAL = {
    START: "<|startoftext|>",
    END: "<|endoftext|>",
    126082: "[CLS]",
    126083: "[gMASK]",
    **{126084 + i: f"<|reserved_token_{i}|>" for i in range(256)},
    MASK: "<|mdm_mask|>",
    126340: "<role>",
    126341: "</role>",
    126342: "<|arithmetic_start|>",
    126343: "<|arithmetic_end|>",
    126344: "<|number_start|>",
    126345: "<|number_end|>",
    HEADER: "<|start_header_id|>",
    HEADER_END: "<|end_header_id|>",
    TURN_END: "<|eot_id|>",
}
"""Special tokens by their ids."""

_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
)
_NAMED = {
    "bos_token": SPECIAL[START],
    "cls_token": "[CLS]",
    "eos_token": SPECIAL[END],
    "gmask_token": "[gMASK]",
    "pad_token": SPECIAL[END],
}


def shapes_of(config):
    """Return the shape of each published tensor: the layout of the 8B model, at any size."""
    width, hidden = config["d_model"], config["mlp_hidden_size"]
    kv_width = width // config["n_heads"] * config["n_kv_heads"]
    table = [config["embedding_size"], width]
    block = {
        "attn_norm": [width],
        "attn_out": [width, width],
        "ff_norm": [width],
        "ff_out": [width, hidden],
        "ff_proj": [hidden, width],
        "k_proj": [kv_width, width],
        "q_proj": [width, width],
        "up_proj": [hidden, width],
        "v_proj": [kv_width, width],
    }
    shapes = {"wte": table, "ln_f": [width], "ff_out": table}
    for i in range(config["n_layers"]):
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    return {f"model.transformer.{name}.weight": shape for name, shape in shapes.items()}


def write_config(folder, **changes):
    """Write config.json with other sizes, and return it."""
    config = {**CONFIG, **changes}
    Path(folder, "config.json").write_text(json.dumps(config, indent=2))
    return config


def write_tokenizer(folder):
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json as published.

    A byte is the token of its place in the sorted byte-level alphabet; what is between the bytes
    and the special tokens is filler that no text becomes.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = alphabet + [f"filler {i}" for i in range(len(alphabet), START)]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    added = [AddedToken(SPECIAL[i], normalized=False, special=True) for i in sorted(SPECIAL)]
    tokenizer.add_special_tokens(added)
    tokenizer.save(str(Path(folder, "tokenizer.json")))
    _write(folder, "special_tokens_map.json", _NAMED)
    _write(folder, "tokenizer_config.json", _tokenizer_config())


def _tokenizer_config():
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    return {
        "add_bos_token": False,
        "add_eos_token": False,
        "added_tokens_decoder": {
            str(i): {"content": token, **flags, "special": True} for i, token in SPECIAL.items()
        },
        "additional_special_tokens": [SPECIAL[i] for i in range(126340, 126346)],
        "chat_template": _TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "fast_tokenizer": True,
        "merges_file": None,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": 1000000000000000019884624838656,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "trust_remote_code": True,
        "vocab_file": None,
        **_NAMED,
    }


def _write(folder, name, value):
    Path(folder, name).write_text(json.dumps(value, indent=2))


def write_hollow_weights(folder, config, files=6):
    """Write safetensors files with headers alone: their tensors are holes that take no disk.

    Tensors are dealt out in turn, so that a layer is spread over files as in the published folder.
    """
    shapes = shapes_of(config)
    names = sorted(shapes)
    placed = {}
    for i in range(files):
        file = f"model-{i + 1:05d}-of-{files:05d}.safetensors"
        own = names[i::files]
        _write_hollow(Path(folder, file), {name: shapes[name] for name in own})
        placed |= dict.fromkeys(own, file)
    total_size = sum(math.prod(shape) for shape in shapes.values()) * 2
    index = {"metadata": {"total_size": total_size}, "weight_map": placed}
    _write(folder, "model.safetensors.index.json", index)


def _write_hollow(path, shapes):
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(file.tell() + end)

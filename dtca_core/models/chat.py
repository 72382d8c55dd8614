"""From messages to the tokens of a prompt, through the model's own chat template."""

from collections.abc import Mapping, Sequence
from typing import Any

from dtca_core.errors import ModelError


def encode_prompt(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the tokens of a conversation, up to where the assistant begins to speak."""
    if tokenizer is None or not tokenizer.chat_template:
        raise ModelError(
            "the model folder has no tokenizer with a chat template, and problems in words need "
            "one; add tokenizer.json and tokenizer_config.json of the published model."
        )
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])

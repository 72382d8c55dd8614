"""From messages to the tokens of a prompt: by a chat template, or by a text around them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtca_core.errors import ModelError

_SPECIAL = re.compile(r"<\|[a-z_]+\|>")


def encode_prompt(
    tokenizer: Any, messages: Sequence[Mapping[str, str]], prefill: str = ""
) -> list[int]:
    """Return the tokens of a conversation, up to where the assistant goes on after `prefill`.

    Raises:
        ModelError: there is no chat template, or it does not take these messages.
    """
    if tokenizer is None or not tokenizer.chat_template:
        raise ModelError(
            "the model folder has no tokenizer with a chat template, and problems in words need "
            "one; add tokenizer.json and tokenizer_config.json of the published model."
        )
    from jinja2 import TemplateError

    try:
        text = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
    except TemplateError as error:
        raise ModelError(
            f"the model's chat template fails on a prompt ({error}); give the chat_template of "
            "the published tokenizer_config.json."
        ) from None
    return list(tokenizer(text + prefill, add_special_tokens=False)["input_ids"])


def encode_between(tokenizer: Any, before: str, message: str, after: str) -> list[int]:
    """Return the tokens of a message between two texts that hold special tokens.

    Raises:
        ModelError: the tokenizer does not have one of these special tokens.
    """
    if tokenizer is None:
        raise ModelError(
            "the model folder has no tokenizer, and problems in words need one; add "
            "tokenizer.json of the published model."
        )
    known: set[str] = set(tokenizer.get_added_vocab())
    unknown = [name for name in _SPECIAL.findall(before + after) if name not in known]
    if unknown:
        raise ModelError(
            f"the protocol's prompt needs the special token {unknown[0]}, which the model's "
            "tokenizer does not have; use a protocol without a template of its own, such as plain."
        )
    return list(tokenizer(before + message + after, add_special_tokens=False)["input_ids"])

"""From messages to the tokens of a prompt, through the model's own chat template."""

from collections.abc import Mapping, Sequence
from typing import Any

from dtca_core.errors import ModelError


def encode_prompt(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the tokens of a conversation, up to where the assistant begins to speak.

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
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])

"""The tokenizer of a model folder, and whether it is the one that the model was trained with."""

from pathlib import Path
from typing import Any

from dtca_core.errors import ModelError
from dtca_core.models.folder import read_json, tokenizer_files

MASK, TURN_END = "<|mdm_mask|>", "<|eot_id|>"
"""What LLaDA's tokenizers call the mask and the end of a turn; neither has a field of its own."""


def load_tokenizer(folder: Path) -> Any:
    """Return the fast tokenizer of a model folder, or None where there is none.

    Raises:
        ModelError: one of its files is damaged; the message names the file or the folder.
    """
    if not (folder / "tokenizer.json").is_file():
        return None
    from transformers import PreTrainedTokenizerFast

    for path in tokenizer_files(folder):
        if path.suffix == ".json":
            read_json(path)  # a damaged file is named before it is parsed
    try:
        return PreTrainedTokenizerFast.from_pretrained(str(folder))
    # The parser raises bare Exceptions, and KeyErrors where a part is missing.
    except Exception as error:
        raise ModelError(
            f"{folder}/tokenizer.json is no tokenizer ({type(error).__name__}: {error}); "
            "fetch the folder again."
        ) from error


def token_id(tokenizer: Any, token: str) -> int | None:
    """Return the id of a token, or None where the vocabulary or the tokenizer lacks it."""
    return None if tokenizer is None else tokenizer.get_vocab().get(token)


def check_tokenizer(
    tokenizer: Any, *, vocab_size: int, mask_id: int, eos_id: int, origin: Path
) -> None:
    """Refuse a tokenizer whose ids are not those of the model.

    Raises:
        ModelError: it has more tokens than the model, or another id for mask or end, or pads
            with the mask: padding would be text to denoise.
    """
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= vocab_size:
        raise ModelError(
            f"{origin}: the tokenizer has an id {largest}, the model has {vocab_size} tokens; "
            "they belong to different models, fetch the folder again."
        )
    for what, found, needed in (
        ("mask token", token_id(tokenizer, MASK), mask_id),
        ("mask token", tokenizer.mask_token_id, mask_id),
        ("end token", tokenizer.eos_token_id, eos_id),
    ):
        if found not in (None, needed):
            raise ModelError(
                f"{origin}: the tokenizer's {what} is {found}, config.json says {needed}; "
                "they belong to different models, fetch the folder again."
            )
    if tokenizer.pad_token_id == mask_id:
        raise ModelError(
            f"{origin}: the tokenizer pads with the mask token {mask_id}, so that padding would "
            "be denoised; set pad_token in tokenizer_config.json to the end token."
        )

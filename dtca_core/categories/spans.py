"""Where each token's characters are in the decoded text, from the bytes of the whole sequence.

Decoding tokens one by one breaks a character that several tokens share, and the offsets of some
tokenizers are empty or repeated; neither is used.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

from transformers import PreTrainedTokenizerFast

from dtca_core.errors import DataError


def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for (GPT-2's rule)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(0x100) if byte not in printable]
    plain = {chr(byte): byte for byte in printable}
    return plain | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def is_special(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> list[bool]:
    """Return True where a token is left out of the text: end of text, padding, mask, roles."""
    added = tokenizer.added_tokens_decoder
    return [token in added and added[token].special for token in ids]


def token_spans(
    tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of the tokens without special ones, and each token's character span in it.

    A character belongs to the token that carries its first byte. So spans are monotone, each
    begins where the one before it ended, and joining the characters of all tokens gives the
    text. Empty (position, position) are the spans of special tokens, of tokens that decode to
    nothing, and of tokens that only carry the rest of the character before `position`.

    Args:
        tokenizer: of byte-level BPE, as LLaDA's is.
        ids: tokens of one response, in order.

    Returns:
        The text is `tokenizer.decode` with special tokens skipped and no clean-up of spaces;
        bytes that are not UTF-8 are U+FFFD in it.

    Raises:
        DataError: the bytes of the tokens do not rebuild the text that the tokenizer decodes.
    """
    pieces = [
        b"" if special else _token_bytes(tokenizer, token)
        for token, special in zip(ids, is_special(tokenizer, ids), strict=True)
    ]
    text, first_byte = _decode(b"".join(pieces))
    decoded = tokenizer.decode(
        list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    if text != decoded:
        raise DataError(
            f"the bytes of {len(ids)} tokens give {text[:40]!r}, but the tokenizer (decoder "
            f"{type(tokenizer.backend_tokenizer.decoder).__name__}) decodes them to "
            f"{decoded[:40]!r}. Spans need a byte-level BPE tokenizer: use a model that has one."
        )
    ends = accumulate((len(piece) for piece in pieces), initial=0)
    return text, list(pairwise(bisect_left(first_byte, end) for end in ends))


def _token_bytes(tokenizer: PreTrainedTokenizerFast, token: int) -> bytes:
    """Return what one token adds to the bytes; nothing for an id outside the vocabulary."""
    name: str | None = tokenizer.backend_tokenizer.id_to_token(token)
    if name is None:
        return b""
    # An added token may hold characters outside the alphabet; it then stands for itself.
    if all(character in _BYTE_OF for character in name):
        return bytes(_BYTE_OF[character] for character in name)
    return name.encode()


def _decode(raw: bytes) -> tuple[str, list[int]]:
    """Return the text and the first byte of each character; U+FFFD for what is not UTF-8."""
    text, first_byte, position = "", list[int](), 0
    while position < len(raw):
        try:
            valid, broken = raw[position:].decode(), 0
        except UnicodeDecodeError as error:
            valid, broken = raw[position : position + error.start].decode(), error.end - error.start
        for character in valid:
            first_byte.append(position)
            position += len(character.encode())
        text += valid
        if broken:
            first_byte.append(position)
            position += broken
            text += "\ufffd"
    return text, first_byte

"""The embedded model's tokenizer: byte-level BPE with LLaDA's special tokens and chat template."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

START, END, MASK = "<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>"
HEADER, HEADER_END, TURN_END = "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"
SPECIAL_TOKENS = (START, END, HEADER, HEADER_END, TURN_END, MASK)

_WORDS = r" ?\\boxed\{| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]|\s+"
"""A box is one token, a digit is one token, words keep the space before them."""

_CHAT_TEMPLATE = (
    f"{START}"
    "{% for message in messages %}"
    f"{HEADER}{{{{ message['role'] }}}}{HEADER_END}\n\n"
    f"{{{{ message['content'] | trim }}}}{TURN_END}"
    "{% endfor %}"
    "{% if add_generation_prompt %}"
    f"{HEADER}assistant{HEADER_END}\n\n"
    "{% endif %}"
)


def train_tokenizer(texts: Iterable[str], folder: Path) -> None:
    """Write the tokenizer of a corpus whose words become one token each; any text encodes."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        min_frequency=20,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["\n\n", "user", "assistant"] * 20 + list(texts), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=START, eos_token=END, pad_token=END, mask_token=MASK
    )
    fast.chat_template = _CHAT_TEMPLATE
    fast.save_pretrained(str(folder))

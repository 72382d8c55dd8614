"""How many tokens a core tags in a second: spans, words, categories, against spaCy alone.

    OMP_NUM_THREADS=1 python bench/categories.py OUTPUTS.parquet [--column generation] [--texts 500]

OUTPUTS is any Parquet file with a column of model outputs, special tokens included. LLaDA's
tokenizer is not at hand, so a byte-level BPE is trained on the outputs first, untimed. Every text
is checked: joining the characters of its tokens gives it back.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl
import torch
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dtca_core.categories import is_special, load_tagger, token_categories, token_spans

SPECIAL = ["<|endoftext|>", "<|startoftext|>", "<|eot_id|>", "<|mdm_mask|>"]
GARBAGE = 4096
R = TypeVar("R")
console = Console(highlight=False)


def train_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE of the texts with single digits, as LLaDA's has."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIAL,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def timed(name: str, num_tokens: int, num_words: int, work: Callable[[], R]) -> R:
    """Return what the work returns; print its CPU time and both rates."""
    begin = time.process_time()
    result = work()
    seconds = time.process_time() - begin
    console.print(
        f"{name:<24} {seconds:7.2f} s {num_tokens / seconds:10.0f} tokens/s "
        f"{num_words / seconds:10.0f} words/s"
    )
    return result


def main() -> None:
    """Measure each part, then all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("outputs", type=Path)
    parser.add_argument("--column", default="generation")
    parser.add_argument("--texts", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    column = pl.read_parquet(options.outputs)[options.column]
    outputs = column.sample(min(options.texts, len(column)), seed=0).to_list()
    tokenizer = train_tokenizer(outputs)
    ids = tokenizer(outputs)["input_ids"]
    special = [is_special(tokenizer, row) for row in ids]
    num_tokens = sum(not yes for row in special for yes in row)
    texts = [token_spans(tokenizer, row)[0] for row in ids]
    num_words = sum(map(len, load_tagger("spacy").tag(texts)))
    console.print(
        f"{len(texts)} texts, {num_tokens} tokens without special ones, {num_words} words"
    )

    def spans() -> list[tuple[str, list[tuple[int, int]]]]:
        return [token_spans(tokenizer, row) for row in ids]

    plain, mathematics = load_tagger("spacy"), load_tagger("math")
    found = timed("spans", num_tokens, num_words, spans)
    assert all("".join(text[a:b] for a, b in row) == text for text, row in found)
    timed("spaCy alone", num_tokens, num_words, lambda: plain.tag(texts))
    timed("with mathematics", num_tokens, num_words, lambda: mathematics.tag(texts))
    fresh = load_tagger("math")

    def everything() -> list[list[str]]:
        rows = spans()
        return token_categories(fresh, [t for t, _ in rows], [s for _, s in rows], special)

    timed("spans, words, categories", num_tokens, num_words, everything)
    if len(texts) <= 1000:  # what the cache holds
        timed("the same, from the cache", num_tokens, num_words, everything)
    broken = [tokenizer.convert_tokens_to_ids("ÿ")] * GARBAGE
    timed(f"{GARBAGE} invalid bytes", GARBAGE, 1, lambda: token_spans(tokenizer, broken))


if __name__ == "__main__":
    main()

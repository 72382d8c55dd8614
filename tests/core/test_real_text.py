"""Tests of spans and categories on text as models write it, by a tokenizer of LLaDA's kind.

LLaDA's own tokenizer is not at hand: a byte-level BPE with single digits and LLaDA's special tokens
is trained on the text itself.
"""

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dtca_core.categories import is_special, load_tagger, token_categories, token_spans

OUTPUTS = Path(__file__).parents[3] / "shared" / "data" / "llada8b_outputs.parquet"
SPECIAL = ["<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>", "<|start_header_id|>", "<|eot_id|>"]
END = "<|eot_id|>" + 3 * "<|endoftext|>"
WRITTEN = [
    "She has 3 + 4 = 7 pens.\n\n**Answer:** 7\n</reasoning>\n<answer>\n\\boxed{7}\n</answer>",
    "1. Add: \\(48 \\div 2 = 24\\), so <<48/2=24>>24.\r\n2. \\[ 24 \\times 3 = 72 \\]\r\n#### 72",
    "Half is $\\frac{1}{2}$ of $9.50\u00a0\u2014 that\u2019s \u201ccheap\u201d, "
    "5\u00a0% off \\text{ minutes}.",
    "### Plan\n- x^2 - 4x + 4 \u2264 0 \u21d2 x = 2 \u2713\n"
    "- na\u0308ive cafe\u0301 \U0001f469\u200d\U0001f4bb\U0001f642 done",
    "\u7b54\u6848\u662f 42\u3002 "
    "\u041e\u0442\u0432\u0435\u0442: 42 \u0643 \u0e01\u0e33 \ufffd \x00 \ufeffend",
    "",
    " \n\n\t ",
]


def trained(texts, vocab_size):
    """A byte-level BPE of these texts: special tokens first, digits one by one."""
    backend = Tokenizer(models.BPE())
    single = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([single, byte_level])
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIAL,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")


@cache
def written_tokenizer():
    return trained(WRITTEN, vocab_size=400)


@cache
def mathematics():
    return load_tagger("math")


def without_special(text):
    for token in SPECIAL:
        text = text.replace(token, "")
    return text


def aligned(tokenizer, texts):
    """Ids, text, spans and categories of each text; every span is checked to be exact."""
    rows = []
    for ids in tokenizer(texts)["input_ids"]:
        text, spans = token_spans(tokenizer, ids)
        assert "".join(text[start:end] for start, end in spans) == text
        rows.append((ids, text, spans, is_special(tokenizer, ids)))
    tagged = token_categories(
        mathematics(),
        [text for _, text, _, _ in rows],
        [spans for _, _, spans, _ in rows],
        [special for _, _, _, special in rows],
    )
    return [(*row, categories) for row, categories in zip(rows, tagged, strict=True)]


def check_rules(text, spans, categories):
    """Check the categories that the rules fix, whatever stands around."""
    for (start, end), category in zip(spans, categories, strict=True):
        characters = text[start:end].strip()
        if characters in {"+", "=", "^", "\\frac", "\\times", "\\div", "\\boxed", "%", "$"}:
            assert category == "SYM"
        elif characters in {"(", ")", "{", "}", "[", "]", "\\(", "\\)", "\\[", "\\]", "**"}:
            assert category == "PUNCT"
        elif start < end and not characters:
            assert category == "SPACE"


@pytest.mark.parametrize("text", WRITTEN)
def test_written_text_is_rebuilt_from_its_tokens(text):
    ((ids, rebuilt, spans, special, categories),) = aligned(written_tokenizer(), [text + END])
    assert rebuilt == text
    assert special[-4:] == [True] * 4
    assert categories[-4:] == ["SPECIAL"] * 4
    assert "SPECIAL" not in categories[:-4]
    assert len(categories) == len(ids)
    check_rules(rebuilt, spans, categories)


def test_pieces_of_characters_between_special_tokens_are_exact():
    # As a denoised response may end up: the bytes of characters, out of place.
    tokenizer = written_tokenizer()
    pieces = tokenizer("\U0001f642\u7b54")["input_ids"]
    end, mask = tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|mdm_mask|>"])
    ids = [*pieces[::-1], end, *pieces[1:], mask, *pieces[:1], end]
    text, spans = token_spans(tokenizer, ids)
    assert text == tokenizer.decode(ids, skip_special_tokens=True)
    assert "".join(text[start:end] for start, end in spans) == text
    special = is_special(tokenizer, ids)
    (row,) = token_categories(mathematics(), [text], [spans], [special])
    assert [c == "SPECIAL" for c in row] == special


def test_white_space_of_every_kind_is_white_space():
    text = "7\r\n\u00a0\u2003\t7"
    ((_, rebuilt, spans, _, categories),) = aligned(written_tokenizer(), [text])
    assert rebuilt == text
    inner = [c for (a, b), c in zip(spans, categories, strict=True) if text[a:b] != "7"]
    assert set(inner) == {"SPACE"}


def test_real_outputs_are_rebuilt_and_tagged_by_rule():
    # bench/categories.py does the same with every output there is.
    if not OUTPUTS.is_file():
        pytest.skip(f"{OUTPUTS} is absent")
    generations = pl.read_parquet(OUTPUTS)["generation"].sample(600, seed=3)
    tokenizer = trained(generations[:200].to_list(), vocab_size=2000)
    for text, ids in zip(generations, tokenizer(generations.to_list())["input_ids"], strict=True):
        rebuilt, spans = token_spans(tokenizer, ids)
        assert rebuilt == without_special(text)
        assert "".join(rebuilt[start:end] for start, end in spans) == rebuilt
    for _, text, spans, special, categories in aligned(tokenizer, generations[:30].to_list()):
        assert [c == "SPECIAL" for c in categories] == special
        check_rules(text, spans, categories)

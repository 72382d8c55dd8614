r"""Tests of reading the form of an answer: each form by an example, then what no text may do."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.evaluation.brackets import split_list, split_sides, split_tuple
from dtca_core.evaluation.forms import (
    Choice,
    Compound,
    Marked,
    Matrix,
    Piece,
    Quantity,
    Region,
    Relation,
    Span,
    Values,
    Words,
)
from dtca_core.evaluation.structure import MAX_LENGTH, expressions, read_answer
from dtca_core.evaluation.units import split_unit
from dtca_core.evaluation.words import is_words


def number(text, unit=""):
    return Quantity(text=text, unit=unit, value=Fraction(text.replace(",", "")))


def region(low, high, variable="", *, low_open=True, high_open=True):
    piece = Piece(low=low, high=high, low_open=low_open, high_open=high_open)
    return Region(pieces=(piece,), variable=variable)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1,234", number("1,234")),
        ("12 \\text{ cm}", number("12", "cm")),
        ("\\$18.90", number("18.90", "dollar")),
        ("$18", number("18", "dollar")),
        ("$18$", number("18")),
        ("50\\%", number("50", "percent")),
        ("4\\sqrt2", Quantity(text="4\\sqrt{2}")),
        ("\\text{June 20}", Words(text="June20".casefold())),
        ("1, 3, 5, \\ldots, 9", Words(text="1,3,5,\\ldots,9")),
        ("\\textbf{(C)}\\ 12", Choice(letter="C")),
        ("D) none", Choice(letter="D")),
        ("C", Quantity(text="C")),
        ("4210_{5}", Marked(mark="5", digits=("4210",))),
        ("52_{\\text{eight}}", Marked(mark="8", digits=("52",))),
        ("2:30 p.m.", Marked(mark=":", digits=("2", "30"), unit="pm")),
        ("3; 5", Values(items=(number("3"), number("5")))),
        ("\\{1, 2\\}", Values(items=(number("1"), number("2")))),
        ("3 and 1,000", Values(items=(number("3"), number("1,000")))),
        ("\\pm3", Values(items=(number("+3"), number("-3")))),
        ("\\varnothing", Values(items=())),
        ("x = 1 or 2", Values(items=(number("1"), number("2")))),
        (
            "[2, 1,000)",
            Span(
                opening="[",
                items=(number("2"), number("1"), number("000")),
                closing=")",
                texts=("2", "1", "000"),
            ),
        ),
        ("x > 2", region("2", "\\infty", "x")),
        ("3 \\ge y", region("-\\infty", "3", "y", high_open=False)),
        ("-2 \\le x < 7", region("-2", "7", "x", low_open=False)),
        ("x > 1 \\text{ and } x \\le 2", region("1", "2", "x", high_open=False)),
        ("x \\in (0, 1)", region("0", "1", "x")),
        ("\\{x : x < 3\\}", region("-\\infty", "3", "x")),
        ("all real numbers", region("-\\infty", "\\infty")),
        ("f(x) = 2x", Relation(sides=("f(x)", "2x"), operators=("=",))),
        ("x + y \\le 3", Relation(sides=("x + y", "3"), operators=("\\le",))),
        ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", Matrix(rows=((number("1"),), (number("2"),)))),
        ("6 ft 2 in", Compound(parts=(number("6", "ft"), number("2", "in")))),
        ("", Quantity(text="")),
    ],
)
def test_each_form_is_recognised(text, answer):
    assert read_answer(text) == answer


def test_x_unequal_to_a_number_is_the_line_without_it():
    two_halves = read_answer("x \\ne 3")
    assert two_halves.pieces == read_answer("(-\\infty, 3) \\cup (3, \\infty)").pieces
    assert two_halves.pieces == read_answer("\\mathbb{R} \\setminus \\{3\\}").pieces


def test_a_set_builder_and_a_union_of_inequalities_are_regions():
    union = read_answer("x < 1 \\text{ or } x > 2")
    assert union.variable == "x"
    assert union.pieces == read_answer("(-\\infty, 1) \\cup (2, \\infty)").pieces


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1,2", ["1", "2"]),
        ("1,234", ["1,234"]),
        ("1, 234", ["1", "234"]),
        ("(1,2), (3,4)", ["(1,2)", "(3,4)"]),
        ("21, 36, \\text{ and } 82", ["21", "36", "82"]),
        ("a or b", ["a", "b"]),
        ("band, orange", ["band", "orange"]),
        ("\\{1,2\\}", ["\\{1,2\\}"]),
    ],
)
def test_a_list_is_split_where_no_bracket_holds_it(text, parts):
    assert split_list(text) == parts


def test_a_tuple_is_split_at_every_comma_and_an_equation_at_its_signs():
    assert split_tuple("1,234; f(1,2)") == ["1", "234", "f(1,2)"]
    assert split_sides("f(a=1) = b \\le c") == (["f(a=1)", "b", "c"], ["=", "\\le"])


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("5 apples", "5", "apple"),
        ("30 \\text{ square units}", "30", "unit^2"),
        ("30 \\text{ sq. cm}", "30", "cm^2"),
        ("15\\mbox{ cm}^2", "15", "cm^2"),
        ("60 miles per hour", "60", "mi/h"),
        ("60 \\text{ m} / \\text{s}^2", "60", "m/s^2"),
        ("5cm", "5", "cm"),
        ("€12", "12", "euro"),
        ("-\\dollar 5", "-5", "dollar"),
        ("90^\\circ", "90", "degree"),
        ("5 \\sqrt{2} \\text{ inches}", "5 \\sqrt{2}", "in"),
        ("5x", "5x", ""),
        ("2 sin x", "2 sin x", ""),
        ("5 or more", "5 or more", ""),
        ("\\text{cm}", "\\text{cm}", ""),
    ],
)
def test_a_unit_is_cut_off_under_one_name(text, value, unit):
    assert split_unit(text) == (value, unit)


@pytest.mark.parametrize(
    "text", ["odd", "no", "\\text{east}", "Monday", "two words", "ответ", "奇数"]
)
def test_words_are_words(text):
    assert is_words(text)


@pytest.mark.parametrize(
    "text",
    ["ab", "2abc", "x", "\\alpha\\beta", "sin(x)", "6cab^2", "\\operatorname{lcm}(4,6)", "12"],
)
def test_mathematics_is_not(text):
    assert not is_words(text)


def test_the_parts_that_need_a_value_are_listed():
    assert expressions(read_answer("1, \\sqrt2")) == ["\\sqrt{2}"]
    assert expressions(read_answer("(\\pi, 3)")) == ["\\pi"]
    assert expressions(read_answer("x < \\sqrt2")) == ["-\\infty", "\\sqrt{2}"]
    assert expressions(read_answer("y = 2x")) == ["y", "2x"]
    assert expressions(read_answer("\\begin{pmatrix} e & 1 \\end{pmatrix}")) == ["e"]
    assert expressions(read_answer("Monday")) == []


def test_a_plus_minus_is_split_at_its_sign_and_not_at_a_command_that_begins_like_it():
    answer = read_answer("\\pmb{x} \\pm 1")
    assert [item.text for item in answer.items] == ["\\pmb{x} + 1", "\\pmb{x} - 1"]


PIECES = (
    "1 2 , ; ( ) [ ] { } \\{ \\} = < \\le \\in \\cup \\pm and or x ab \\text{ \\frac \\sqrt ^ _ : %"
)
pieces = st.sampled_from(PIECES.split())


@given(st.lists(pieces, max_size=40).map(" ".join))
def test_any_text_has_a_form(text):
    read_answer(text)


@pytest.mark.parametrize(
    "text",
    ["(", "\\{", "1,", "x=", "<", "\\cup", "\\pm", "a_", "(1,", "5 m ", "\\text{a}", "x_\\pm"],
)
def test_a_long_answer_takes_no_time(text):
    start = time.perf_counter()
    read_answer(text * (MAX_LENGTH // len(text) - 1) + ")")
    assert time.perf_counter() - start < 5

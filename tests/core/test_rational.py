"""Tests of reading rational numbers: every spelling is the exact number, nothing else is one."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.evaluation.latex import tidy
from dtca_core.evaluation.rational import MAX_NUMBER_LENGTH, rational

rationals = st.fractions(max_denominator=1000).filter(lambda q: abs(q) < 10**9)


def spellings(value):
    """Every way in which these tests write a rational number."""
    up, down = value.numerator, value.denominator
    sign = "-" if up < 0 else ""
    whole, part = divmod(abs(up), down)
    yield f"\\frac{{{up}}}{{{down}}}"
    yield f"{sign}\\dfrac{{{abs(up)}}}{{{down}}}"
    yield f"{sign}{abs(up)}/{down}"
    yield f" ${sign}{whole}\\frac{{{part}}}{{{down}}}$."
    yield f"{{{sign}{whole} {part}/{down}}}"
    if down == 1:
        yield f"{up:,}.0"
        yield f"{up:,}".replace(",", "{,}")
        yield f"{up:,}".replace(",", "\\,")
        yield f"{sign}00{abs(up)}".replace("-", "\u2212")


@given(rationals)
def test_every_spelling_of_a_number_is_the_number(value):
    assert {rational(tidy(text)) for text in spellings(value)} == {value}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=0, max_value=10**9))
def test_a_decimal_is_exactly_the_fraction_that_it_says(value):
    assert rational(f"{value:f}") == Fraction(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5e3", 1500),
        ("2.5E-1", Fraction(1, 4)),
        ("1.2 \\times 10^5", 120_000),
        ("3 \\times 10^{-2}", Fraction(3, 100)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("11,\\! 111,\\! 111,\\! 100", 11111111100),
        ("1 000 000", 1_000_000),
        ("2½", Fraction(5, 2)),
        ("11 5/6", Fraction(71, 6)),
        ("-2\\frac{1}{3}", Fraction(-7, 3)),
        ("3/-4", Fraction(-3, 4)),
        ("2.5 million", 2_500_000),
        ("3 \\text{ dozen}", 36),
        # By hand: 0.1666... = (16 - 1) / 90.
        ("0.1\\overline{6}", Fraction(1, 6)),
        ("0.\\overline{142857}", Fraction(1, 7)),
        ("2.\\overline{9}", 3),
    ],
)
def test_a_number_is_read_exactly(text, value):
    tidied = tidy(text).replace("\\text{ dozen}", "dozen")
    assert rational(tidied) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        ".",
        "1/0",
        "\\frac{1}{0}",
        "1,2000",
        "3, 500",
        "2 3",
        "5x",
        "2+1",
        "\\sqrt{4}",
        "1e",
    ],
)
def test_anything_else_is_no_number(text):
    assert rational(text) is None


def test_numbers_of_absurd_size_are_not_read():
    assert rational("9" * (MAX_NUMBER_LENGTH + 1)) is None
    for text in ("1e301", "1e9999", "1e99999", "1e-301"):
        assert rational(text) is None
    assert rational("1e300") == 10**300

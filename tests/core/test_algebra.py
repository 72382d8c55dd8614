"""Tests of algebra: identities, near misses, and texts that are no expressions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtca_core.evaluation.algebra import AlgebraCalculator
from dtca_core.evaluation.latex import tidy
from dtca_core.evaluation.parsing import is_readable
from dtca_core.evaluation.structure import read_answer


def same(one, other):
    return AlgebraCalculator().same_value(tidy(one), tidy(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"),
        ("(x-1)(x+3)", "x^2+2x-3"),
        ("\\sec^2(y)", "\\tan^2(y)+1"),
        ("\\ln 8", "3\\ln 2"),
        ("\\ln(x^2)", "2\\ln x"),  # wherever both are real
        ("\\frac{x^2-1}{x-1}", "x+1"),
        ("2024 \\cdot 2023!", "2024!"),
        ("\\frac{(n+1)!}{n!}", "n+1"),
        ("\\sum_{k=1}^{10} k", "55"),
        ("\\sum_{k=0}^{\\infty} \\frac{1}{2^k}", "2"),
        ("\\prod_{k=1}^{4} k", "24"),
        ("\\int_0^1 x^2 dx", "\\frac13"),
        ("14.0 + -1.0i", "14 - i"),
        ("(1+i)^2", "2i"),
        ("\\sqrt{-4}", "2i"),
        ("0.25x", "\\frac{x}{4}"),
        ("3\\frac{1}{2}x", "\\frac{7x}{2}"),
        ("\\lfloor 3.7 \\rfloor + |-3|", "6"),
        ("\\sqrt{2}\\cdot\\sqrt{3}-\\sqrt{6}", "0"),
        ("\\operatorname{lcm}(4,6)", "12"),
        ("f(2) + 1", "1 + f(2)"),
        ("2(3)+\\pi(2)", "6+2\\pi"),
        ("a_{1}b", "ba_1"),
        ("\\infty", "+\\infty"),
        ("2^{4^{8}}", "2^{65536}"),
        ("\\frac{3^{1000000000}}{3^{999999999}}", "3"),
        ("4^{5000000}", "2^{10^7}"),
        ("\\gcd(3^{100000000},9)", "9"),
        ("\\gcd(12, 18, 30) + \\operatorname{lcm}(4, 6)", "18"),
        ("\\gcd(a,b)", "\\gcd(a, b)"),
        ("\\gcd(10!, 7!)", "5040"),
        ("\\gcd(2^{10}-1, 2^{15}-1)", "31"),
        ("\\gcd(1234567890123456, 64)", "64"),
        ("6^{100000} \\cdot 6", "2^{100001} \\cdot 3^{100000+1}"),
        ("\\sqrt{8}^{3}", "2^{9/2}"),
        ("\\sqrt[3]{8}", "2"),
    ],
)
def test_equal_expressions_are_equal(one, other):
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(x-1)(x+3)", "x^2+2x+3"),
        ("\\sqrt{2}+10^{-100}", "\\sqrt{2}"),
        ("\\frac{1}{2006!}", "\\frac{1}{2004!}"),
        ("x", "y"),
        ("x_1", "x_2"),
        ("A", "a"),
        ("\\gcd(\\sqrt2, 2)", "\\sqrt2"),
        ("2^{100000}+1", "2^{100000}"),
        ("2^{4^{8^{2}}}", "2^{4^{8^{3}}}"),
        ("3^{1000000000}", "3^{999999999}"),
        ("\\infty", "-\\infty"),
        ("\\infty", "10^{100}"),
        ("f(2)", "f(3)"),
        ("i", "1"),
        ("\\sqrt{-x}", "x"),
        ("x+i", "x"),
        ("\\log 100", "10"),
    ],
)
def test_other_expressions_are_not(one, other):
    assert not same(one, other)
    assert not same(other, one)


@settings(max_examples=10)
@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 9))
def test_a_factored_quadratic_is_its_expansion(a, b, c):
    expanded = f"{c}x^2 + ({c * (a + b)})x + ({c * a * b})"
    factored = f"{c}(x + {{{a}}})(x + {{{b}}})"
    assert same(factored, expanded)
    assert not same(factored, f"{expanded} + 1")


@pytest.mark.parametrize(
    "text", ["\\frac{7}{1", "\\frac{1}{0}", "2 3", "5!!", "@#", "\\left(", "+", "x = ", "\\foo{"]
)
def test_what_has_no_meaning_is_unreadable_and_equals_nothing(text):
    assert not is_readable(tidy(text))
    assert not same(text, "1")


def test_a_relation_is_compared_up_to_a_factor():
    calculator = AlgebraCalculator()

    def same_relation(one, other):
        return calculator.same_relation(read_answer(one), read_answer(other))

    assert same_relation("34x+45y-20z-100=0", "-34x-45y+20z+100=0")
    assert same_relation("2a + 2b < 6", "3 > a + b")
    assert not same_relation("2a + 2b < 6", "a + b > 3")
    assert not same_relation("a + b = 3", "a^2 + ab = 3a")  # the factor is a
    assert not same_relation("a + b = 3", "a + b + c = 3")
    assert not same_relation("1 + 2 = 3", "2 + 2 = 4")  # says nothing about the answer
    assert not same_relation("a = b = c", "a = b")
    assert not same_relation("a = \\frac{1}{0}", "a = 1")


def test_regions_are_compared_as_sets():
    calculator = AlgebraCalculator()

    def same_region(one, other):
        return calculator.same_region(read_answer(one), read_answer(other))

    union = "(0,\\sqrt{4}) \\cup [2,3]"
    assert same_region(union, "0 < x \\le 3")
    assert not same_region(union, "0 < x < 3")
    assert same_region("a < x < b+b", "a < x < 2b")  # ends that have no order
    assert not same_region("a < x < b+b", "a < x < b")
    assert not same_region("x < \\frac{1}{0}", "x < 1")

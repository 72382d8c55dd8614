"""Tests of comparison: published and hand-worked values, then what must always hold."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.errors import DataError
from dtca_core.evaluation.comparison import paired_test, wilson_interval

counts = st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.floats(0.5, 0.999)
cells = st.integers(0, 40)
tables = st.tuples(cells, cells, cells, cells)


def compare(both, gained, lost, neither):
    """Compare two evaluations with these counts of problems."""
    before = [True] * both + [False] * gained + [True] * lost + [False] * neither
    after = [True] * both + [True] * gained + [False] * lost + [False] * neither
    return paired_test(before, after)


def test_wilson_of_eight_in_ten():
    # By hand, z = 1.959964, z^2 = 3.841459: centre (0.8 + 0.1920729) / 1.3841459 = 0.7167401,
    # spread 1.959964 sqrt(0.016 + 0.0096036) / 1.3841459 = 0.2265777.
    assert wilson_interval(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-7)


def test_wilson_of_newcombes_example():
    # Newcombe (1998), 81 of 263: 0.2553 to 0.3662.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_wilson_at_the_ends():
    # All of n: the lower end is n / (n + z^2).
    assert wilson_interval(10, 10) == (pytest.approx(10 / (10 + 3.8414588)), 1.0)
    assert wilson_interval(0, 10) == (0.0, pytest.approx(3.8414588 / (10 + 3.8414588)))
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(counts, levels)
def test_wilson_holds_the_share_mirrors_and_widens_with_the_level(count, level):
    successes, total = count
    low, high = wilson_interval(successes, total, level)
    assert 0 <= low <= high <= 1
    if total:
        assert low <= successes / total <= high
    mirrored = wilson_interval(total - successes, total, level)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-12)
    wider = wilson_interval(successes, total, (1 + level) / 2)
    assert wider[0] <= low + 1e-12
    assert wider[1] >= high - 1e-12


@pytest.mark.parametrize(("successes", "total"), [(3, 2), (-1, 2), (1, 0), (0, -1)])
def test_impossible_counts_are_refused(successes, total):
    with pytest.raises(DataError, match="impossible"):
        wilson_interval(successes, total)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_impossible_levels_are_refused(level):
    with pytest.raises(DataError, match="no confidence level"):
        wilson_interval(1, 2, level)
    with pytest.raises(DataError, match="no confidence level"):
        paired_test([True], [True], level)


def test_mcnemar_by_hand():
    # 7 gained and 1 lost: 2 (C(8,0) + C(8,1)) / 2^8 = 18 / 256.
    result = compare(both=1, gained=7, lost=1, neither=12)
    assert (result.total, result.gained, result.lost) == (21, 7, 1)
    assert result.difference == pytest.approx(6 / 21)
    assert result.p_value == 18 / 256
    # 5 gained and none lost: 2 / 2^5.
    assert compare(14, 5, 0, 22).p_value == 2 / 32


def test_newcombe_of_a_published_table():
    # Bentur et al. (2009), airways before and after transplantation, 1/1/7/12 of 21, as in
    # Fagerland, Lydersen, Laake (2014): 0.026 to 0.507, with the sign of this direction.
    assert compare(1, 7, 1, 12).interval == pytest.approx((0.026, 0.507), abs=5e-4)


def test_nothing_changed_is_no_evidence():
    result = compare(5, 0, 0, 5)
    assert (result.gained, result.lost, result.difference, result.p_value) == (0, 0, 0.0, 1.0)
    assert result.interval[0] < 0 < result.interval[1]


def test_nothing_compared_says_nothing():
    result = paired_test([], [])
    assert (result.total, result.difference, result.p_value) == (0, 0.0, 1.0)
    assert result.interval == (-1.0, 1.0)


def test_verdicts_that_cannot_be_paired_are_refused():
    with pytest.raises(DataError, match="2 and 1 verdicts"):
        paired_test([True, False], [True])


def test_thousands_of_changes_are_exact():
    assert compare(0, 2500, 2500, 0).p_value == 1.0
    # 3000 gained, none lost: 2 / 2^3000 is below the smallest float, and no overflow on the way.
    assert compare(0, 3000, 0, 0).p_value == 0.0
    # The normal approximation with z = 100 / sqrt(2500) = 2 gives 0.0455; exact is a bit more.
    assert compare(0, 1300, 1200, 0).p_value == pytest.approx(0.0477, abs=2e-4)


@given(tables)
def test_the_p_value_is_the_binomial_tail(table):
    _, gained, lost, _ = table
    n, k = gained + lost, min(gained, lost)
    tail = sum(comb(n, i) for i in range(k + 1)) / 2**n
    assert compare(*table).p_value == pytest.approx(min(1.0, 2 * tail))


@given(tables)
def test_swapping_the_two_flips_the_sign_and_nothing_else(table):
    both, gained, lost, neither = table
    forth, back = compare(both, gained, lost, neither), compare(both, lost, gained, neither)
    assert forth.p_value == back.p_value
    assert forth.difference == -back.difference
    assert forth.interval == pytest.approx((-back.interval[1], -back.interval[0]), abs=1e-12)


@given(tables)
def test_the_interval_holds_the_difference_within_its_range(table):
    result = compare(*table)
    low, high = result.interval
    assert -1 <= low <= result.difference <= high <= 1

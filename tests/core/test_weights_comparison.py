"""Tests of the comparison of two weight artifacts: by hand, then by property and simulation."""

from statistics import NormalDist

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.randomness import stream
from dtca_core.weights import CategoryEstimate, WeightArtifact, compare_weights
from dtca_core.weights.comparison import FEWEST_RESPONSES, holm

probabilities = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.5, 1.0]), max_size=8)


def estimate(mean, error=0.1, **changes):
    values = {"weight": 1.0, "mean_delta_p": mean, "standard_error": error, "count": 100}
    return CategoryEstimate(**{**values, "num_responses": 50, **changes})


def artifact(changes=None, **categories):
    values = {"tagger": "math", "tagger_version": "math-1", "normalisation": "minmax"}
    values |= {"low": 0.8, "high": 1.2, "min_count": 20, "unseen_weight": 1.0}
    return WeightArtifact(**{**values, **(changes or {})}, categories=categories)


def compared(before, after, share_responses=False):
    comparison = compare_weights(before, after, share_responses=share_responses)
    return {change.category: change for change in comparison.changes}


def test_worked_example():
    # NUM: 0.5 over sqrt(0.03^2 + 0.04^2) = 0.05 is z = 10. NOUN: 0.1 over 0.05 is z = 2, p =
    # 0.0455; of two tested it is the second, so Holm leaves it, and it has moved. VERB alone would
    # be z = 2 too.
    before = artifact(NUM=estimate(1.0, 0.03), NOUN=estimate(0.5, 0.03))
    after = artifact(NUM=estimate(1.5, 0.04), NOUN=estimate(0.4, 0.04))
    changes = compared(before, after)
    assert list(changes) == ["NOUN", "NUM"]
    assert changes["NUM"].difference == 0.5
    assert changes["NUM"].standard_error == pytest.approx(0.05)
    assert changes["NOUN"].p_value == pytest.approx(2 * NormalDist().cdf(-2.0))
    assert changes["NUM"].has_moved
    assert changes["NOUN"].has_moved


def test_a_difference_that_is_one_of_many_is_noise():
    # z = 2 in one of five that are tested: 5 * 0.0455 = 0.23.
    before = artifact(**{name: estimate(0.5, 0.03) for name in "ABCDE"})
    after = artifact(A=estimate(0.4, 0.04), **{name: estimate(0.5, 0.04) for name in "BCDE"})
    changes = compared(before, after)
    assert changes["A"].p_value == pytest.approx(5 * 2 * NormalDist().cdf(-2.0))
    assert not any(change.has_moved for change in changes.values())


def test_worked_example_of_holm():
    # Sorted: 0.01 * 4, 0.02 * 3, then 0.03 * 2 = 0.06 again, and 0.5 * 1.
    assert holm([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([]) == []


@given(probabilities)
def test_holm_keeps_the_order_and_lowers_nothing(p_values):
    corrected = holm(p_values)
    assert all(before <= after <= 1.0 for before, after in zip(p_values, corrected, strict=True))
    assert [after for _, after in sorted(zip(p_values, corrected, strict=True))] == sorted(
        corrected
    )


UNTESTED = {
    "few tokens": {"count": 19},
    "few responses": {"num_responses": FEWEST_RESPONSES - 1},
    "unknown responses": {"num_responses": None},
    "no error": {"error": None},
}


@pytest.mark.parametrize("changes", UNTESTED.values(), ids=UNTESTED)
def test_what_is_too_little_known_is_shown_and_not_tested(changes):
    sure, unsure = artifact(NUM=estimate(1.0)), artifact(NUM=estimate(9.0, **changes))
    for pair in ((sure, unsure), (unsure, sure)):
        change = compared(*pair)["NUM"]
        assert abs(change.difference) == 8.0
        assert (change.p_value, change.standard_error, change.has_moved) == (None, None, False)


def test_a_category_of_one_side_is_shown():
    changes = compared(artifact(NUM=estimate(1.0)), artifact(NOUN=estimate(1.0)))
    assert (changes["NOUN"].before, changes["NOUN"].difference) == (None, None)
    assert (changes["NUM"].after, changes["NUM"].has_moved) == (None, False)


def test_without_noise_any_difference_is_one():
    still = compared(artifact(NUM=estimate(1.0, 0.0)), artifact(NUM=estimate(1.0, 0.0)))
    moved = compared(artifact(NUM=estimate(1.0, 0.0)), artifact(NUM=estimate(1.1, 0.0)))
    assert (still["NUM"].p_value, moved["NUM"].p_value) == (1.0, 0.0)


def test_what_makes_two_artifacts_hard_to_compare_is_said():
    one = artifact(NUM=estimate(1.0))
    assert compare_weights(one, one, share_responses=False).caveats == ()
    other = artifact({"tagger_version": "spacy-1", "high": 1.5}, NUM=estimate(1.0))
    taggers, scales, shared = compare_weights(one, other, share_responses=True).caveats
    assert "taggers differ (math-1; spacy-1)" in taggers
    assert "[0.8, 1.2] min_count 20; minmax [0.8, 1.5] min_count 20" in scales
    assert "same contributions" in shared


def test_noise_alone_marks_a_category_about_as_rarely_as_promised():
    # 400 pairs of artifacts of 5 categories that differ by noise: at most 5 % mark any of them.
    noise = torch.randn(400, 2, 5, generator=stream(0, "noise")) * 0.1
    marked = 0
    for before, after in noise.tolist():
        sides = [
            artifact(**{f"C{i}": estimate(1 + value) for i, value in enumerate(side)})
            for side in (before, after)
        ]
        marked += any(change.has_moved for change in compared(*sides).values())
    assert 0.02 <= marked / 400 <= 0.08

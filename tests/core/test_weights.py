"""Tests of category weights: by hand, by property, by specification, and their file."""

import json
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import WeightsConfig
from dtca_core.errors import ArtifactError, DataError
from dtca_core.randomness import stream
from dtca_core.weights import (
    CategoryEstimate,
    WeightArtifact,
    bootstrap,
    category_weights,
    estimate_weights,
    ratio_weights,
)
from tests.reference import specification

TOLERANCE = 1e-12
names = st.sampled_from(["NOUN", "VERB", "NUM", "SYM", "SPACE"])
amounts = st.floats(0, 8) | st.sampled_from([0.0, 0.5, 1.0])
means = st.dictionaries(names, amounts, min_size=1)
tokens = st.lists(st.tuples(amounts, names, st.sampled_from("abcd")), min_size=1, max_size=40)
bounds = st.tuples(st.floats(0.1, 2), st.floats(0.1, 2)).map(sorted)


class NamedTagger:
    """A tagger's name and version, which is all that an estimate needs of it."""

    name, version = "math", "test-1"

    def tag(self, texts):
        raise NotImplementedError


def estimated(rows, **settings):
    """The artifact of (delta_p, category, response) rows; every category counts, if not told so."""
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    config = WeightsConfig(**{"min_count": 1, "bootstrap_samples": 100, **settings})
    return estimate_weights(*columns, config, NamedTagger())


# By hand, each token in a response of its own: NOUN 0.5 and 1.0, VERB 0.25 twice, NUM 2.0; one
# token has no defined contribution.
# Means 0.75, 0.25, 2.0. Min-max onto [0.8, 1.2]: NOUN 0.8 + 0.4 * 0.5 / 1.75 = 0.9142857...
# Token-weighted mean weight: (2 * 0.9142857 + 2 * 0.8 + 1.2) / 5 = 0.9257142...
WORKED = [
    (0.5, "NOUN", "a"),
    (0.25, "VERB", "b"),
    (1.0, "NOUN", "c"),
    (None, "NOUN", "d"),
    (2.0, "NUM", "e"),
    (0.25, "VERB", "f"),
]
NOUN_WEIGHT = 0.8 + 0.4 * 0.5 / 1.75
MEAN_WEIGHT = (2 * NOUN_WEIGHT + 2 * 0.8 + 1.2) / 5


# -------------------------------------------------------------------------------- arithmetic


def test_worked_example_of_min_max():
    weights = category_weights({"NOUN": 0.75, "VERB": 0.25, "NUM": 2.0})
    assert weights == pytest.approx({"NOUN": NOUN_WEIGHT, "VERB": 0.8, "NUM": 1.2}, abs=TOLERANCE)


def test_equal_means_and_a_single_category_weigh_the_midpoint():
    assert category_weights({"NOUN": 0.3, "VERB": 0.3}) == {"NOUN": 1.0, "VERB": 1.0}
    assert category_weights({"NOUN": 0.3}, low=0.5, high=0.7) == {"NOUN": 0.6}
    assert category_weights({}) == {}


def test_worked_example_of_the_ratio():
    # The mean is 1: NOUN is inside the bounds, VERB and NUM are clipped.
    weights = ratio_weights({"NOUN": 1.1, "VERB": 0.25, "NUM": 2.0}, mean=1.0)
    assert weights == {"NOUN": 1.1, "VERB": 0.8, "NUM": 1.2}


def test_a_mean_of_zero_makes_every_ratio_one():
    assert ratio_weights({"NOUN": 0.0, "VERB": 0.0}, mean=0.0) == {"NOUN": 1.0, "VERB": 1.0}
    assert ratio_weights({"NOUN": 0.0}, mean=0.0, low=0.2, high=0.6) == {"NOUN": 0.6}


@given(means, bounds)
def test_min_max_stays_in_bounds_and_keeps_the_order(means, bounds):
    low, high = bounds
    weights = category_weights(means, low, high)
    assert all(low - TOLERANCE <= weight <= high + TOLERANCE for weight in weights.values())
    by_mean = sorted(means, key=lambda c: means[c])
    assert all(weights[a] <= weights[b] + TOLERANCE for a, b in pairwise(by_mean))


@given(means, st.floats(0.25, 4), st.floats(0, 4))
def test_min_max_ignores_scale_and_shift_of_the_means(means, scale, shift):
    if max(means.values()) - min(means.values()) > 1e-3:
        moved = {c: scale * m + shift for c, m in means.items()}
        assert category_weights(moved) == pytest.approx(category_weights(means), abs=1e-9)


@given(means, bounds)
def test_min_max_equals_the_specification(means, bounds):
    assert category_weights(means, *bounds) == specification().category_weights(means, *bounds)


# ------------------------------------------------------------------------------------ estimate


def test_worked_example_of_an_estimate():
    artifact = estimated(WORKED)
    noun, verb, num = (artifact.categories[c] for c in ("NOUN", "VERB", "NUM"))
    assert (noun.mean_delta_p, noun.count) == (0.75, 2)
    # NOUN: variance 2 * 0.25^2 / (2 - 1), so the error of the mean is sqrt(0.125 / 2) = 0.25.
    assert noun.standard_error == 0.25
    assert (verb.standard_error, num.standard_error) == (0.0, None)
    assert noun.weight == pytest.approx(NOUN_WEIGHT, abs=TOLERANCE)
    assert (verb.weight, num.weight) == pytest.approx((0.8, 1.2), abs=TOLERANCE)
    assert artifact.unseen_weight == pytest.approx(MEAN_WEIGHT, abs=TOLERANCE)
    assert (artifact.tagger, artifact.tagger_version) == ("math", "test-1")


def test_a_rare_category_has_the_mean_weight_and_decides_nothing():
    artifact = estimated(WORKED, min_count=2)
    # NOUN and VERB alone set the scale now: 1.2 and 0.8, two tokens each.
    assert artifact.categories["NOUN"].weight == pytest.approx(1.2, abs=TOLERANCE)
    assert artifact.categories["VERB"].weight == pytest.approx(0.8, abs=TOLERANCE)
    assert artifact.categories["NUM"].weight == pytest.approx(1.0, abs=TOLERANCE)
    assert artifact.categories["NUM"].mean_delta_p == 2.0
    assert artifact.unseen_weight == artifact.categories["NUM"].weight


def test_no_frequent_category_gives_the_midpoint_to_all():
    for normalisation in ("minmax", "ratio"):
        artifact = estimated(WORKED, min_count=3, low=0.5, high=0.7, normalisation=normalisation)
        weights = {estimate.weight for estimate in artifact.categories.values()}
        assert weights == {artifact.unseen_weight} == {0.6}


def test_nothing_measured_gives_the_midpoint():
    assert estimated([]).unseen_weight == 1.0
    artifact = estimated([(None, "NOUN", "a")])
    assert (artifact.categories, artifact.unseen_weight) == ({}, 1.0)


def test_worked_example_of_an_estimate_by_ratio():
    # The mean of a token is (0.5 + 1.0 + 0.25 + 0.25 + 2.0) / 5 = 0.8; NOUN is 0.75 / 0.8.
    artifact = estimated(WORKED, normalisation="ratio")
    assert artifact.categories["NOUN"].weight == pytest.approx(0.9375, abs=TOLERANCE)
    assert artifact.categories["VERB"].weight == 0.8
    assert artifact.categories["NUM"].weight == 1.2
    assert artifact.unseen_weight == pytest.approx((2 * 0.9375 + 1.6 + 1.2) / 5, abs=TOLERANCE)


def test_bounds_change_the_weights():
    wide = estimated(WORKED, low=0.5, high=2.0)
    assert wide.categories["VERB"].weight == 0.5
    assert wide.categories["NUM"].weight == pytest.approx(2.0, abs=TOLERANCE)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.5])
def test_a_contribution_that_cannot_be_is_refused(wrong):
    with pytest.raises(DataError, match=rf"token 1 \(VERB\) has delta_p={wrong}"):
        estimated([(0.5, "NOUN", "a"), (wrong, "VERB", "a")])


def test_columns_and_arrays_are_read_alike():
    values, category, response = [0.5, 0.25, 1.0, 2.0], ["NOUN", "VERB", "NOUN", "NUM"], "abac"
    config = WeightsConfig(min_count=1, bootstrap_samples=100)
    series = (
        pl.Series([*values, None], dtype=pl.Float32),
        pl.Series([*category, "NUM"]),
        pl.Series([*response, "d"]),
    )
    expected = estimated(list(zip(values, category, response, strict=True)))
    assert estimate_weights(*series, config, NamedTagger()) == expected
    array = np.array(values)
    assert estimate_weights(array, category, [*response], config, NamedTagger()) == expected


@given(tokens)
def test_means_and_weights_equal_the_specification(tokens):
    reference = specification()
    expected = reference.category_means(*[*zip(*tokens, strict=True)][:2])
    estimates = estimated(tokens).categories
    assert {c: estimate.count for c, estimate in estimates.items()} == {
        c: count for c, (_, count) in expected.items()
    }
    means = {c: estimate.mean_delta_p for c, estimate in estimates.items()}
    assert means == pytest.approx({c: mean for c, (mean, _) in expected.items()}, abs=TOLERANCE)
    weights = {c: estimate.weight for c, estimate in estimates.items()}
    assert weights == reference.category_weights(means)


@given(tokens, st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_tokens_changes_nothing(tokens, random, min_count):
    shuffled = random.sample(tokens, len(tokens))
    assert estimated(shuffled, min_count=min_count) == estimated(tokens, min_count=min_count)


@given(tokens)
def test_undefined_contributions_change_nothing(tokens):
    undefined = [
        row for value, c, b in tokens for row in ((value, c, b), (None, c, "z"), (None, "X", b))
    ]
    assert estimated(undefined) == estimated(tokens)


@given(tokens, st.integers(1, 4), st.sampled_from(["minmax", "ratio"]))
def test_the_unseen_weight_is_the_mean_weight_of_frequent_tokens(tokens, min_count, normalisation):
    artifact = estimated(tokens, min_count=min_count, normalisation=normalisation)
    counted = [
        artifact.weight_of(c) for _, c, _ in tokens if artifact.categories[c].count >= min_count
    ]
    expected = sum(counted) / len(counted) if counted else 1.0
    assert artifact.unseen_weight == pytest.approx(expected, abs=TOLERANCE)


# ----------------------------------------------------------------------------- errors, intervals


def test_worked_example_of_an_error_over_responses():
    # Response a has 1 and 1, b has 4: m = 2. s_b - m n_b is -2 and 2, so the error is
    # sqrt(2 / 1 * (4 + 4)) / 3 = 4 / 3. Token by token it would be sqrt(6 / 2 / 3) = 1.
    artifact = estimated([(1.0, "NUM", "a"), (1.0, "NUM", "a"), (4.0, "NUM", "b")])
    assert artifact.categories["NUM"].standard_error == pytest.approx(4 / 3, abs=TOLERANCE)
    assert (artifact.categories["NUM"].count, artifact.categories["NUM"].num_responses) == (3, 2)


@given(st.lists(amounts, min_size=2, max_size=20))
def test_responses_of_one_token_have_the_usual_error_of_a_mean(values):
    error = bootstrap.cluster_standard_error(values, [1] * len(values))
    assert error == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), abs=1e-9)


def test_a_category_of_one_response_has_no_error_and_no_interval():
    num = estimated([(1.0, "NUM", "a"), (3.0, "NUM", "a"), (1.0, "NOUN", "b")]).categories["NUM"]
    assert (num.standard_error, num.mean_interval, num.weight_interval) == (None, None, None)


def test_worked_example_of_an_interval_of_a_mean():
    # Four responses of one token, 0, 0, 0 and 4: the mean of a resample is how often the last is
    # drawn. P(k <= 2) = 243/256 = 0.949 and P(k <= 3) = 0.996, so 97.5 % is at 3; P(0) = 0.316.
    rows = [(0.0, "NUM", "a"), (0.0, "NUM", "b"), (0.0, "NUM", "c"), (4.0, "NUM", "d")]
    for seed in range(3):
        num = estimated(rows, bootstrap_samples=2000, seed=seed).categories["NUM"]
        assert num.mean_interval == [0.0, 3.0]


def test_worked_example_of_an_interval_of_a_weight():
    # NOUN is 1 everywhere. NUM is 0 in response a and 4 in b, one token each: in a quarter of the
    # resamples each its mean is 0, below NOUN, or 4, above it, else 2. So NUM weighs 0.8 or 1.2
    # and NOUN the other one, as often.
    rows = [(1.0, "NOUN", "a"), (0.0, "NUM", "a"), (1.0, "NOUN", "b"), (4.0, "NUM", "b")]
    categories = estimated(rows).categories
    assert categories["NUM"].weight_interval == pytest.approx([0.8, 1.2])
    assert categories["NOUN"].weight_interval == pytest.approx([0.8, 1.2])
    assert categories["NOUN"].mean_interval == [1.0, 1.0]
    assert categories["NUM"].mean_interval == [0.0, 4.0]


def test_a_rare_category_has_the_interval_of_the_mean_weight():
    rows = [(float(i % 3), "NOUN", f"a{i}") for i in range(9)]
    rows += [(1.0, "VERB", f"b{i}") for i in range(9)] + [(9.0, "NUM", "a1"), (9.0, "NUM", "b1")]
    categories = estimated(rows, min_count=5, bootstrap_samples=500).categories
    low, high = categories["NUM"].weight_interval
    assert 0.8 < low < categories["NUM"].weight < high < 1.2


def test_tokens_of_one_response_do_not_count_as_so_many():
    # The same tokens said twice as long in each response are no more evidence.
    rows = [(float(i % 5), "NUM", f"r{i}") for i in range(40)]
    once, twice = estimated(rows).categories["NUM"], estimated(rows + rows).categories["NUM"]
    assert twice.standard_error == pytest.approx(once.standard_error, abs=TOLERANCE)
    assert twice.mean_interval == once.mean_interval
    fresh = estimated(rows + [(value, c, b + "+") for value, c, b in rows]).categories["NUM"]
    assert fresh.standard_error < 0.75 * once.standard_error


@given(tokens, st.integers(1, 4))
def test_intervals_are_ordered_and_within_what_was_seen(tokens, min_count):
    for c, estimate in estimated(tokens, min_count=min_count).categories.items():
        if estimate.mean_interval is None:
            assert estimate.num_responses == 1
            continue
        seen = [value for value, name, _ in tokens if name == c]
        low, high = estimate.mean_interval
        # The totals are rounded at the 15th digit.
        assert min(seen) - 1e-9 <= low <= high <= max(seen) + 1e-9
        low, high = estimate.weight_interval
        assert 0.8 - TOLERANCE <= low <= high <= 1.2 + TOLERANCE


def test_more_responses_make_an_interval_narrower_and_the_seed_moves_it():
    few = [(float(i % 7), "NUM", f"r{i}") for i in range(20)]
    many = [(float(i % 7), "NUM", f"r{i}") for i in range(500)]

    def interval(rows, **settings):
        return estimated(rows, **settings).categories["NUM"].mean_interval

    def width(rows):
        low, high = interval(rows)
        return high - low

    assert width(many) < width(few) / 3
    assert interval(few, seed=1) != interval(few, seed=0)
    assert interval(few, bootstrap_samples=101) != interval(few)


def test_intervals_do_not_depend_on_threads_or_on_the_chunks(monkeypatch):
    rows = [(math.sin(i) ** 2, "NUM" if i % 3 else "NOUN", f"r{i % 50}") for i in range(400)]
    expected = estimated(rows)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert estimated(rows) == expected
    finally:
        torch.set_num_threads(threads)
    totals = torch.rand(50, 3, dtype=torch.float64, generator=stream(0, "test"))
    drawn = bootstrap.resampled_totals(totals, 100, stream(0, "draws"))
    order = torch.randperm(3, generator=stream(0, "order"))
    again = bootstrap.resampled_totals(totals[:, order], 100, stream(0, "draws"))
    assert torch.equal(again, drawn[:, order])
    torch.testing.assert_close(drawn.mean(0), totals.sum(0), rtol=0.1, atol=0.0)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    # 300 data sets of 40 responses: 3 tokens each, that share what is peculiar to the response.
    generator, covered = stream(0, "coverage"), 0
    for _ in range(300):
        own = torch.rand(40, 1, generator=generator) + torch.rand(40, 3, generator=generator) / 4
        sums = own.sum(1, keepdim=True).double()
        drawn = bootstrap.resampled_totals(sums, 200, generator)
        ((low, high),) = bootstrap.percentile_intervals(drawn / (40 * 3))
        covered += low <= 0.625 <= high
    assert 0.90 <= covered / 300 <= 0.98


# -------------------------------------------------------------------------------- weights of tokens


def test_weights_of_tokens_are_padded_with_zero():
    artifact = estimated(WORKED)
    weights = artifact.weights_of([["NUM", "NOUN", "X"], [], ["VERB"]], length=4)
    expected = [[1.2, NOUN_WEIGHT, MEAN_WEIGHT, 0], [0, 0, 0, 0], [0.8, 0, 0, 0]]
    torch.testing.assert_close(weights, torch.tensor(expected))
    assert weights.dtype == torch.float32
    assert artifact.weights_of([], length=4).shape == (0, 4)


@given(st.lists(st.lists(names | st.just("ADV"), max_size=6), max_size=4), st.integers(6, 9))
def test_weights_of_tokens_are_the_weights_of_their_categories(categories, length):
    artifact = estimated(WORKED)
    weights = artifact.weights_of(categories, length)
    for row, response in zip(weights.tolist(), categories, strict=True):
        expected = [artifact.weight_of(c) for c in response]
        assert row == pytest.approx(expected + [0.0] * (length - len(response)), abs=1e-6)


# ------------------------------------------------------------------------------------------ file


@given(tokens, st.integers(1, 4))
def test_a_written_artifact_is_read_back(tmp_path_factory, tokens, min_count):
    path = tmp_path_factory.mktemp("weights") / "weights.json"
    artifact = estimated(tokens, min_count=min_count)
    artifact.write(path)
    assert WeightArtifact.read(path) == artifact
    first = path.read_bytes()
    WeightArtifact.read(path).write(path)
    assert path.read_bytes() == first


def test_the_file_reads_well_and_its_order_is_stable(tmp_path):
    path = tmp_path / "weights.json"
    artifact = estimated(WORKED)
    backwards = dict(reversed(artifact.categories.items()))
    artifact.model_copy(update={"categories": backwards}).write(path)
    values = json.loads(path.read_text(encoding="utf-8"))
    assert list(values["categories"]) == ["NOUN", "NUM", "VERB"]
    assert list(values["categories"]["NUM"]) == list(CategoryEstimate.model_fields)
    assert list(values) == list(WeightArtifact.model_fields)
    assert values["categories"]["NUM"]["standard_error"] is None
    assert '\n      "weight": 1.2,\n' in path.read_text(encoding="utf-8")


def test_intervals_are_a_line_each_and_need_not_be_there(tmp_path):
    path = tmp_path / "weights.json"
    artifact = estimated(WORKED)
    artifact.write(path)
    low, high = artifact.categories["NOUN"].mean_interval
    assert f'\n      "mean_interval": [{low}, {high}],\n' in path.read_text(encoding="utf-8")
    values = json.loads(path.read_text(encoding="utf-8"))
    for estimate in values["categories"].values():
        for name in ("weight_interval", "mean_interval", "num_responses"):
            del estimate[name]
    path.write_text(json.dumps(values))
    read = WeightArtifact.read(path)
    assert read.categories["NOUN"].mean_interval is None
    assert read.weight_of("NOUN") == artifact.weight_of("NOUN")


def test_an_edited_weight_is_what_training_gets(tmp_path):
    path = tmp_path / "weights.json"
    estimated(WORKED).write(path)
    path.write_text(path.read_text().replace('"weight": 1.2', '"weight": 3'))
    assert WeightArtifact.read(path).weight_of("NUM") == 3.0


EDITS = [
    ('"weight": 1.2', '"weight": "1.2"', "categories.NUM.weight = '1.2': .*valid number"),
    ('"weight": 1.2', '"weight": 0', "categories.NUM.weight = 0: .*greater than 0"),
    ('"weight": 1.2', '"weight": NaN', "categories.NUM.weight = nan: .*finite"),
    ('"weight": 1.2', '"weight": Infinity', "categories.NUM.weight = inf: .*finite"),
    ('"weight": 1.2', '"wieght": 1.2', r"categories.NUM.weight: Field required\n.*NUM.wieght"),
    ('"count": 2', '"count": 1.5', "categories.NOUN.count = 1.5: .*integer"),
    ('"format_version": 2', '"format_version": 1', "format_version = 1: .*2"),
    ('"minmax"', '"softmax"', "normalisation = 'softmax': .*'minmax' or 'ratio'"),
    ('"unseen_weight"', '"unseen"', "unseen_weight: Field required"),
    ('"categories"', '"categories', "read .*line 9"),
    ("{", "", "read .*line 2"),
]


@pytest.mark.parametrize(("old", "new", "message"), EDITS)
def test_a_malformed_file_is_refused_by_file_and_field(tmp_path, old, new, message):
    path = tmp_path / "weights.json"
    estimated(WORKED).write(path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(
        ArtifactError, match=rf"(?s)weight file .*weights\.json cannot be.*{message}"
    ):
        WeightArtifact.read(path)


def test_what_is_no_weight_file_is_refused(tmp_path):
    path = tmp_path / "weights.json"
    with pytest.raises(ArtifactError, match=r"weights\.json cannot be read .*No such file"):
        WeightArtifact.read(path)
    path.write_text("[1.2]")
    with pytest.raises(ArtifactError, match=r"weights\.json holds a list, not an object"):
        WeightArtifact.read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ArtifactError, match=r"weights\.json cannot be read .*utf-8"):
        WeightArtifact.read(path)

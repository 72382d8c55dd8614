"""Tests of the commit rules: each by hand, then against a loop that takes one token at a time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.config import SamplerConfig
from dtca_core.sampling.commit import committed_positions, quota
from tests.strategies import bools, floats, sizes, tensors


def sampler(length, **options):
    """A config of one block."""
    return SamplerConfig(
        gen_length=length, block_length=length, steps=options.pop("steps", length), **options
    )


def committed(confidence, config, step=0, masked=None):
    """The rule on one row in which everything is masked unless `masked` says otherwise."""
    confidence = torch.tensor([confidence], dtype=torch.float64)
    masked = torch.ones_like(confidence).bool() if masked is None else torch.tensor([masked])
    return committed_positions(confidence, masked, step, config).nonzero()[:, 1].tolist()


# ----------------------------------------------------------------------------------- quotas


@pytest.mark.parametrize(
    ("length", "steps", "expected"),
    [
        (8, 8, [1] * 8),
        (8, 4, [2, 2, 2, 2]),
        (8, 1, [8]),
        # By hand: 8 = 3 + 3 + 2, the larger ones first; 24 = 3 * 4 + 4 * 3.
        (8, 3, [3, 3, 2]),
        (24, 7, [4, 4, 4, 3, 3, 3, 3]),
        # More steps than tokens: one each, then nothing is left.
        (2, 5, [1, 1, 0, 0, 0]),
    ],
)
def test_quotas_by_hand(length, steps, expected):
    config = sampler(length, steps=steps)
    assert [quota(step, config) for step in range(steps)] == expected


def test_quotas_are_those_of_a_block():
    # By hand: 4 blocks of 8 share 12 steps, so each has 3.
    config = SamplerConfig(gen_length=32, block_length=8, steps=12)
    assert [quota(step, config) for step in range(3)] == [3, 3, 2]


@given(st.integers(1, 40), st.integers(1, 60))
def test_quotas_add_up_and_never_grow(length, steps):
    config = sampler(length, steps=steps)
    quotas = [quota(step, config) for step in range(steps)]
    assert sum(quotas) == length
    assert quotas == sorted(quotas, reverse=True)
    assert max(quotas) - min(quotas) <= 1


def test_a_quota_takes_the_most_confident_and_the_earlier_of_equals():
    config = sampler(4, steps=2)
    assert committed([0.1, 0.9, 0.5, 0.8], config) == [1, 3]
    assert committed([0.5, 0.9, 0.5, 0.5], config) == [0, 1]
    assert committed([0.5] * 4, config) == [0, 1]
    assert committed([0.9, 0.1, 0.9, 0.2], config, masked=[False, True, False, True]) == [1, 3]
    assert committed([0.9, 0.1, 0.9, 0.2], config, masked=[False, True, False, False]) == [1]


# -------------------------------------------------------------------- threshold and factor


def test_threshold_by_hand():
    config = sampler(4, threshold=0.6)
    assert committed([0.6, 0.59, 0.9, 0.7], config) == [0, 2, 3]
    # Nothing reaches it: the best alone, and the earlier of two.
    assert committed([0.1, 0.5, 0.3, 0.5], config) == [1]
    assert committed([0.9, 0.1, 0.2, 0.9], config, masked=[False, True, True, False]) == [2]
    assert committed([0.0] * 4, sampler(4, threshold=0.0)) == [0, 1, 2, 3]


def test_factor_by_hand():
    # By hand, at factor 1: rank 1 always, rank 2 needs 1 - 1/3 = 0.667, rank 3 needs 0.75, rank 4
    # needs 0.8.
    config = sampler(4, factor=1.0)
    assert committed([0.1, 0.05, 0.05, 0.05], config) == [0]
    assert committed([0.7, 0.8, 0.6, 0.6], config) == [0, 1]
    assert committed([0.74, 0.8, 0.79, 0.1], config) == [1, 2]
    # The run ends at rank 3; that rank 4 would have passed its own test does not count.
    assert committed([0.9, 0.9, 0.74, 0.74], config) == [0, 1]
    assert committed([0.9, 0.85, 0.8, 0.8], config) == [0, 1, 2, 3]


@pytest.mark.parametrize("factor", [0.1, 0.3, 0.7])
def test_factor_compares_in_double_precision(factor):
    # A confidence of exactly 1 - factor/3 is accepted at rank 2, and the next number below is not.
    limit = 1 - factor / 3
    below = torch.nextafter(torch.tensor(limit).double(), torch.tensor(0.0).double()).item()
    assert committed([1.0, limit], sampler(2, factor=factor)) == [0, 1]
    assert committed([1.0, below], sampler(2, factor=factor)) == [0]


def test_a_large_factor_takes_only_what_is_masked():
    config = sampler(4, factor=99.0)
    assert committed([0.1, 0.2, 0.3, 0.4], config, masked=[True, False, True, False]) == [0, 2]


@pytest.mark.parametrize("options", [{}, {"threshold": 0.5}, {"factor": 1.0}])
def test_a_row_without_masks_commits_nothing_and_holds_up_nobody(options):
    # DS05
    confidence = torch.tensor([[0.9, 0.9], [0.4, 0.3]], dtype=torch.float64)
    masked = torch.tensor([[False, False], [True, True]])
    for step in (0, 1):
        chosen = committed_positions(confidence, masked, step, sampler(2, **options))
        assert chosen.tolist() == [[False, False], [True, False]]


# ------------------------------------------------------------------------------- the loop


def one_at_a_time(confidence, masked, step, config):
    """The rules as a loop over one row, from the most confident position down."""
    order = [i for i in range(len(confidence)) if masked[i]]
    order.sort(key=lambda i: (-confidence[i], i))
    taken = []
    for n, i in enumerate(order, 1):
        if config.threshold is not None:
            accepted = confidence[i] >= config.threshold
        elif config.factor is not None:
            accepted = confidence[i] >= 1 - config.factor / (n + 1)
        else:
            accepted = n <= quota(step, config)
        if n > 1 and not accepted:
            break
        taken.append(i)
    return sorted(taken)


@st.composite
def rows_in_a_block(draw):
    """Confidence with many ties, and what is masked; in places a whole row is decided."""
    shape = (draw(sizes), draw(st.integers(1, 9)))
    return draw(tensors(shape, floats(0, 1))).double(), draw(bools(shape))


rules = st.one_of(
    st.integers(1, 12).map(lambda steps: {"steps": steps}),
    floats(0, 1).map(lambda threshold: {"threshold": threshold}),
    st.floats(0.01, 8).map(lambda factor: {"factor": factor}),
)


@given(rows_in_a_block(), rules, st.integers(0, 11))
def test_rules_agree_with_the_loop(rows, options, step):
    confidence, masked = rows
    config = sampler(confidence.shape[1], **options)
    chosen = committed_positions(confidence, masked, step, config)
    for b in range(len(masked)):
        expected = one_at_a_time(confidence[b].tolist(), masked[b].tolist(), step, config)
        assert chosen[b].nonzero().flatten().tolist() == expected
    assert torch.equal(chosen.any(1), masked.any(1))


@given(rows_in_a_block(), rules, st.randoms())
def test_permuting_rows_permutes_what_is_committed(rows, options, random):
    confidence, masked = rows
    config = sampler(confidence.shape[1], **options)
    order = random.sample(range(len(masked)), len(masked))
    chosen = committed_positions(confidence, masked, 0, config)
    permuted = committed_positions(confidence[order], masked[order], 0, config)
    assert torch.equal(permuted, chosen[order])

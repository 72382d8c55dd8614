"""Tests of proposals: by hand, then the distribution they are drawn from."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.sampling.propose import propose
from tests.strategies import floats, tensors

NUM_DRAWS = 100_000


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def proposals(logits, *, forbidden=(), suppressed=(), temperature=0.0, generators=None):
    """Proposals with a stream of their own for all positions, unless `generators` says else."""
    return propose(
        logits,
        forbidden=forbidden,
        suppressed=suppressed,
        temperature=temperature,
        generators=generators or [(seeded(), len(logits))],
    )


def test_greedy_by_hand():
    # By hand: the odds are 1 : 2 : 5, so the third token has 5/8.
    token, confidence = proposals(torch.tensor([[1.0, 2.0, 5.0]]).log())
    assert token.tolist() == [2]
    assert confidence.dtype == torch.float64
    torch.testing.assert_close(confidence.item(), 5 / 8, rtol=1e-6, atol=0.0)


def test_a_forbidden_token_is_not_proposed_but_keeps_its_share():
    # By hand: the third token is out of reach, and the second still has 2 of 8.
    token, confidence = proposals(torch.tensor([[1.0, 2.0, 5.0]]).log(), forbidden=[2])
    assert token.tolist() == [1]
    torch.testing.assert_close(confidence.item(), 2 / 8, rtol=1e-6, atol=0.0)


def test_a_suppressed_token_leaves_the_distribution():
    # By hand: without the third token the second has 2 of 3.
    token, confidence = proposals(torch.tensor([[1.0, 2.0, 5.0]]).log(), suppressed=[2])
    assert token.tolist() == [1]
    torch.testing.assert_close(confidence.item(), 2 / 3, rtol=1e-6, atol=0.0)


def test_equals_go_to_the_smaller_token():
    token, _ = proposals(torch.zeros(2, 5), forbidden=[0])
    assert token.tolist() == [1, 1]


def test_confidence_is_free_of_noise_and_temperature():
    logits = torch.randn(64, 7, generator=seeded())
    token, confidence = proposals(logits, temperature=3.0)
    expected = logits.double().softmax(-1).gather(1, token[:, None]).squeeze(1)
    torch.testing.assert_close(confidence, expected)
    assert (token != logits.argmax(-1)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_logits_are_left_as_they_are(dtype):
    logits = torch.randn(4, 6, generator=seeded(), dtype=torch.float64).to(dtype)
    before = logits.clone()
    proposals(logits, forbidden=[1], suppressed=[2], temperature=1.0)
    assert torch.equal(logits, before)


def test_nothing_masked_is_nothing_proposed():
    token, confidence = proposals(torch.zeros(0, 5), temperature=1.0, generators=[(seeded(), 0)])
    assert token.shape == confidence.shape == (0,)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_softmax(temperature):
    # DS09: logits in bfloat16, as a model gives them; noise must not be drawn in that precision.
    logits = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0, -2.0, -4.0, 9.0], dtype=torch.bfloat16)
    token, _ = proposals(logits.expand(NUM_DRAWS, -1), forbidden=[7], temperature=temperature)
    counts = torch.bincount(token, minlength=8).double()
    assert counts[7] == 0
    expected = NUM_DRAWS * (logits[:7].double() / temperature).softmax(-1)
    chi_square = ((counts[:7] - expected) ** 2 / expected).sum().item()
    # The upper 0.1 % point of chi-square with 6 degrees of freedom.
    assert chi_square < 22.46


def test_rare_tokens_are_drawn_as_often_as_they_should_be():
    # Low precision cuts the tail of the noise, and with it the rare tokens.
    probability = 2e-4
    odds = torch.tensor([math.log(1 - probability), math.log(probability)])
    token, _ = proposals(odds.expand(NUM_DRAWS, -1), temperature=1.0)
    # By hand: 20 are expected, with a standard deviation of 4.5.
    assert 7 <= int(token.sum()) <= 33


rows = st.integers(1, 4).flatmap(lambda n: tensors((n, 6), floats(-4, 4)))


@given(rows, rows, st.sampled_from([0.0, 0.7, 1.0]), st.integers(0, 99))
def test_a_row_does_not_see_its_neighbours(own, neighbour, temperature, seed):
    alone, sure_alone = proposals(
        own, temperature=temperature, generators=[(seeded(seed), len(own))]
    )
    for order in (1, -1):
        parts = [(own, seed), (neighbour, seed + 1)][::order]
        together, sure = proposals(
            torch.cat([part for part, _ in parts]),
            temperature=temperature,
            generators=[(seeded(s), len(part)) for part, s in parts],
        )
        mine = slice(len(own)) if order == 1 else slice(len(neighbour), None)
        assert torch.equal(together[mine], alone)
        assert torch.equal(sure[mine], sure_alone)


@given(rows, st.sets(st.integers(0, 5), max_size=4), st.floats(0, 4), st.integers(0, 99))
def test_what_is_forbidden_or_suppressed_never_comes(logits, excluded, temperature, seed):
    forbidden, suppressed = sorted(excluded)[::2], sorted(excluded)[1::2]
    token, confidence = proposals(
        logits,
        forbidden=forbidden,
        suppressed=suppressed,
        temperature=temperature,
        generators=[(seeded(seed), len(logits))],
    )
    assert not excluded & set(token.tolist())
    assert ((confidence > 0) & (confidence <= 1)).all()

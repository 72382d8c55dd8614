"""Tests of the entropy estimates and their balance: by hand, by property, by specification."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.entropy import (
    balance_factor,
    batch_entropy_balance,
    entropy_balance,
    entropy_change,
    entropy_change_exact,
    entropy_flows,
)
from dtca_core.objective import token_statistics
from tests.reference import specification
from tests.strategies import entropy_changes

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]
changes = st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=32)
limits = st.floats(0, 1) | st.sampled_from([0.0, 0.2, 1.0])


def balance_of(values, limit):
    """Balance one response of one step in which every token is optimised."""
    change = torch.tensor(values).view(1, 1, -1)
    return entropy_balance(change, torch.ones_like(change, dtype=torch.bool), limit).item()


def random_policies(count, size, dtype, seed):
    """Probabilities [K V], a token of each row and a signal of each row."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(count, size, generator=generator, dtype=dtype)
    token = torch.randint(size, (count,), generator=generator)
    return logits.softmax(-1), token, torch.randn(count, generator=generator, dtype=dtype)


# ------------------------------------------------------------------------------- estimates


def test_change_worked_example():
    # By hand: p = 0.5 and H = 1 at signal 2: -2 (0.5)^2 (log 0.5 + 1) = -0.5 (0.30685) = -0.15343.
    # With p = 0.25 at H = 1: -2 (0.75)^2 (-1.38629 + 1) = 0.43458.
    log_p = torch.tensor([0.5, 0.25]).log()
    change = entropy_change(torch.full((2,), 2.0), log_p, torch.ones(2))
    torch.testing.assert_close(change, torch.tensor([-0.15342641, 0.43458116]))


def test_exact_change_worked_example():
    # By hand: p = (3/4, 1/4), token 0, signal 1. H = 0.75 (0.28768) + 0.25 (1.38629) = 0.56234.
    # log p + H is 0.27465 and -0.82396; the sum of p^2 (log p + H) is 0.15449 - 0.05150 = 0.10299;
    # -(0.75 x 0.27465 - 0.10299) = -0.10299.
    log_p = torch.tensor([0.75, 0.25], dtype=torch.float64).log()
    entropy = torch.tensor([0.5623351446188083], dtype=torch.float64)
    collision = torch.tensor([0.10299490], dtype=torch.float64)
    change = entropy_change_exact(torch.ones_like(entropy), log_p[:1], entropy, collision)
    assert change.item() == pytest.approx(-0.10299490, abs=1e-7)


@given(st.floats(-3, 3, width=32), st.floats(-9, 0, width=32), st.floats(0, 5, width=32))
def test_change_flips_and_scales_with_the_signal(signal, log_p, entropy):
    signal, log_p, entropy = (torch.tensor([v]) for v in (signal, log_p, entropy))
    for estimate in (
        entropy_change,
        lambda *of_token: entropy_change_exact(*of_token, torch.tensor([0.1])),
    ):
        change = estimate(signal, log_p, entropy)
        assert torch.equal(estimate(-signal, log_p, entropy), -change)
        assert torch.equal(estimate(2 * signal, log_p, entropy), 2 * change)


def test_a_certain_token_changes_no_entropy():
    certain = torch.zeros(1)
    assert entropy_change(torch.ones(1), certain, certain).item() == 0.0
    assert entropy_change_exact(torch.ones(1), certain, certain, certain).item() == 0.0


def test_change_keeps_its_digits_where_p_is_close_to_one():
    # By hand: 1 - p = 1e-6 to leading order, so the change is -(1e-6)^2 (1e-5 - 1e-6) = -9e-18.
    change = entropy_change(torch.ones(1), torch.tensor([-1e-6]), torch.tensor([1e-5]))
    assert change.item() == pytest.approx(-9e-18, rel=1e-4, abs=0)


def test_exact_change_is_the_derivative_of_entropy():
    # One step of size h on signal x log p(token), by autograd on the logits.
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 9, generator=generator, dtype=torch.float64, requires_grad=True)
    token = torch.arange(5)
    chosen = logits.log_softmax(-1)[torch.arange(5), token]
    ascent = torch.autograd.grad(chosen.sum(), logits)[0]

    def entropy_at(h):
        log_p = (logits + h * ascent).log_softmax(-1)
        return -(log_p.exp() * log_p).sum(-1)

    slope = (entropy_at(1e-5) - entropy_at(-1e-5)) / 2e-5
    log_p = logits.log_softmax(-1)
    p, entropy = log_p.exp(), entropy_at(0.0)
    collision = (p.square() * (log_p + entropy[:, None])).sum(-1)
    exact = entropy_change_exact(torch.ones_like(chosen), chosen, entropy, collision)
    torch.testing.assert_close(exact, slope.detach(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 5, 50])
def test_changes_agree_with_the_specification(size, dtype):
    p, token, signal = random_policies(12, size, dtype, seed=size)
    log_p = p.gather(-1, token[:, None])[:, 0].log()
    entropy = -(p * p.log()).sum(-1)
    collision = (p.square() * (p.log() + entropy[:, None])).sum(-1)
    paper, exact = [], []
    for row, k, s in zip(p.double().numpy(), token.tolist(), signal.tolist(), strict=True):
        h = specification().entropy(row)
        paper.append(specification().entropy_change(s, row[k], h))
        exact.append(specification().entropy_change_exact(s, row, k))
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(
        entropy_change(signal, log_p, entropy), torch.tensor(paper, dtype=dtype), **near
    )
    torch.testing.assert_close(
        entropy_change_exact(signal, log_p, entropy, collision),
        torch.tensor(exact, dtype=dtype),
        **near,
    )


def test_exact_change_agrees_with_the_specification_on_token_statistics():
    p, token, signal = random_policies(12, 20, torch.float32, seed=3)
    logits = torch.cat([torch.full((12, 1), 99.0), p.log()], dim=1)
    found = token_statistics(logits, token + 1, mask_id=0)
    change = entropy_change_exact(signal, found.log_p, found.entropy, found.collision)
    rows = zip(p.double().numpy(), token.tolist(), signal.tolist(), strict=True)
    expected = [specification().entropy_change_exact(s, row, k) for row, k, s in rows]
    near = {"rtol": TOLERANCE[torch.float32], "atol": TOLERANCE[torch.float32]}
    torch.testing.assert_close(change, torch.tensor(expected), **near)


# --------------------------------------------------------------------------------- balance


def test_balance_worked_example():
    # By hand: P = 0.5 + 0.25 and N = 2.25; the last token is outside B_t.
    # lambda = (2.25 - 0.75) / (2.25 + 0.75) = 0.5, and the default limit stops it at 0.2.
    change = torch.tensor([[[0.5, -2.25, 0.25, 99.0]]])
    optimised = torch.tensor([[[True, True, True, False]]])
    assert entropy_balance(change, optimised, limit=1.0).tolist() == [0.5]
    torch.testing.assert_close(entropy_balance(change, optimised), torch.tensor([0.2]))
    rise, fall = entropy_flows(change, optimised)
    assert (rise.tolist(), fall.tolist()) == ([0.75], [2.25])


def test_batch_balance_worked_example():
    # By hand: response 0 only rises, by 1, and response 1 only falls, by 3: each alone is left at
    # 0, together lambda = (3 - 1) / (3 + 1) = 0.5.
    change = torch.tensor([[[1.0, 0.0]], [[-1.0, -2.0]]])
    optimised = torch.ones(2, 1, 2, dtype=torch.bool)
    assert entropy_balance(change, optimised, limit=1.0).tolist() == [0.0, 0.0]
    assert batch_entropy_balance(change, optimised, limit=1.0).tolist() == [0.5, 0.5]
    torch.testing.assert_close(batch_entropy_balance(change, optimised), torch.tensor([0.2, 0.2]))


def test_factor_worked_example():
    # By hand: lambda 0.25 turns rises into 1.25, falls into 0.75, and leaves 0 alone.
    change = torch.tensor([[[3.0, -0.1, 0.0, torch.nan]], [[3.0, -0.1, 0.0, 1.0]]])
    factor = balance_factor(change, torch.tensor([0.25, -0.25]))
    assert factor.tolist() == [[[1.25, 0.75, 1.0, 1.0]], [[0.75, 1.25, 1.0, 0.75]]]


@given(changes)
def test_rises_and_falls_cancel_at_limit_one(values):
    rise = sum(v for v in values if v > 0)
    fall = -sum(v for v in values if v < 0)
    if min(rise, fall) > 1e-3:
        balance = balance_of(values, limit=1.0)
        leftover = (1 + balance) * rise - (1 - balance) * fall
        assert abs(leftover) < 1e-5 * (rise + fall)


@given(changes, limits)
def test_balance_stays_within_the_limit_and_flips_with_the_sign(values, limit):
    balance = balance_of(values, limit)
    assert abs(balance) <= limit + 1e-7
    assert balance_of([-v for v in values], limit) == -balance


@given(st.lists(st.floats(0, 8, width=32), min_size=1, max_size=32))
def test_one_sided_change_is_left_alone(values):
    assert balance_of(values, limit=1.0) == 0.0


@given(entropy_changes(), st.randoms())
def test_balance_permutes_with_responses_and_ignores_padding(changed, random):
    change, optimised = changed
    balance = entropy_balance(change, optimised)
    order = random.sample(range(len(change)), len(change))
    torch.testing.assert_close(entropy_balance(change[order], optimised[order]), balance[order])
    pad = (0, 2, 0, 1)
    padded_change = torch.nn.functional.pad(change, pad, value=torch.nan)
    padded = entropy_balance(padded_change, torch.nn.functional.pad(optimised, pad, value=False))
    torch.testing.assert_close(padded, balance)


@given(entropy_changes(), st.sampled_from([0.25, 8.0]))
def test_balance_ignores_the_scale_of_change(changed, scale):
    # Tiny numbers are left out: they round when they are scaled.
    change, optimised = changed
    change = change.where(change.abs() > 1e-6, 0.0)
    torch.testing.assert_close(
        entropy_balance(change * scale, optimised), entropy_balance(change, optimised)
    )


@given(entropy_changes(), limits)
def test_batch_balance_is_the_balance_of_one_long_response(changed, limit):
    change, optimised = changed
    joined = entropy_balance(change.view(1, 1, -1), optimised.view(1, 1, -1), limit)
    together = batch_entropy_balance(change, optimised, limit)
    torch.testing.assert_close(together, joined.expand(len(change)))


def test_a_limit_of_zero_is_the_base_method():
    change = torch.tensor([[[0.5, -2.25, 0.0]]])
    balance = entropy_balance(change, torch.ones_like(change, dtype=torch.bool), limit=0.0)
    assert balance_factor(change, balance).tolist() == [[[1.0, 1.0, 1.0]]]


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2, 3), (2, 3, 0)])
def test_balance_of_nothing_is_zero(shape):
    change, optimised = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    for balance in (entropy_balance, batch_entropy_balance):
        assert balance(change, optimised).tolist() == [0.0] * shape[0]
    assert balance_factor(change, entropy_balance(change, optimised)).shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 7), (8, 2, 40)])
def test_balance_agrees_with_the_specification(shape, dtype):
    generator = torch.Generator().manual_seed(shape[-1])
    change = torch.randn(shape, generator=generator, dtype=dtype)
    change[torch.rand(shape, generator=generator) < 0.1] = 0.0
    change[-1] = change[-1].abs()
    optimised = torch.rand(shape, generator=generator) < 0.7
    near = {"rtol": TOLERANCE[torch.float32], "atol": TOLERANCE[torch.float32]}
    for limit in (0.05, 0.2, 1.0):
        balance = entropy_balance(change, optimised, limit)
        factor = balance_factor(change, balance)
        for b in range(shape[0]):
            of_response = change[b][optimised[b]].tolist()
            expected, factors = specification().entropy_balance(of_response, limit)
            assert balance[b].item() == pytest.approx(expected, abs=1e-5)
            torch.testing.assert_close(factor[b][optimised[b]], torch.tensor(factors), **near)


def test_nothing_of_entropy_carries_gradient():
    leaf = torch.rand(1, 2, 3, requires_grad=True)
    optimised = torch.ones(1, 2, 3, dtype=torch.bool)
    made = [
        entropy_change(leaf, -leaf, leaf),
        entropy_change_exact(leaf, -leaf, leaf, leaf),
        *entropy_flows(leaf - 0.5, optimised),
        entropy_balance(leaf - 0.5, optimised),
        batch_entropy_balance(leaf - 0.5, optimised),
        balance_factor(leaf - 0.5, leaf[0, 0, :1]),
    ]
    assert not any(t.requires_grad for t in made)
    assert all(math.isfinite(t.sum().item()) for t in made)

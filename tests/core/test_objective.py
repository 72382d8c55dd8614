"""Tests of the objective: statistics of tokens, the policy loss, the k3 divergence."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dtca_core.objective import k3_kl, policy_loss, token_statistics
from tests.reference import specification
from tests.strategies import floats, tensors

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = [torch.float32, torch.float64]


def random_logits(count, size, seed, scale=3.0):
    """Logits [K V], mask id 0, and a token of each row that is not the mask."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(count, size, generator=generator)
    return logits, torch.randint(1, size, (count,), generator=generator)


# ------------------------------------------------------------------------------ statistics


def test_statistics_worked_example():
    # By hand: without the mask token (id 2) p = (3/4, 1/4). log(3/4) = -0.28768;
    # H = 0.75 (0.28768) + 0.25 (1.38629) = 0.56234;
    # sum of p^2 (log p + H) = 0.5625 (0.27465) + 0.0625 (-0.82396) = 0.10299.
    logits = torch.tensor([[math.log(3.0), 0.0, 50.0]])
    found = token_statistics(logits, torch.tensor([0]), mask_id=2)
    torch.testing.assert_close(found.log_p, torch.tensor([-0.28768207]))
    torch.testing.assert_close(found.entropy, torch.tensor([0.56233514]))
    torch.testing.assert_close(found.collision, torch.tensor([0.10299490]))


def test_a_uniform_policy_has_the_entropy_of_its_vocabulary():
    # By hand: 8 tokens besides the mask give log 8, and log p + H = 0 makes the collision 0.
    found = token_statistics(torch.zeros(2, 9), torch.tensor([1, 8]), mask_id=0)
    torch.testing.assert_close(found.entropy, torch.full((2,), math.log(8)))
    torch.testing.assert_close(found.log_p, torch.full((2,), -math.log(8)))
    torch.testing.assert_close(found.collision, torch.zeros(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_statistics_are_finite_float32_and_within_range(dtype, scale):
    logits, token = random_logits(16, 12, seed=1, scale=scale)
    found = token_statistics(logits.to(dtype), token, mask_id=0)
    for value in (found.log_p, found.entropy, found.collision):
        assert value.dtype == torch.float32
        assert value.isfinite().all()
    assert (found.log_p <= 0).all()
    assert (found.entropy >= 0).all()
    assert (found.entropy <= math.log(11) + 1e-6).all()


def test_a_certain_policy_has_no_entropy():
    for logits in ([[0.0, 9e9, 0.0]], [[0.0, 3e38, -3e38]], [[0.0, 1.0, -math.inf]]):
        found = token_statistics(torch.tensor(logits), torch.tensor([1]), mask_id=0)
        assert (found.log_p.item(), found.entropy.item(), found.collision.item()) == (0, 0, 0)


def test_two_tokens_leave_one_that_is_certain():
    found = token_statistics(torch.tensor([[5.0, -5.0]]), torch.tensor([1]), mask_id=0)
    assert (found.log_p.item(), found.entropy.item()) == (0.0, 0.0)


@given(st.floats(-100, 100, width=32), st.floats(-50, 50, width=32))
def test_statistics_ignore_the_mask_logit_and_a_shift(mask_logit, shift):
    logits, token = random_logits(4, 7, seed=2)
    found = token_statistics(logits, token, mask_id=0)
    changed = logits + shift
    changed[:, 0] = mask_logit
    other = token_statistics(changed, token, mask_id=0)
    for name in ("log_p", "entropy", "collision"):
        torch.testing.assert_close(getattr(other, name), getattr(found, name), rtol=1e-4, atol=1e-4)


def test_no_token_gives_no_statistics():
    found = token_statistics(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long), mask_id=0)
    assert found.log_p.shape == found.entropy.shape == found.collision.shape == (0,)


@pytest.mark.parametrize("scale", [3.0, 1e4])
def test_gradient_flows_through_log_p_and_never_to_the_mask(scale):
    logits, token = random_logits(6, 9, seed=3, scale=scale)
    logits.requires_grad_()
    found = token_statistics(logits, token, mask_id=0)
    assert not found.entropy.requires_grad
    assert not found.collision.requires_grad
    gradient = torch.autograd.grad(found.log_p.sum(), logits)[0]
    # d log p_a / d z_k = 1[k = a] - p_k.
    p = logits.detach()[:, 1:].softmax(-1)
    expected = torch.nn.functional.one_hot(token - 1, 8) - p
    torch.testing.assert_close(gradient[:, 1:], expected)
    assert not gradient[:, 0].any()


@pytest.mark.parametrize("size", [3, 17, 400])
def test_statistics_agree_with_the_specification(size):
    logits, token = random_logits(8, size, seed=size)
    found = token_statistics(logits, token, mask_id=0)
    p = logits[:, 1:].double().softmax(-1).numpy()
    entropy = [specification().entropy(row) for row in p]
    log_p = [math.log(row[k - 1]) for row, k in zip(p, token.tolist(), strict=True)]
    near = {"rtol": TOLERANCE[torch.float32], "atol": TOLERANCE[torch.float32]}
    torch.testing.assert_close(found.entropy, torch.tensor(entropy), **near)
    torch.testing.assert_close(found.log_p, torch.tensor(log_p), **near)


# ------------------------------------------------------------------------------------ loss


def test_loss_worked_example():
    # By hand: -(2 (-0.5) + (-1) (-3)) / 2 = -(-1 + 3) / 2 = -1; the last token is outside B_t.
    signal = torch.tensor([2.0, -1.0, 7.0])
    log_p = torch.tensor([-0.5, -3.0, -9.0])
    optimised = torch.tensor([True, True, False])
    assert policy_loss(signal, log_p, optimised, count=2).item() == -1.0


def test_loss_pulls_each_token_by_its_signal():
    # By hand: d loss / d log p_i = -S_i / count.
    signal = torch.tensor([2.0, -1.0, 7.0], requires_grad=True)
    log_p = torch.tensor([-0.5, -3.0, -9.0], requires_grad=True)
    policy_loss(signal, log_p, torch.tensor([True, True, False]), count=2).backward()
    assert log_p.grad is not None
    assert log_p.grad.tolist() == [-1.0, 0.5, 0.0]
    assert signal.grad is None


def test_what_lies_outside_the_set_cannot_spoil_the_loss():
    signal = torch.tensor([1.0, torch.nan, torch.inf])
    log_p = torch.tensor([-1.0, -torch.inf, torch.nan], requires_grad=True)
    loss = policy_loss(signal, log_p, torch.tensor([True, False, False]), count=1)
    loss.backward()
    assert loss.item() == 1.0
    assert log_p.grad is not None
    assert log_p.grad.tolist() == [-1.0, 0.0, 0.0]


def test_a_batch_with_nothing_to_train_has_loss_zero_and_gradient_zero():
    log_p = torch.zeros(2, 3, requires_grad=True)
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    loss = policy_loss(torch.ones(2, 3), log_p, nothing, count=0)
    loss.backward()
    assert loss.item() == 0.0
    assert log_p.grad is not None
    assert not log_p.grad.any()


@given(tensors((2, 6), floats(-4, 4)), tensors((2, 6), floats(-9, 0)), st.integers(0, 6))
def test_losses_of_micro_batches_add_up(signal, log_p, cut):
    optimised = signal > -1
    count = int(optimised.sum())
    whole = policy_loss(signal, log_p, optimised, count)
    parts = [
        policy_loss(signal[:, part], log_p[:, part], optimised[:, part], count)
        for part in (slice(0, cut), slice(cut, None))
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole)
    torch.testing.assert_close(policy_loss(-signal, log_p, optimised, count), -whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (40,), (2, 3, 9)])
def test_loss_agrees_with_the_specification(shape, dtype):
    generator = torch.Generator().manual_seed(len(shape))
    signal = torch.randn(shape, generator=generator, dtype=dtype)
    log_p = -5 * torch.rand(shape, generator=generator, dtype=dtype)
    optimised = torch.rand(shape, generator=generator) < 0.9
    optimised.view(-1)[0] = True
    loss = policy_loss(signal, log_p, optimised, int(optimised.sum()))
    expected = specification().policy_loss(signal[optimised].tolist(), log_p[optimised].tolist())
    assert loss.item() == pytest.approx(expected, rel=TOLERANCE[dtype], abs=TOLERANCE[dtype])


# -------------------------------------------------------------------------------------- k3


def test_k3_worked_example():
    # By hand: d = log 2 gives 2 - 0.69315 - 1 = 0.30685; d = -log 2 gives 0.5 + 0.69315 - 1.
    log_p = torch.tensor([0.25, 0.5, 0.3]).log()
    log_ref = torch.tensor([0.5, 0.25, 0.3]).log()
    expected = torch.tensor([0.30685282, 0.19314718, 0.0])
    torch.testing.assert_close(k3_kl(log_p, log_ref), expected)


@given(st.floats(-9, 0, width=32), st.floats(-9, 0, width=32))
def test_k3_is_not_negative_and_zero_where_the_policies_agree(log_p, log_ref):
    log_p, log_ref = torch.tensor([log_p]), torch.tensor([log_ref])
    assert k3_kl(log_p, log_ref).item() >= -1e-7 * (log_ref - log_p).abs().item()
    assert k3_kl(log_p, log_p).item() == 0.0


def test_k3_keeps_its_digits_where_the_difference_is_small():
    # By hand: exp(d) - d - 1 is d^2 / 2 to leading order: 5e-7 at d = 1e-3, where exp(d) - 1 in
    # float32 would be off by a tenth of that.
    log_p = torch.tensor([-1e-3, 0.0])
    log_ref = torch.tensor([0.0, -1e-3])
    torch.testing.assert_close(
        k3_kl(log_p, log_ref), torch.tensor([5.0017e-7, 4.9983e-7]), rtol=1e-3, atol=0
    )


def test_k3_pulls_the_policy_to_the_reference_and_leaves_the_reference():
    # By hand: d k3 / d log p = 1 - exp(d): 1 - 2 = -1, 1 - 0.5 = 0.5, and 0 where they agree.
    log_p = torch.tensor([0.25, 0.5, 0.3]).log().requires_grad_()
    log_ref = torch.tensor([0.5, 0.25, 0.3]).log().requires_grad_()
    k3_kl(log_p, log_ref).sum().backward()
    assert log_p.grad is not None
    torch.testing.assert_close(log_p.grad, torch.tensor([-1.0, 0.5, 0.0]))
    assert log_ref.grad is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (30,), (2, 3, 5)])
def test_k3_agrees_with_the_specification(shape, dtype):
    generator = torch.Generator().manual_seed(len(shape))
    log_p = -4 * torch.rand(shape, generator=generator, dtype=dtype)
    log_ref = -4 * torch.rand(shape, generator=generator, dtype=dtype)
    pairs = zip(log_p.flatten().tolist(), log_ref.flatten().tolist(), strict=True)
    expected = torch.tensor([specification().k3_kl(*pair) for pair in pairs], dtype=dtype)
    torch.testing.assert_close(
        k3_kl(log_p, log_ref).flatten(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )

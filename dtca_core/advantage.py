"""Response advantage: how much better a response scored than the others of its prompt.

Left out: any learned baseline. The group is the baseline, and what broadcasts the advantage over
the selected steps is the caller, so that an estimate per step can take its place.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from jaxtyping import Float
from torch import Tensor


def group_advantage(reward: Float[Tensor, "N G"], floor: float = 0.01) -> Float[Tensor, "N G"]:
    """Return A^(b), the base method's advantage of each response within its prompt's group.

        A^(b) = (r_b - mean r) / max(std r, floor), std with G - 1.

    Args:
        reward: reward of each response, one row per prompt.
        floor: smallest standard deviation to divide by, above 0.

    Returns:
        dtype of `reward`, without gradient; each row adds up to 0. A row of equal rewards, and so
        a group of one, gives 0.
    """
    centred = _centred(reward)
    # Not Tensor.std: for a group of one it warns and returns NaN.
    variance = centred.square().sum(-1, keepdim=True) / max(reward.shape[-1] - 1, 1)
    return (centred / variance.sqrt().clamp(min=floor)).to(reward.dtype)


def mean_only_advantage(reward: Float[Tensor, "N G"]) -> Float[Tensor, "N G"]:
    """Return r_b - mean r: the group advantage without its division.

    Dtype of `reward`, in units of reward, without gradient. A group of one gives 0.
    """
    return _centred(reward).to(reward.dtype)


def leave_one_out_advantage(reward: Float[Tensor, "N G"]) -> Float[Tensor, "N G"]:
    """Return r_b minus the mean reward of the other responses of its group.

        A^(b) = r_b - (sum_{j != b} r_j) / (G - 1) = (r_b - mean r) G / (G - 1).

    Dtype of `reward`, in units of reward, without gradient. A group of one has no others to
    compare with and gives 0.
    """
    size = reward.shape[-1]
    return (_centred(reward) * (size / max(size - 1, 1))).to(reward.dtype)


ADVANTAGES: Mapping[str, Callable[[Tensor, float], Tensor]] = MappingProxyType(
    {
        "std-floor": group_advantage,
        "mean-only": lambda reward, floor: mean_only_advantage(reward),
        "leave-one-out": lambda reward, floor: leave_one_out_advantage(reward),
    }
)
"""The advantage of each value of `TrainConfig.advantage`, called with reward and floor."""


def _centred(reward: Float[Tensor, "N G"]) -> Float[Tensor, "N G"]:
    """Return r_b - mean r in float64: there, equal float32 rewards differ by exactly 0."""
    exact = reward.detach().double()
    return exact - exact.mean(-1, keepdim=True)

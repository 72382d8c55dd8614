"""What a policy says of the tokens of denoising states, a micro-batch at a time."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dtca_core.objective import TokenStatistics, token_statistics
from dtca_core.training.states import DenoisingStates


def statistics_at(
    policy: nn.Module,
    mask_id: int,
    states: DenoisingStates,
    index: Int[Tensor, " M"],
    chosen: Bool[Tensor, "M L"],
) -> TokenStatistics:
    """Return the statistics of the final tokens at the chosen positions of some states.

    Only these positions are projected to the vocabulary. Gradient flows where it is enabled.
    """
    device = next(policy.parameters()).device
    inputs, target = states.inputs[index], states.target[index]
    everywhere = torch.zeros_like(inputs, dtype=torch.bool)
    everywhere[:, -chosen.shape[1] :] = chosen
    logits = policy(
        inputs.to(device), states.attention_mask[index].to(device), everywhere.to(device)
    )
    return token_statistics(logits, target[chosen].to(device), mask_id)


@torch.no_grad()
def measure(
    policy: nn.Module, mask_id: int, states: DenoisingStates, micro_batch_size: int
) -> dict[str, Float[Tensor, "K L"]]:
    """Return log_p, entropy and collision of the final token at every masked response position.

    They are 0 elsewhere; float32, on the CPU, without gradient.
    """
    visible = states.masked & states.is_response
    names = ("log_p", "entropy", "collision")
    measured = {name: torch.zeros(visible.shape) for name in names}
    for index in micro_batches(len(states), micro_batch_size):
        chosen = visible[index]
        statistics = statistics_at(policy, mask_id, states, index, chosen)
        for name in names:
            part = torch.zeros(chosen.shape)
            part[chosen] = getattr(statistics, name).cpu()
            measured[name][index] = part
    return measured


def micro_batches(count: int, size: int) -> Iterator[Int[Tensor, " M"]]:
    """Yield the indices of each micro-batch, in order."""
    yield from torch.arange(count).split(size)

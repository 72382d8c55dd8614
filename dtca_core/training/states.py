"""The denoising states that an update trains on, rebuilt from trajectories.

At step t everything is masked that was masked in the rollout, end padding included, and nothing
else: a state that showed the padding would leak the length of the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from dtca_core.models import MaskPredictor
from dtca_core.records import TrajectoryBatch
from dtca_core.sampling.state import pad_prompts


@dataclass(frozen=True, kw_only=True)
class DenoisingStates:
    """K states x_t of some responses, ordered by response, then by step."""

    row: Int[Tensor, " K"]
    """The response of each state."""
    slot: Int[Tensor, " K"]
    """Which of its response's selected steps each state is, from 0."""
    inputs: Int[Tensor, "K S"]
    """Padded prompt and partly masked response."""
    attention_mask: Bool[Tensor, "K S"]
    """True at real tokens."""
    target: Int[Tensor, "K L"]
    """Final tokens of the response."""
    masked: Bool[Tensor, "K L"]
    """True where x_t is masked."""
    committed: Bool[Tensor, "K L"]
    """True in A_t."""
    is_response: Bool[Tensor, "K L"]
    """True up to the first end token."""

    def __len__(self) -> int:
        """Return K."""
        return len(self.row)

    def dense(self, values: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return values [K, L] as [B, S, L]; 0 or False where a response has fewer steps."""
        result = values.new_zeros(*shape, values.shape[-1])
        result[self.row, self.slot] = values
        return result


def denoising_states(
    predictor: MaskPredictor,
    prompts: Sequence[Sequence[int]],
    trajectories: TrajectoryBatch,
    selected: Bool[Tensor, "B T"],
) -> DenoisingStates:
    """Return the states before the selected steps."""
    row, step = selected.nonzero(as_tuple=True)
    length = trajectories.response_ids.shape[1]
    tokens, attention_mask = pad_prompts(predictor, prompts, length)
    target = trajectories.response_ids[row]
    masked = trajectories.commit_step[row] >= step[:, None]
    inputs = tokens[row]
    inputs[:, -length:] = target.masked_fill(masked, predictor.mask_id)
    return DenoisingStates(
        row=row,
        slot=(selected.long().cumsum(1) - 1)[row, step],
        inputs=inputs,
        attention_mask=attention_mask[row],
        target=target,
        masked=masked,
        committed=trajectories.commit_step[row] == step[:, None],
        is_response=trajectories.is_response[row],
    )

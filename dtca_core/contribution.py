"""Contribution: how much committing a token raised confidence in what was still masked.

Measured offline, without gradient. A step that commits one token needs no forward of its own:
its state with the token filled in is the next state. For a step that commits several, each is
filled in alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from dtca_core.config import ContributionConfig
from dtca_core.models import MaskPredictor
from dtca_core.records import TrajectoryBatch
from dtca_core.sampling import Progress
from dtca_core.sampling.state import pad_prompts


def aggregate_confidence(
    probs: Float[Tensor, "B L V"], masked: Bool[Tensor, "B L"]
) -> Float[Tensor, " B"]:
    """Return F, the confidence summed over masked positions.

        F(x; M) = sum over j in M of max_v p_j(v).

    Args:
        probs: probabilities; each position adds up to 1.
        masked: True in M; other positions are ignored.

    Returns:
        dtype of `probs`, in [0, |M|]; 0 where M is empty.
    """
    return probs.amax(-1).masked_fill(~masked, 0.0).sum(-1)


def num_masked_after(trajectories: TrajectoryBatch) -> Int[Tensor, "B L"]:
    """Return |M_t| for the step t at which each position was committed."""
    step = trajectories.commit_step
    return (step[:, None, :] > step[:, :, None]).sum(-1)


@torch.no_grad()
def contributions(
    predictor: MaskPredictor,
    prompts: Sequence[Sequence[int]],
    trajectories: TrajectoryBatch,
    config: ContributionConfig,
    progress: Progress | None = None,
) -> Float[Tensor, "B L"]:
    """Return delta-P of each committed token.

        dP_i = max(0, F(x_t^(i); M_t) - F(x_t; M_t)),

    where x_t is the state before step t, x_t^(i) is x_t with token i alone filled in, and M_t is
    what is still masked after the whole step, the same set in both terms.

    Args:
        predictor: the model that denoised these responses.
        prompts: the prompt of each response.
        trajectories: how they were denoised.
        config: `scope` restricts M_t to the token's block; `batch_size` states go together.
        progress: called with the number of states evaluated.

    Returns:
        float32, at least 0, without gradient. NaN where it is undefined: at end padding, and
        where M_t is empty, as after the last step.
    """
    plan = _Plan(trajectories, config.scope)
    peaks = _peaks(predictor, prompts, trajectories, plan, config.batch_size, progress)
    result = torch.full(trajectories.commit_step.shape, torch.nan)
    for token in plan.tokens:
        before = peaks[token.before].masked_fill(~token.counted, 0.0).sum()
        after = peaks[token.after].masked_fill(~token.counted, 0.0).sum()
        result[token.row, token.position] = (after - before).clamp(min=0).float()
    return result


@dataclass(frozen=True, kw_only=True)
class _Token:
    """One token to measure: the states that its two terms are read from, by their index."""

    row: int
    position: int
    before: int
    after: int
    counted: Bool[Tensor, " L"]


class _Plan:
    """Which states to evaluate, each once, and which tokens are measured with them."""

    def __init__(self, trajectories: TrajectoryBatch, scope: str) -> None:
        self.trajectories, self.scope = trajectories, scope
        self.tokens: list[_Token] = []
        self._states: dict[tuple[int, int, int], int] = {}
        for row, num_steps in enumerate(trajectories.num_steps.tolist()):
            for step in range(num_steps):
                self._plan_step(row, step)

    def _plan_step(self, row: int, step: int) -> None:
        commit_step = self.trajectories.commit_step[row]
        committed, masked = commit_step == step, commit_step > step
        is_alone = int(committed.sum()) == 1
        for position in (committed & self.trajectories.is_response[row]).nonzero().flatten():
            i = int(position)
            counted = masked & self._in_scope(i)
            if counted.any():
                after = (row, step + 1, -1) if is_alone else (row, step, i)
                self.tokens.append(
                    _Token(
                        row=row,
                        position=i,
                        before=self._state(row, step, -1),
                        after=self._state(*after),
                        counted=counted,
                    )
                )

    def _in_scope(self, position: int) -> Bool[Tensor, " L"]:
        length = self.trajectories.commit_step.shape[1]
        if self.scope == "response":
            return torch.ones(length, dtype=torch.bool)
        block = torch.arange(length) // self.trajectories.block_length
        return block == block[position]

    def _state(self, row: int, step: int, filled: int) -> int:
        """Return the index of x_t of a row, with a further position filled in unless it is -1."""
        return self._states.setdefault((row, step, filled), len(self._states))

    def batches(self, size: int) -> Iterator[tuple[Int[Tensor, " K"], Bool[Tensor, "K L"]]]:
        """Yield rows and what is masked in each of their states, in order of index."""
        states = torch.tensor(list(self._states), dtype=torch.long).reshape(-1, 3)
        for chunk in states.split(size) if self._states else ():  # split gives nothing in one chunk
            row, step, filled = chunk.unbind(1)
            masked = self.trajectories.commit_step[row] >= step[:, None]
            has_filled = (filled >= 0).nonzero().flatten()
            masked[has_filled, filled[has_filled]] = False
            yield row, masked


def _peaks(
    predictor: MaskPredictor,
    prompts: Sequence[Sequence[int]],
    trajectories: TrajectoryBatch,
    plan: _Plan,
    batch_size: int,
    progress: Progress | None,
) -> Float64[Tensor, "K L"]:
    """Return max_v p(v) at each masked position of each state, 0 elsewhere; float64."""
    length = trajectories.response_ids.shape[1]
    tokens, attention_mask = pad_prompts(predictor, prompts, length)
    tokens[:, -length:] = trajectories.response_ids
    peaks: list[Tensor] = [torch.zeros(0, length, dtype=torch.float64)]
    for row, masked in plan.batches(batch_size):
        chosen = torch.zeros_like(attention_mask[row])
        chosen[:, -length:] = masked
        inputs = tokens[row].masked_fill(chosen, predictor.mask_id)
        on_device = (t.to(predictor.device) for t in (inputs, attention_mask[row], chosen))
        logits = predictor(*on_device).double()
        peak = torch.zeros(masked.shape, dtype=torch.float64)
        peak[masked] = (logits.amax(-1) - logits.logsumexp(-1)).exp().cpu()
        peaks.append(peak)
        if progress:
            progress(len(row))
    return torch.cat(peaks)

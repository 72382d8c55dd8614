"""Credit in the paper's order: score steps, select some, share each one's advantage out to tokens.

Left out: the weights w_c (`weights.py`) and the advantage A_t (`advantage.py`); both come in as
tensors. Nothing here carries gradient, because all of it ends as a weight of log-probabilities.
"""

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from dtca_core.errors import TrajectoryError

SCORE_TOLERANCE = 1e-12
"""Share of the total that rounding may lack when steps are summed in another order."""


def timestep_score(
    weight: Float[Tensor, "B L"],
    confidence: Float[Tensor, "B L"],
    commit_step: Int[Tensor, "B L"],
    num_steps: int,
) -> Float64[Tensor, "B {num_steps}"]:
    """Return q_t, the weighted uncertainty that each step resolved.

        q_t = sum over i in A_t of w_{c_i} (1 - p_i).

    Args:
        weight: w_{c_i} of the token at each position; 0 at end padding, which is no token of the
            response.
        confidence: p_i, probability of the token when it was committed, in [0, 1].
        commit_step: 0-based step at which each position was committed, in [0, num_steps).
        num_steps: T, the largest number of steps of any row; a shorter row scores 0 after its end.

    Returns:
        float64 whatever the input, because `select_timesteps` compares sums; without gradient;
        0 where a step committed nothing or was certain.

    Raises:
        TrajectoryError: a position was committed outside the steps that were run.
    """
    outside = (commit_step < 0) | (commit_step >= num_steps)
    if outside.any():
        b, i = outside.nonzero()[0].tolist()
        raise TrajectoryError(
            f"response {b} commits token {i} at step {commit_step[b, i].item()}, outside the "
            f"{num_steps} steps that are scored. Pass the num_steps of the longest trajectory, or "
            "sample again if the file mixes two runs."
        )
    uncertainty = weight.detach().double() * (1.0 - confidence.detach().double())
    q = uncertainty.new_zeros(len(weight), num_steps)
    return q.scatter_add(1, commit_step.long(), uncertainty)


def select_timesteps(score: Float[Tensor, "B T"], fraction: float) -> Bool[Tensor, "B T"]:
    """Return the smallest set of steps whose scores add up to `fraction` of the response's total.

    Steps are taken by descending q_t, ties by the earlier step, until

        sum of the taken q_t >= fraction * sum of all q_t.

    Args:
        score: q_t, at least 0.
        fraction: share of the total to reach, in [0, 1].

    Returns:
        True at the selected steps; at least one in each row. A total of 0 selects step 0, so that
        no response is silently dropped.
    """
    score = score.detach().double()
    total = score.sum(-1, keepdim=True)
    ranked, order = score.sort(dim=-1, descending=True, stable=True)
    reached = ranked.cumsum(-1)
    # A step is taken if the steps before it do not reach the target; the first always is.
    taken = torch.ones_like(ranked, dtype=torch.bool)
    taken[:, 1:] = reached[:, :-1] < fraction * total - SCORE_TOLERANCE * total
    selected = torch.zeros_like(taken).scatter(-1, order, taken)
    is_first = torch.arange(score.shape[-1], device=score.device) == 0
    return selected.where(total > 0, is_first)


def limit_timesteps(
    score: Float[Tensor, "B T"], selected: Bool[Tensor, "B T"], max_steps: int | None
) -> Bool[Tensor, "B T"]:
    """Return the `max_steps` selected steps of highest q_t, ties by the earlier step.

    A row that selects no more than that, and every row when `max_steps` is None, is unchanged.

    Args:
        score: q_t, at least 0.
        selected: True at the steps to choose from.
        max_steps: steps to keep in each row, at least 1; None keeps them all.
    """
    if max_steps is None:
        return selected
    candidate = score.detach().masked_fill(~selected, -torch.inf)
    highest = candidate.argsort(dim=-1, descending=True, stable=True)[:, :max_steps]
    return torch.zeros_like(selected).scatter(-1, highest, True) & selected


def optimised_positions(
    committed: Bool[Tensor, "B S L"],
    masked: Bool[Tensor, "B S L"],
    probability: Float[Tensor, "B S L"],
    threshold: float | None,
    is_response: Bool[Tensor, " B #S L"],
) -> Bool[Tensor, "B S L"]:
    """Return B_t, the positions that are optimised at each selected step.

        B_t = A_t + {i masked in x_t: p(x_i | x_t) >= threshold}, without end padding.

    Args:
        committed: A_t, the positions committed at step t.
        masked: the positions masked in x_t, or M_t: they differ by A_t, which is in B_t anyway.
        probability: current probability of the final token x_i; read at masked positions only.
        threshold: smallest probability, in [0, 1]; None optimises committed positions only.
        is_response: True up to and including the first end token; the same at each step if S
            is 1.
    """
    if threshold is None:
        return committed & is_response
    return (committed | masked & (probability >= threshold)) & is_response


def token_credit(
    weight: Float[Tensor, "B S L"], optimised: Bool[Tensor, "B S L"]
) -> Float[Tensor, "B S L"]:
    """Return a_{t,i}, the share of a step's advantage that each optimised token gets.

        a_{t,i} = w_{c_i} / mean over k in B_t of w_{c_k}.

    Equal weights give 1 everywhere in B_t: the base method.

    Args:
        weight: w_{c_i}, above 0; other entries than those of B_t are ignored.
        optimised: True in the optimisation set B_t.

    Returns:
        dtype of `weight`, without gradient; the mean over B_t is 1. It is 0 outside B_t, and so
        everywhere at a step whose B_t is empty.
    """
    w = weight.detach().masked_fill(~optimised, 0.0)
    total = w.sum(-1, keepdim=True)
    count = optimised.sum(-1, keepdim=True)
    return w / (total / count).where(total > 0, 1.0)


def token_signal(
    credit: Float[Tensor, "B S L"], advantage: Float[Tensor, "B S"]
) -> Float[Tensor, "B S L"]:
    """Return A_{t,i} = a_{t,i} A_t, by which a token's log-probability is weighted.

    Without gradient, in units of the advantage; 0 outside B_t.

    Args:
        credit: a_{t,i}; 0 outside B_t.
        advantage: A_t of each response at each selected step.
    """
    return credit.detach() * advantage.detach()[..., None]

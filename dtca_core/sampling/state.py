"""The state of a batch while it is being denoised, and the record it becomes."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dtca_core.errors import DataError
from dtca_core.models import MaskPredictor
from dtca_core.records import TrajectoryBatch, num_response_tokens


class DenoisingState:
    """Tokens, what is still masked, and when the rest was committed; bookkeeping on the CPU."""

    def __init__(
        self, predictor: MaskPredictor, prompts: Sequence[Sequence[int]], gen_length: int
    ) -> None:
        self.predictor, self.gen_length = predictor, gen_length
        self.tokens, self.attention_mask = pad_prompts(predictor, prompts, gen_length)
        self.prompt_length = self.tokens.shape[1] - gen_length
        shape = (len(prompts), gen_length)
        self.masked = torch.ones(shape, dtype=torch.bool)
        self.commit_step = torch.zeros(shape, dtype=torch.long)
        self.confidence = torch.ones(shape)
        self.num_steps = torch.zeros(len(prompts), dtype=torch.long)
        self.num_forwards = 0

    @property
    def responses(self) -> Int[Tensor, "B L"]:
        """The response part of the tokens; a view."""
        return self.tokens[:, self.prompt_length :]

    def commit(
        self,
        rows: Int[Tensor, " R"],
        start: int,
        chosen: Bool[Tensor, "R K"],
        proposal: Int[Tensor, "R K"],
        confidence: Float[Tensor, "R K"],
    ) -> None:
        """Take the chosen positions of a block out of the mask, as one step of these rows."""
        r, i = chosen.nonzero(as_tuple=True)
        row, position = rows[r], start + i
        self.responses[row, position] = proposal[r, i]
        self.confidence[row, position] = confidence[r, i].float()
        self.commit_step[row, position] = self.num_steps[row]
        self.masked[row, position] = False
        self.num_steps[rows] += 1

    def finish(self, rows: Int[Tensor, " R"]) -> None:
        """Fill rows whose text has ended with end tokens; counted to the last step they took."""
        is_over = self._text_has_ended(rows)
        for row in rows[is_over].tolist():
            rest = self.masked[row]
            self.responses[row, rest] = self.predictor.eos_id
            self.commit_step[row, rest] = self.num_steps[row] - 1
            self.masked[row] = False

    def _text_has_ended(self, rows: Int[Tensor, " R"]) -> Bool[Tensor, " R"]:
        """True where an end token stands and nothing before it is masked."""
        responses, masked = self.responses[rows], self.masked[rows]
        is_end = torch.isin(responses, torch.tensor(self.predictor.end_ids)) & ~masked
        first_end = is_end.int().argmax(dim=1, keepdim=True)
        before = torch.arange(self.gen_length) < first_end
        return is_end.any(dim=1) & ~(masked & before).any(dim=1)

    def record(self, block_length: int) -> TrajectoryBatch:
        """Return the finished trajectories."""
        responses = self.responses.clone()
        return TrajectoryBatch(
            response_ids=responses,
            commit_step=self.commit_step,
            commit_confidence=self.confidence,
            num_steps=self.num_steps,
            num_response_tokens=num_response_tokens(responses, self.predictor.end_ids),
            block_length=block_length,
            num_forwards=self.num_forwards,
        )


def pad_prompts(
    predictor: MaskPredictor, prompts: Sequence[Sequence[int]], gen_length: int
) -> tuple[Int[Tensor, "B S"], Bool[Tensor, "B S"]]:
    """Return prompts padded on the left, then the masks of the response; and what is real.

    Raises:
        DataError: there is no prompt, or one is too long, holds the mask token or a token that
            the model does not have.
    """
    if not prompts:
        raise DataError("there are no prompts to denoise; at least one is needed.")
    for index, prompt in enumerate(prompts):
        _check_prompt(predictor, prompt, index, gen_length)
    longest = max(len(prompt) for prompt in prompts)
    tokens = torch.full((len(prompts), longest + gen_length), predictor.mask_id)
    attention_mask = torch.ones_like(tokens, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        padding = longest - len(prompt)
        tokens[row, :padding] = predictor.pad_id
        tokens[row, padding:longest] = torch.tensor(prompt, dtype=torch.long)
        attention_mask[row, :padding] = False
    return tokens, attention_mask


def _check_prompt(
    predictor: MaskPredictor, prompt: Sequence[int], index: int, gen_length: int
) -> None:
    if predictor.mask_id in prompt:
        raise DataError(
            f"prompt {index} contains the mask token {predictor.mask_id} at position "
            f"{list(prompt).index(predictor.mask_id)}; only a response may be masked. Remove it."
        )
    foreign = [token for token in prompt if not 0 <= token < predictor.vocab_size]
    if foreign:
        raise DataError(
            f"prompt {index} contains token {foreign[0]}; this model has tokens 0 to "
            f"{predictor.vocab_size - 1}. Encode it with the model's own tokenizer."
        )
    if len(prompt) + gen_length > predictor.max_length:
        raise DataError(
            f"prompt {index} has {len(prompt)} tokens and the response {gen_length}; this model "
            f"takes {predictor.max_length} together. Shorten the prompt or gen_length."
        )

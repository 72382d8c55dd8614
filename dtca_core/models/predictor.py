"""What the method asks of a model: predict the masked tokens of a sequence, all at once."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dtca_core.models.cache import KeyValueCache


class MaskPredictor(nn.Module, ABC):
    """A bidirectional model of the tokens behind the mask.

    A module, so that optimizers, DDP and ZeRO see an ordinary one; `forward` is what training
    calls, `hidden_states` and `project` are what the sampler calls.
    """

    mask_id: int
    """The token that stands for what is not decided yet."""
    eos_id: int
    """The end of the text; also what a finished response is padded with."""
    pad_id: int
    """What prompts are padded with on the left; never looked at."""
    end_ids: tuple[int, ...]
    """Tokens that end a response: end of text and, where there is one, end of turn."""
    vocab_size: int
    """Length of the logits, V."""
    max_length: int
    """Longest sequence, prompt and response together."""
    config: dict[str, Any]
    """The published config, as it was read."""
    tokenizer: Any
    """A fast tokenizer of transformers, or None where the folder has none."""

    @abstractmethod
    def hidden_states(
        self,
        input_ids: Int[Tensor, "B W"],
        attention_mask: Bool[Tensor, "B S"] | None = None,
        *,
        cache: KeyValueCache | None = None,
        start: int = 0,
    ) -> Float[Tensor, "B W D"]:
        """Return the final hidden states, normalised and ready to be projected.

        Args:
            input_ids: tokens of the whole sequence, or of a window of it when `cache` holds
                the rest.
            attention_mask: True at real tokens of the whole sequence; padding is on the left
                and changes nothing. None: there is no padding.
            cache: filled by a call on the whole sequence, used by calls on a window.
            start: where the window begins.
        """

    @abstractmethod
    def project(self, hidden: Float[Tensor, "*K D"]) -> Float[Tensor, "*K V"]:
        """Return the logits of hidden states; call it only for positions that are needed."""

    def logits(
        self, input_ids: Int[Tensor, "B S"], attention_mask: Bool[Tensor, "B S"] | None = None
    ) -> Float[Tensor, "B S V"]:
        """Return the logits at every position; they predict the token at that same position."""
        return self.project(self.hidden_states(input_ids, attention_mask))

    def forward(
        self,
        input_ids: Int[Tensor, "B S"],
        attention_mask: Bool[Tensor, "B S"] | None,
        chosen: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "K V"]:
        """Return the logits at the K chosen positions, row by row."""
        return self.project(self.hidden_states(input_ids, attention_mask)[chosen])

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

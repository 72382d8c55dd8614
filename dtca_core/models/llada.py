"""The LLaDA architecture, in the names of the published checkpoints.

Pre-norm blocks with full bidirectional attention, rotary positions and a gated MLP; attention
masks are real, so that left padding changes nothing. Left out, because no published checkpoint
has it: biases, tied weights, ALiBi, norms on queries and keys, dropout.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from dtca_core.models.cache import KeyValueCache
from dtca_core.models.llada_config import LladaShape
from dtca_core.models.predictor import MaskPredictor
from dtca_core.models.tokenizer import TURN_END, token_id


class RMSNorm(nn.Module):
    """Root-mean-square norm, computed in float32 whatever the type of the weights."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Return x scaled to unit mean square, times the weight."""
        return F.rms_norm(x.float(), x.shape[-1:], eps=self.eps).to(x.dtype) * self.weight


class Block(nn.Module):
    """One transformer block; attribute names are the published key names."""

    def __init__(self, shape: LladaShape, layer: int) -> None:
        super().__init__()
        width, hidden = shape.d_model, shape.mlp_hidden_size
        kv_width = shape.n_kv_heads * shape.head_size
        self.layer, self.head_size = layer, shape.head_size
        self.is_grouped = shape.n_kv_heads != shape.n_heads
        self.attn_norm = RMSNorm(width, shape.rms_norm_eps)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_width, bias=False)
        self.v_proj = nn.Linear(width, kv_width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.ff_norm = RMSNorm(width, shape.rms_norm_eps)
        self.ff_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.ff_out = nn.Linear(hidden, width, bias=False)

    def forward(
        self,
        x: Float[Tensor, "B W D"],
        rotation: tuple[Tensor, Tensor],
        visible: Bool[Tensor, "B 1 1 S"] | None,
        cache: KeyValueCache | None,
        start: int,
    ) -> Float[Tensor, "B W D"]:
        """Return the hidden states after attention and MLP."""
        normed = self.attn_norm(x)
        query = _rotate(self._heads(self.q_proj(normed)), rotation)
        key = _rotate(self._heads(self.k_proj(normed)), rotation)
        value = self._heads(self.v_proj(normed))
        if cache is not None:
            key, value = cache.update(self.layer, start, key, value)
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=visible, enable_gqa=self.is_grouped
        )
        x = x + self.attn_out(attended.transpose(1, 2).flatten(2))
        normed = self.ff_norm(x)
        return x + self.ff_out(F.silu(self.ff_proj(normed)) * self.up_proj(normed))

    def _heads(self, x: Float[Tensor, "B W D"]) -> Float[Tensor, "B H W K"]:
        return x.unflatten(-1, (-1, self.head_size)).transpose(1, 2)


class Llada(MaskPredictor):
    """LLaDA; `state_dict` has the published keys and shapes."""

    def __init__(
        self, config: Mapping[str, Any], *, tokenizer: Any = None, origin: str = "the config"
    ) -> None:
        super().__init__()
        shape = LladaShape.from_config(config, origin)
        self.config, self.shape, self.tokenizer = dict(config), shape, tokenizer
        self.mask_id, self.eos_id = shape.mask_token_id, shape.eos_token_id
        self.pad_id = shape.pad_token_id
        self.end_ids = _end_ids(self.eos_id, tokenizer)
        self.vocab_size, self.max_length = shape.embedding_size, shape.max_sequence_length
        transformer = nn.ModuleDict()
        transformer["wte"] = nn.Embedding(shape.embedding_size, shape.d_model)
        transformer["blocks"] = nn.ModuleList(Block(shape, i) for i in range(shape.n_layers))
        transformer["ln_f"] = RMSNorm(shape.d_model, shape.rms_norm_eps)
        transformer["ff_out"] = nn.Linear(shape.d_model, shape.embedding_size, bias=False)
        self.model = nn.ModuleDict({"transformer": transformer})

    @property
    def transformer(self) -> nn.ModuleDict:
        """The part that the published keys begin with."""
        transformer = self.model["transformer"]
        assert isinstance(transformer, nn.ModuleDict)
        return transformer

    def hidden_states(
        self,
        input_ids: Int[Tensor, "B W"],
        attention_mask: Bool[Tensor, "B S"] | None = None,
        *,
        cache: KeyValueCache | None = None,
        start: int = 0,
    ) -> Float[Tensor, "B W D"]:
        """Return the final hidden states; see `MaskPredictor.hidden_states`."""
        length = input_ids.shape[1]
        if attention_mask is None or bool(attention_mask.all()):
            visible = None
            positions = torch.arange(start, start + length, device=input_ids.device)[None]
        else:
            visible = attention_mask[:, None, None, :]
            # Positions count real tokens only, so that padding moves nothing.
            positions = (attention_mask.long().cumsum(1) - 1).clamp(min=0)
            positions = positions[:, start : start + length]
        rotation = _rotation(positions, self.shape.head_size, self.shape.rope_theta)
        x = self.transformer["wte"](input_ids)
        blocks = self.transformer["blocks"]
        assert isinstance(blocks, nn.ModuleList)
        for block in blocks:
            x = block(x, rotation, visible, cache, start)
        return self.transformer["ln_f"](x)

    def project(self, hidden: Float[Tensor, "*K D"]) -> Float[Tensor, "*K V"]:
        """Return the logits of hidden states."""
        return self.transformer["ff_out"](hidden)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw fresh weights: normal, 1/sqrt(d_model) wide, outputs of a residual branch narrower.

        That is 0.016 at the width of LLaDA-8B; 0.02 at any width would leave the attention of a
        small model too flat to learn to copy.
        """
        wide = self.shape.d_model**-0.5
        narrow = wide / (2 * self.shape.n_layers) ** 0.5
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                is_output = "blocks" in name and name.endswith(("attn_out.weight", "ff_out.weight"))
                nn.init.normal_(weight, std=narrow if is_output else wide, generator=generator)


def _end_ids(eos_id: int, tokenizer: Any) -> tuple[int, ...]:
    """Return the ids that end a response; LLaDA's chats end a turn with <|eot_id|>."""
    end_of_turn = token_id(tokenizer, TURN_END)
    return (eos_id,) if end_of_turn in (None, eos_id) else (eos_id, end_of_turn)


def _rotation(
    positions: Int[Tensor, "B W"], size: int, theta: float
) -> tuple[Float[Tensor, "B 1 W K"], Float[Tensor, "B 1 W K"]]:
    """Return cosine and sine of the rotary angles, float32."""
    exponent = torch.arange(0, size, 2, device=positions.device).float() / size
    angles = positions[:, None, :, None].float() / theta**exponent
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def _rotate(
    x: Float[Tensor, "B H W K"], rotation: tuple[Tensor, Tensor]
) -> Float[Tensor, "B H W K"]:
    """Return x rotated in the half-split form, computed in float32."""
    cosine, sine = rotation
    wide = x.float()
    first, second = wide.chunk(2, dim=-1)
    return (wide * cosine + torch.cat((-second, first), dim=-1) * sine).to(x.dtype)

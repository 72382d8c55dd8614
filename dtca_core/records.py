"""What passes between the parts: trajectories in memory, and the Parquet schemas of their files.

Shape letters, here and everywhere: **B** responses, **N** prompts, **G** responses per prompt,
**L** response tokens, **T** denoising steps, **S** selected steps (or sequence length, where a
model is spoken to), **V** vocabulary, **C** categories.

Three sets of positions are easily confused and are never called a mask: `committed` (A_t, leave
the mask at step t), `masked` (M_t, still masked after step t), `optimised` (B_t, trained at t).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dtca_core.errors import TrajectoryError

ROLLOUT_SCHEMA = pa.schema(
    [
        pa.field("rollout_id", pa.string(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("sample", pa.int32(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("response_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("commit_step", pa.list_(pa.int32()), nullable=False),
        pa.field("commit_confidence", pa.list_(pa.float32()), nullable=False),
        pa.field("num_steps", pa.int32(), nullable=False),
        pa.field("block_length", pa.int32(), nullable=False),
        pa.field("prompt_text", pa.string(), nullable=False),
        pa.field("response_text", pa.string(), nullable=False),
        pa.field("reward", pa.float32(), nullable=False),
        pa.field("extracted_answer", pa.string()),
        pa.field("num_response_tokens", pa.int32(), nullable=False),
    ]
)
"""One row per trajectory; position i is masked before step t iff commit_step[i] >= t."""

CONTRIBUTION_STEM = "contribution"
"""Beginning of the names of the files with rows of `CONTRIBUTION_SCHEMA`."""

CONTRIBUTION_SCHEMA = pa.schema(
    [
        pa.field("rollout_id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("step", pa.int32(), nullable=False),
        pa.field("token_id", pa.int32(), nullable=False),
        pa.field("confidence", pa.float32(), nullable=False),
        pa.field("delta_p", pa.float32()),
        pa.field("num_masked_after", pa.int32(), nullable=False),
        pa.field("char_start", pa.int32(), nullable=False),
        pa.field("char_end", pa.int32(), nullable=False),
    ]
)
"""One row per committed token of a response; delta_p is null where M_t is empty."""

RESPONSE_STEM = "responses"
"""Beginning of the names of the files with rows of `RESPONSE_SCHEMA`."""

RESPONSE_SCHEMA = pa.schema(
    [
        pa.field("rollout_id", pa.string(), nullable=False),
        pa.field("response_text", pa.string(), nullable=False),
        pa.field("special_positions", pa.list_(pa.int32()), nullable=False),
    ]
)
"""One row per response of a contribution artifact: the text that its characters count in."""

TAGGED_SCHEMA = pa.schema(
    [
        pa.field("rollout_id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("delta_p", pa.float32()),
    ]
)
"""One row per committed token with its category."""

EVALUATION_SCHEMA = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("gen_length", pa.int32(), nullable=False),
        pa.field("steps", pa.int32(), nullable=False),
        pa.field("correct", pa.bool_(), nullable=False),
        pa.field("undecided", pa.bool_(), nullable=False),
        pa.field("boxed", pa.bool_(), nullable=False),
        pa.field("extracted_answer", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("response_text", pa.string(), nullable=False),
        pa.field("num_response_tokens", pa.int32(), nullable=False),
        pa.field("has_ended", pa.bool_(), nullable=False),
        pa.field("num_steps", pa.int32(), nullable=False),
    ]
)
"""One row per problem and budget."""


@dataclass(frozen=True, kw_only=True)
class TrajectoryBatch:
    """How a batch of responses was denoised."""

    response_ids: Int[Tensor, "B L"]
    """Final tokens, end padding included."""
    commit_step: Int[Tensor, "B L"]
    """0-based step of its own row at which each position left the mask, in [0, num_steps)."""
    commit_confidence: Float[Tensor, "B L"]
    """Noise-free probability of the token when it was committed, in [0, 1], float32. It is 1
    where `stop_at_eos` filled in end padding that no forward call looked at."""
    num_steps: Int[Tensor, " B"]
    """Steps that each row took."""
    num_response_tokens: Int[Tensor, " B"]
    """Tokens up to and including the first end token; L where there is none."""
    block_length: int
    """Tokens per block."""
    num_forwards: int
    """Forward calls that the batch needed."""

    def __post_init__(self) -> None:
        """Refuse a run that contradicts itself."""
        late = (self.commit_step < 0) | (self.commit_step >= self.num_steps[:, None])
        if late.any():
            b, i = late.nonzero()[0].tolist()
            raise TrajectoryError(
                f"response {b} commits token {i} at step {self.commit_step[b, i].item()}, outside "
                f"the {self.num_steps[b].item()} steps that were run. The sampler stopped early "
                "or the file mixes two runs; sample it again."
            )

    def __len__(self) -> int:
        """Return the number of responses."""
        return self.response_ids.shape[0]

    @property
    def is_response(self) -> Bool[Tensor, "B L"]:
        """True up to and including the first end token; what follows is end padding."""
        positions = torch.arange(self.response_ids.shape[1])
        return positions < self.num_response_tokens[:, None]

    def rows(self, index: Int[Tensor, " K"]) -> "TrajectoryBatch":
        """Return the chosen rows."""
        return TrajectoryBatch(
            response_ids=self.response_ids[index],
            commit_step=self.commit_step[index],
            commit_confidence=self.commit_confidence[index],
            num_steps=self.num_steps[index],
            num_response_tokens=self.num_response_tokens[index],
            block_length=self.block_length,
            num_forwards=self.num_forwards,
        )

    @classmethod
    def concatenate(cls, batches: "Sequence[TrajectoryBatch]") -> "TrajectoryBatch":
        """Return the rows of all batches, in order; forward calls add up."""
        return cls(
            response_ids=torch.cat([batch.response_ids for batch in batches]),
            commit_step=torch.cat([batch.commit_step for batch in batches]),
            commit_confidence=torch.cat([batch.commit_confidence for batch in batches]),
            num_steps=torch.cat([batch.num_steps for batch in batches]),
            num_response_tokens=torch.cat([batch.num_response_tokens for batch in batches]),
            block_length=batches[0].block_length,
            num_forwards=sum(batch.num_forwards for batch in batches),
        )


def num_response_tokens(
    response_ids: Int[Tensor, "B L"], end_ids: tuple[int, ...]
) -> Int[Tensor, " B"]:
    """Return the tokens up to and including the first end token; L where there is none."""
    is_end = torch.isin(response_ids, torch.tensor(end_ids, device=response_ids.device))
    length = response_ids.shape[1]
    first = torch.where(is_end.any(1), is_end.int().argmax(1), length - 1)
    return first + 1

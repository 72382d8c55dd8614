"""Semi-autoregressive block denoising that records its own trajectory.

At temperature 0 it gives the tokens of LLaDA's published sampler without a cache, and those of
Fast-dLLM with its prefix or dual cache and its threshold or factor. Left out: other remasking
rules than confidence, because a trajectory of random order says nothing about confidence.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dtca_core.config import SamplerConfig
from dtca_core.models import MaskPredictor
from dtca_core.models.cache import KeyValueCache
from dtca_core.randomness import stream
from dtca_core.records import TrajectoryBatch
from dtca_core.sampling.commit import committed_positions
from dtca_core.sampling.propose import propose
from dtca_core.sampling.state import DenoisingState

Progress = Callable[[int], None]
"""Called with the number of positions that were decided since the last call."""


def sample(
    predictor: MaskPredictor,
    prompts: Sequence[Sequence[int]],
    config: SamplerConfig,
    *,
    seed: int,
    progress: Progress | None = None,
) -> TrajectoryBatch:
    """Return one response per prompt, with the record of how it was denoised.

    The stream of a row is named by its prompt, and by how many equal prompts stand before it:
    samples do not depend on the other rows.

    Raises:
        DataError: a prompt is too long, holds the mask token or a token unknown to the model.
    """
    seen: dict[tuple[int, ...], int] = {}
    generators: list[torch.Generator] = []
    for prompt in map(tuple, prompts):
        seen[prompt] = seen.get(prompt, 0) + 1
        generators.append(stream(seed, *prompt, f"sample {seen[prompt]}"))
    return denoise(predictor, prompts, config, generators, progress)


@torch.no_grad()
def denoise(
    predictor: MaskPredictor,
    prompts: Sequence[Sequence[int]],
    config: SamplerConfig,
    generators: Sequence[torch.Generator],
    progress: Progress | None = None,
) -> TrajectoryBatch:
    """Return one response per prompt, drawn from that row's own generator."""
    state = DenoisingState(predictor, prompts, config.gen_length)
    for start in range(0, config.gen_length, config.block_length):
        _denoise_block(state, start, config, generators, progress or (lambda _: None))
    return state.record(config.block_length)


def _denoise_block(
    state: DenoisingState,
    start: int,
    config: SamplerConfig,
    generators: Sequence[torch.Generator],
    progress: Progress,
) -> None:
    """Decide every position of the block that starts at `start` of the response."""
    end = start + config.block_length
    reader = _BlockReader(state, start, config)
    for step in range(config.block_length):
        rows = state.masked[:, start:end].any(dim=1).nonzero().squeeze(1)
        if not len(rows):
            return
        masked = state.masked[rows, start:end]
        logits = reader.logits(rows)
        counts = masked.sum(dim=1).tolist()
        proposed, sureness = propose(
            logits,
            forbidden=(state.predictor.mask_id,),
            suppressed=(state.predictor.eos_id,) if config.suppress_eos else (),
            temperature=config.temperature,
            generators=[(generators[r], n) for r, n in zip(rows.tolist(), counts, strict=True)],
        )
        proposal = torch.zeros(masked.shape, dtype=torch.long)
        confidence = torch.zeros(masked.shape, dtype=torch.float64)
        proposal[masked], confidence[masked] = proposed.cpu(), sureness.cpu()
        chosen = committed_positions(confidence, masked, step, config)
        num_masked = int(state.masked[rows].sum())
        state.commit(rows, start, chosen, proposal, confidence)
        if config.stop_at_eos:
            state.finish(rows)
        progress(num_masked - int(state.masked[rows].sum()))


class _BlockReader:
    """Reads the logits of a block's masked positions, with or without a cache."""

    def __init__(self, state: DenoisingState, start: int, config: SamplerConfig) -> None:
        self.state, self.config = state, config
        self.predictor = state.predictor
        self.begin = state.prompt_length + start
        self.end = self.begin + config.block_length
        self.start = start
        self.cache: KeyValueCache | None = None
        self.cached_rows: Int[Tensor, " R"] | None = None

    def logits(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "K V"]:
        """Return the logits of the block's masked positions, row by row."""
        span = slice(self.start, self.start + self.config.block_length)
        masked = self.state.masked[rows, span].to(self.predictor.device)
        self.state.num_forwards += 1
        if self.config.guidance:
            return self._guided(rows, masked)
        hidden = self._full(rows) if self.config.cache == "none" else self._cached(rows)
        return self.predictor.project(hidden[masked])

    def _inputs(self, rows: Int[Tensor, " R"]) -> tuple[Tensor, Tensor]:
        device = self.predictor.device
        return self.state.tokens[rows].to(device), self.state.attention_mask[rows].to(device)

    def _full(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R K D"]:
        return self.predictor.hidden_states(*self._inputs(rows))[:, self.begin : self.end]

    def _guided(self, rows: Int[Tensor, " R"], masked: Tensor) -> Float[Tensor, "K V"]:
        """Return l_u + (w + 1)(l_c - l_u); u sees a masked prompt. Both in one forward call."""
        tokens, attention_mask = self._inputs(rows)
        blind = tokens.clone()
        blind[:, : self.state.prompt_length] = self.predictor.mask_id
        hidden = self.predictor.hidden_states(
            torch.cat((tokens, blind)), torch.cat((attention_mask, attention_mask))
        )[:, self.begin : self.end]
        seeing, unseeing = (self.predictor.project(h[masked]) for h in hidden.chunk(2))
        return unseeing + (self.config.guidance + 1) * (seeing - unseeing)

    def _cached(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R K D"]:
        """Return hidden states from a full pass at the first step, from a window afterwards."""
        tokens, attention_mask = self._inputs(rows)
        if self.cache is None or self.cached_rows is None:
            self.cache, self.cached_rows = KeyValueCache(), rows
            hidden = self.predictor.hidden_states(tokens, attention_mask, cache=self.cache)
            return hidden[:, self.begin : self.end]
        if len(rows) < len(self.cached_rows):
            self.cache.keep(torch.isin(self.cached_rows, rows).nonzero().squeeze(1))
            self.cached_rows = rows
        # The dual cache keeps what is right of the block as it was; the prefix cache redoes it.
        stop = self.end if self.config.cache == "dual" else tokens.shape[1]
        hidden = self.predictor.hidden_states(
            tokens[:, self.begin : stop], attention_mask, cache=self.cache, start=self.begin
        )
        return hidden[:, : self.config.block_length]

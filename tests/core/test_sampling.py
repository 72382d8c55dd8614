"""Tests of the sampler: the field's own programs, a slow loop, and what its record must say."""

import copy
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from dtca_core.config import SamplerConfig
from dtca_core.errors import DataError
from dtca_core.sampling import sample

GOLDEN = Path(__file__).parents[1] / "golden" / "llada_tiny"
CASES = json.loads((GOLDEN / "golden.json").read_text())
VECTORS = load_file(GOLDEN / "golden.safetensors")
CACHES = {"official": "none", "plain": "none", "prefix": "prefix", "dual": "dual"}
SAME = {"rtol": 1e-4, "atol": 1e-5}
"""The same probability from a batch of another size, float32."""

PROMPTS = [[0, 5, 9], [17, 3, 3, 3, 60, 61, 62], [8], [100, 101, 102, 103, 104], [4, 4], [0], [199]]


def sampler(**options):
    """A config of two blocks of four tokens, one at a time."""
    return SamplerConfig(**{"gen_length": 8, "block_length": 4, "steps": 8, **options})


def with_end(predictor, token):
    """The same model, for which another token ends the text."""
    other = copy.copy(predictor)
    other.eos_id, other.end_ids = token, (token,)
    return other


def assert_same(left, right, rows=slice(None)):
    """Assert that rows of one batch are another batch, up to rounding of the confidence."""
    assert left.response_ids[rows].tolist() == right.response_ids.tolist()
    assert left.commit_step[rows].tolist() == right.commit_step.tolist()
    assert left.num_steps[rows].tolist() == right.num_steps.tolist()
    torch.testing.assert_close(left.commit_confidence[rows], right.commit_confidence, **SAME)


# --------------------------------------------------------------------------------- golden


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['index']}-{case['kind']}")
def test_tokens_are_those_of_the_published_samplers(golden_predictor, case):
    config = SamplerConfig(
        gen_length=case["gen_length"],
        block_length=case["block_length"],
        steps=case["steps"],
        threshold=case.get("threshold"),
        cache=CACHES[case["kind"]],
    )
    prompts = VECTORS[f"generate.{case['index']}.prompt"].tolist()
    result = sample(golden_predictor, prompts, config, seed=0)
    assert result.response_ids.tolist() == VECTORS[f"generate.{case['index']}.output"].tolist()
    assert result.num_forwards <= (case["nfe"] or case["steps"])
    assert result.num_forwards == result.num_steps.max()


@pytest.mark.parametrize("case", CASES["batch_cases"], ids=lambda case: str(case["index"]))
def test_rows_of_a_padded_batch_are_those_of_each_row_alone(golden_predictor, case):
    # DS01
    config = SamplerConfig(**{k: case[k] for k in ("gen_length", "block_length", "steps")})
    padded = VECTORS[f"batch.{case['index']}.prompt"].tolist()
    prompts = [row[-n:] for row, n in zip(padded, case["prompt_lens"], strict=True)]
    result = sample(golden_predictor, prompts, config, seed=0)
    assert result.response_ids.tolist() == VECTORS[f"batch.{case['index']}.output"].tolist()
    assert result.num_forwards == case["steps"]


# --------------------------------------------------------------------------- the slow loop


def slowly(predictor, prompt, config):
    """Greedy denoising of one prompt by quota, one forward a step, written as a loop."""
    mask, length = predictor.mask_id, config.gen_length
    tokens = list(prompt) + [mask] * length
    per_block = config.steps_per_block
    for begin in range(len(prompt), len(tokens), config.block_length):
        for step in range(per_block):
            open_positions = [
                i for i in range(begin, begin + config.block_length) if tokens[i] == mask
            ]
            logits = predictor.logits(torch.tensor([tokens]))[0].double()
            if config.guidance:
                blind = [mask] * len(prompt) + tokens[len(prompt) :]
                unseeing = predictor.logits(torch.tensor([blind]))[0].double()
                logits = unseeing + (config.guidance + 1) * (logits - unseeing)
            if config.suppress_eos:
                logits[:, predictor.eos_id] = -torch.inf
            probability = logits.softmax(-1)
            logits[:, mask] = -torch.inf
            best = {i: int(logits[i].argmax()) for i in open_positions}
            open_positions.sort(key=lambda i: (-probability[i, best[i]].item(), i))
            share, rest = divmod(config.block_length, per_block)
            for i in open_positions[: share + (step < rest)]:
                tokens[i] = best[i]
    return tokens[len(prompt) :]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"steps": 4},
        {"gen_length": 12, "block_length": 6, "steps": 8},
        {"guidance": 0.5},
        {"guidance": 2.0, "steps": 4},
        {"suppress_eos": True},
    ],
    ids=str,
)
def test_tokens_are_those_of_the_slow_loop(golden_predictor, options):
    predictor = with_end(golden_predictor, 77)
    config = sampler(**options)
    result = sample(predictor, PROMPTS, config, seed=0)
    expected = [slowly(predictor, prompt, config) for prompt in PROMPTS]
    assert result.response_ids.tolist() == expected


def test_guidance_changes_the_tokens_and_needs_no_further_calls(golden_predictor):
    plain = sample(golden_predictor, PROMPTS, sampler(), seed=0)
    guided = sample(golden_predictor, PROMPTS, sampler(guidance=2.0), seed=0)
    assert plain.response_ids.tolist() != guided.response_ids.tolist()
    assert guided.num_forwards == plain.num_forwards == 8


# ------------------------------------------------------------------ neighbours, order, seeds

OPTIONS = [
    {"temperature": 1.0},
    {"temperature": 1.0, "steps": 4, "stop_at_eos": True},
    {"temperature": 1.0, "threshold": 0.3},
    {"temperature": 1.0, "factor": 1.5},
    {"temperature": 1.0, "cache": "prefix", "threshold": 0.3},
    {"temperature": 1.0, "cache": "dual", "steps": 4},
    {"temperature": 1.0, "guidance": 1.0},
    {"temperature": 0.0, "threshold": 0.5, "cache": "dual"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_row_depends_on_neither_its_neighbours_nor_their_order(golden_predictor, options):
    # DS01, DS05: under a threshold rows finish a block at different steps.
    config = sampler(**options)
    together = sample(golden_predictor, PROMPTS, config, seed=3)
    backwards = sample(golden_predictor, PROMPTS[::-1], config, seed=3)
    assert_same(backwards, together, torch.arange(len(PROMPTS)).flip(0))
    for row, prompt in enumerate(PROMPTS):
        alone = sample(golden_predictor, [prompt], config, seed=3)
        assert_same(together, alone, slice(row, row + 1))


def test_eight_samples_of_a_prompt_are_one_batch_or_eight(golden_predictor):
    config = sampler(temperature=1.0)
    eight = sample(golden_predictor, [[1, 2, 3]] * 8, config, seed=0)
    one = sample(golden_predictor, [[1, 2, 3]], config, seed=0)
    assert_same(eight, one, slice(1))
    assert len({tuple(row) for row in eight.response_ids.tolist()}) == 8
    mixed = sample(golden_predictor, [[1, 2, 3], [9], [1, 2, 3]], config, seed=0)
    assert_same(mixed, eight.rows(torch.tensor([0, 1])), torch.tensor([0, 2]))


def test_a_seed_gives_its_samples_again_and_another_gives_others(golden_predictor):
    config = sampler(temperature=1.0)
    first, again, other = (sample(golden_predictor, PROMPTS, config, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.response_ids, again.response_ids)
    assert torch.equal(first.commit_confidence, again.commit_confidence)
    assert not torch.equal(first.response_ids, other.response_ids)


def test_greedy_samples_do_not_depend_on_the_seed_nor_on_the_global_one(golden_predictor):
    first = sample(golden_predictor, PROMPTS, sampler(), seed=1)
    state = torch.get_rng_state()
    second = sample(golden_predictor, PROMPTS, sampler(temperature=0.0), seed=2)
    assert torch.equal(first.response_ids, second.response_ids)
    sample(golden_predictor, PROMPTS, sampler(temperature=1.0), seed=2)
    assert torch.equal(torch.get_rng_state(), state)


# ------------------------------------------------------------------------------ end of text


def test_a_suppressed_end_token_never_comes(golden_predictor):
    plain = sample(golden_predictor, PROMPTS, sampler(), seed=0).response_ids
    end = int(plain[1, 3])
    predictor = with_end(golden_predictor, end)
    for temperature in (0.0, 1.0):
        config = sampler(suppress_eos=True, temperature=temperature)
        result = sample(predictor, PROMPTS, config, seed=0)
        assert not (result.response_ids == end).any()
        assert (result.num_response_tokens == 8).all()


@pytest.mark.parametrize("steps", [8, 4])
@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
def test_stopping_at_the_end_changes_nothing_before_it(golden_predictor, steps, cache):
    options = {"steps": steps, "cache": cache}
    prompts = PROMPTS[:4]
    full = sample(golden_predictor, prompts, sampler(**options), seed=0)
    for place in range(8):
        end = int(full.response_ids[0, place])
        predictor = with_end(golden_predictor, end)
        whole = sample(predictor, prompts, sampler(**options), seed=0)
        stopped = sample(predictor, prompts, sampler(**options, stop_at_eos=True), seed=0)
        assert torch.equal(stopped.num_response_tokens, whole.num_response_tokens)
        assert (stopped.num_steps <= whole.num_steps).all()
        assert (stopped.commit_step < stopped.num_steps[:, None]).all()
        kept = stopped.is_response
        assert torch.equal(stopped.response_ids[kept], whole.response_ids[kept])
        assert torch.equal(stopped.commit_step[kept], whole.commit_step[kept])
        # Rows that finish leave the batch, and a smaller one may round differently.
        torch.testing.assert_close(
            stopped.commit_confidence[kept], whole.commit_confidence[kept], **SAME
        )
        unread = ~kept & (stopped.response_ids != whole.response_ids)
        assert (stopped.response_ids[unread] == end).all()
        assert (stopped.commit_confidence[unread] == 1).all()


def test_stopping_at_the_end_saves_forward_calls(golden_predictor):
    prompt = [PROMPTS[1]]
    plain = sample(golden_predictor, prompt, sampler(), seed=0)
    predictor = with_end(golden_predictor, int(plain.response_ids[0, 0]))
    stopped = sample(predictor, prompt, sampler(stop_at_eos=True), seed=0)
    # The text has ended when its first token, an end token, is decided.
    first = int(plain.commit_step[0, 0])
    assert stopped.num_response_tokens.tolist() == [1]
    assert stopped.num_steps.tolist() == [first + 1]
    assert stopped.num_forwards == first + 1 < plain.num_forwards
    assert (stopped.commit_step[0] <= first).all()
    assert stopped.response_ids.unique().tolist() == sorted(
        {predictor.eos_id, *plain.response_ids[0, plain.commit_step[0] < first].tolist()}
    )


def test_an_end_token_behind_open_positions_does_not_stop_the_row(golden_predictor):
    plain = sample(golden_predictor, PROMPTS, sampler(), seed=0)
    first = plain.commit_step.argmin(1)
    row = int((first > 0).nonzero()[0])
    place = int(first[row])
    end = int(plain.response_ids[row, place])
    assert end not in plain.response_ids[row, :place]
    predictor = with_end(golden_predictor, end)
    stopped = sample(predictor, [PROMPTS[row]], sampler(stop_at_eos=True), seed=0)
    # The end token comes at step 0, and the row stops once the last token before it is there.
    last_before = int(plain.commit_step[row, :place].max())
    assert stopped.num_steps.tolist() == [last_before + 1]
    assert last_before > 0


# ---------------------------------------------------------------------- what cannot be asked


def test_a_prompt_keeps_its_token_zero(golden_predictor):
    # DS11
    with_zero = sample(golden_predictor, [[0, 7, 8]], sampler(), seed=0)
    without = sample(golden_predictor, [[7, 8]], sampler(), seed=0)
    assert with_zero.response_ids.tolist() == [slowly(golden_predictor, [0, 7, 8], sampler())]
    assert with_zero.response_ids.tolist() != without.response_ids.tolist()


def test_a_prompt_may_hold_padding_and_end_tokens(golden_predictor):
    prompt = [golden_predictor.pad_id, 7, golden_predictor.eos_id]
    result = sample(golden_predictor, [prompt, PROMPTS[1]], sampler(), seed=0)
    assert result.response_ids[0].tolist() == slowly(golden_predictor, prompt, sampler())


def test_an_empty_prompt_is_denoised_from_nothing(golden_predictor):
    # Nothing but masks looks alike everywhere, so rounding decides: no tokens are expected here.
    result = sample(golden_predictor, [[], PROMPTS[1]], sampler(), seed=0)
    assert result.commit_confidence.isfinite().all()
    assert result.response_ids[1].tolist() == slowly(golden_predictor, PROMPTS[1], sampler())


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([], "^there are no prompts to denoise; "),
        ([[1], [1, 200, 3]], "^prompt 1 contains the mask token 200 at position 1; "),
        ([[1], [2, 203]], "^prompt 1 contains token 203; this model has tokens 0 to 202"),
        ([[-1]], "^prompt 0 contains token -1; "),
        ([[1] * 249], "^prompt 0 has 249 tokens and the response 8; this model takes 256 together"),
    ],
)
def test_a_prompt_that_cannot_be_denoised_is_refused(golden_predictor, prompts, message):
    with pytest.raises(DataError, match=message):
        sample(golden_predictor, prompts, sampler(), seed=0)


def test_the_longest_prompt_that_fits_is_denoised(golden_predictor):
    result = sample(golden_predictor, [[1] * 248], sampler(steps=2), seed=0)
    assert result.response_ids.shape == (1, 8)


# -------------------------------------------------------------------------------- the record


@st.composite
def runs(draw):
    """Prompts and a config without a cache, whose record can be computed again."""
    num_blocks, block_length = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rule = draw(st.sampled_from([{}, {"threshold": 0.3}, {"threshold": 0.9}, {"factor": 1.0}]))
    config = SamplerConfig(
        gen_length=num_blocks * block_length,
        block_length=block_length,
        steps=num_blocks * draw(st.integers(1, block_length + 1)),
        temperature=draw(st.sampled_from([0.0, 1.0])),
        stop_at_eos=draw(st.booleans()),
        suppress_eos=draw(st.booleans()),
        **rule,
    )
    token = st.integers(0, 199)
    prompts = draw(st.lists(st.lists(token, min_size=1, max_size=5), min_size=1, max_size=3))
    return prompts, config, draw(st.integers(0, 9))


@given(runs())
@settings(max_examples=40)
def test_a_record_says_how_its_responses_came_about(golden_predictor, run):
    prompts, config, seed = run
    told = []
    result = sample(golden_predictor, prompts, config, seed=seed, progress=told.append)
    assert sum(told) == result.response_ids.numel()
    assert all(count > 0 for count in told)
    assert len(told) == result.num_forwards
    assert not (result.response_ids == golden_predictor.mask_id).any()
    assert result.commit_confidence.dtype == torch.float32
    assert ((result.commit_confidence > 0) & (result.commit_confidence <= 1)).all()
    assert result.block_length == config.block_length
    for row, prompt in enumerate(prompts):
        num_steps, steps = int(result.num_steps[row]), result.commit_step[row]
        # Each step commits at least one token, and blocks are decided from left to right.
        assert steps.unique().tolist() == list(range(num_steps))
        block = torch.arange(config.gen_length) // config.block_length
        if not config.stop_at_eos:
            assert (steps[1:] >= steps[:-1])[block[1:] != block[:-1]].all()
        replay(golden_predictor, prompt, result, row, config)


def replay(predictor, prompt, result, row, config):
    """Compute the confidence of each commit again, from the state before its step."""
    steps, final = result.commit_step[row], result.response_ids[row]
    for step in range(int(result.num_steps[row])):
        state = final.where(steps < step, predictor.mask_id)
        logits = predictor.logits(torch.tensor([[*prompt, *state.tolist()]]))[0, len(prompt) :]
        if config.suppress_eos:
            logits[:, predictor.eos_id] = -torch.inf
        probability = logits.double().softmax(-1).gather(1, final[:, None]).squeeze(1)
        committed = (steps == step) & (result.commit_confidence[row] < 1)
        torch.testing.assert_close(
            result.commit_confidence[row, committed], probability[committed].float(), **SAME
        )
        if config.threshold is not None and committed.sum() > 1:
            assert (result.commit_confidence[row, committed] >= config.threshold - 1e-6).all()


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_a_cached_run_decides_every_position_too(golden_predictor, cache):
    told = []
    config = sampler(cache=cache, temperature=1.0, threshold=0.5)
    result = sample(golden_predictor, PROMPTS, config, seed=0, progress=told.append)
    assert sum(told) == result.response_ids.numel()
    for row, num_steps in enumerate(result.num_steps.tolist()):
        assert result.commit_step[row].unique().tolist() == list(range(num_steps))


def test_sixty_four_newlines_are_a_response_like_any_other(golden_predictor):
    # DS12: a token repeated up to the length, without an end; here because all others are barred.
    barred = copy.deepcopy(golden_predictor)
    with torch.no_grad():
        barred.transformer["ff_out"].weight.zero_()
    result = sample(barred, [[5]], sampler(gen_length=64, block_length=64, steps=64), seed=0)
    assert result.response_ids.tolist() == [[0] * 64]
    assert result.num_response_tokens.tolist() == [64]
    # By hand: all logits are equal, so each confidence is 1/203 and positions come in order.
    torch.testing.assert_close(result.commit_confidence, torch.full((1, 64), 1 / 203))
    assert result.commit_step.tolist() == [list(range(64))]

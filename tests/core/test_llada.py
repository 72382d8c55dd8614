"""Tests of the LLaDA architecture: the published logits, then what padding and windows may do."""

import json
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from dtca_core.errors import ModelError
from dtca_core.models.cache import KeyValueCache
from dtca_core.models.llada import Llada

LOGITS = {"rtol": 0.0, "atol": 1e-4}
"""What golden/llada_tiny/README.md promises."""
SAME = {"rtol": 1e-5, "atol": 1e-5}
"""The same sum in another order, float32."""


@pytest.fixture(scope="session")
def golden(golden_folder):
    return load_file(golden_folder / "golden.safetensors")


@pytest.fixture(scope="session")
def config(golden_folder):
    return json.loads((golden_folder / "config.json").read_text())


def made(config, seed=0, **changes):
    """A model of the golden shape with other sizes and fresh weights."""
    model = Llada({**config, **changes})
    model.initialise(torch.Generator().manual_seed(seed))
    return model.eval()


def tokens(*shape, seed=0):
    return torch.randint(200, shape, generator=torch.Generator().manual_seed(seed))


# ----------------------------------------------------------------------------------- logits


def test_logits_are_those_of_the_published_model(golden_predictor, golden):
    logits = golden_predictor.logits(golden["forward.input_ids"])
    torch.testing.assert_close(logits, golden["forward.logits"], **LOGITS)


def test_logits_of_padded_rows_are_those_of_each_row_alone(golden_predictor, golden):
    is_real = golden["forward.attention_mask"].bool()
    assert not is_real.all()
    logits = golden_predictor.logits(golden["forward.input_ids"], is_real)
    expected = golden["forward.masked_logits"]
    torch.testing.assert_close(logits[is_real], expected[is_real], **LOGITS)


@given(
    st.lists(st.integers(0, 199), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 199)
)
def test_left_padding_changes_nothing(golden_predictor, row, padding, filler):
    # DS08
    alone = golden_predictor.logits(torch.tensor([row]))
    padded = torch.tensor([[filler] * padding + row])
    is_real = torch.tensor([[False] * padding + [True] * len(row)])
    logits = golden_predictor.logits(padded, is_real)[:, padding:]
    torch.testing.assert_close(logits, alone, **LOGITS)


def test_a_mask_without_padding_is_no_mask(golden_predictor):
    ids = tokens(2, 9)
    everything = torch.ones(2, 9, dtype=torch.bool)
    assert torch.equal(golden_predictor.logits(ids, everything), golden_predictor.logits(ids))


def test_every_position_sees_both_sides_and_its_own_place(golden_predictor):
    ids = tokens(1, 8)
    logits = golden_predictor.logits(ids)
    for changed in (0, 7):
        other = ids.clone()
        other[0, changed] += 1
        moved = (golden_predictor.logits(other) - logits).abs().amax(-1)
        assert (moved > 1e-4).all()
    same_token = golden_predictor.logits(torch.full((1, 8), 5))
    swapped = ids[:, [1, 0, *range(2, 8)]]
    assert not torch.allclose(golden_predictor.logits(swapped)[:, 2:], logits[:, 2:])
    torch.testing.assert_close(same_token, same_token[:, :1].expand_as(same_token), **SAME)


def test_forward_gives_the_chosen_positions_row_by_row(golden_predictor):
    ids, chosen = tokens(3, 7), torch.rand(3, 7, generator=torch.Generator().manual_seed(1)) < 0.5
    logits = golden_predictor(ids, None, chosen)
    torch.testing.assert_close(logits, golden_predictor.logits(ids)[chosen], **SAME)
    nothing = golden_predictor(ids, None, torch.zeros_like(chosen))
    assert nothing.shape == (0, golden_predictor.vocab_size)


def test_gradient_reaches_every_weight(config):
    model = made(config, n_kv_heads=2)
    ids, chosen = tokens(2, 6), torch.ones(2, 6, dtype=torch.bool)
    model(ids, None, chosen).logsumexp(-1).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert all(bool(weight.grad.any()) for weight in model.parameters())


# ------------------------------------------------------------------------------------ cache


@pytest.mark.parametrize(("start", "stop"), [(5, 8), (5, 12), (0, 12), (11, 12)])
@pytest.mark.parametrize("padding", [0, 3])
def test_a_window_of_unchanged_tokens_gives_the_full_pass(golden_predictor, start, stop, padding):
    ids = tokens(2, 12)
    is_real = torch.ones(2, 12, dtype=torch.bool)
    is_real[0, :padding] = False
    full = golden_predictor.hidden_states(ids, is_real)
    cache = KeyValueCache()
    first = golden_predictor.hidden_states(ids, is_real, cache=cache)
    assert torch.equal(first, full)
    window = golden_predictor.hidden_states(ids[:, start:stop], is_real, cache=cache, start=start)
    is_shown = is_real[:, start:stop]
    torch.testing.assert_close(window[is_shown], full[:, start:stop][is_shown], **SAME)


@given(st.integers(0, 8), st.integers(1, 4), st.integers(0, 3))
def test_one_layer_makes_a_window_exact_whatever_changes_in_it(config, start, width, padding):
    # Keys and values of the first layer depend on their own token only, so nothing gets stale.
    model = made(config, n_layers=1)
    ids, changed = tokens(2, 12), tokens(2, 12, seed=1)
    is_real = torch.ones(2, 12, dtype=torch.bool)
    is_real[0, :padding] = False
    stop = min(start + width, 12)
    cache = KeyValueCache()
    with torch.no_grad():
        model.hidden_states(ids, is_real, cache=cache)
        window = model.hidden_states(changed[:, start:stop], is_real, cache=cache, start=start)
        mixed = ids.clone()
        mixed[:, start:stop] = changed[:, start:stop]
        full = model.hidden_states(mixed, is_real)[:, start:stop]
    is_shown = is_real[:, start:stop]
    torch.testing.assert_close(window[is_shown], full[is_shown], **SAME)


def test_deeper_layers_keep_what_they_saw_outside_the_window(golden_predictor):
    ids, changed = tokens(1, 12), tokens(1, 12, seed=1)
    cache = KeyValueCache()
    golden_predictor.hidden_states(ids, cache=cache)
    window = golden_predictor.hidden_states(changed[:, 4:8], cache=cache, start=4)
    mixed = torch.cat((ids[:, :4], changed[:, 4:8], ids[:, 8:]), dim=1)
    full = golden_predictor.hidden_states(mixed)[:, 4:8]
    assert not torch.allclose(window, full, atol=1e-3)
    # A window is put into the cache: the same window again finds itself there.
    again = golden_predictor.hidden_states(changed[:, 4:8], cache=cache, start=4)
    torch.testing.assert_close(again, window, **SAME)


def test_a_cache_keeps_the_rows_that_it_is_told_to(golden_predictor):
    ids = tokens(3, 8)
    cache = KeyValueCache()
    full = golden_predictor.hidden_states(ids, cache=cache)
    rows = torch.tensor([0, 2])
    cache.keep(rows)
    window = golden_predictor.hidden_states(ids[rows, 2:5], cache=cache, start=2)
    torch.testing.assert_close(window, full[rows, 2:5], **SAME)


# ------------------------------------------------------------------------- shapes and configs


@pytest.mark.parametrize("n_kv_heads", [1, 2])
def test_grouped_heads_are_full_heads_that_share_keys_and_values(config, n_kv_heads):
    grouped = made(config, n_kv_heads=n_kv_heads)
    full = made(config)
    weights = grouped.state_dict()
    size, share = grouped.shape.head_size, 4 // n_kv_heads
    for name in [name for name in weights if name.endswith(("k_proj.weight", "v_proj.weight"))]:
        heads = weights[name].view(n_kv_heads, size, -1)
        weights[name] = heads.repeat_interleave(share, dim=0).flatten(0, 1)
    full.load_state_dict(weights)
    ids = tokens(2, 7)
    torch.testing.assert_close(grouped.logits(ids), full.logits(ids), **SAME)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block_type", "sequential"),
        ("activation_type", "swiglu"),
        ("layer_norm_type", "default"),
        ("rope", False),
        ("include_bias", True),
        ("include_qkv_bias", True),
        ("weight_tying", True),
        ("attention_layer_norm", True),
        ("alibi", True),
        ("input_emb_norm", True),
        ("scale_logits", True),
        ("model_type", "Dream"),
        ("block_group_size", 2),
        ("layer_norm_with_affine", False),
        ("bias_for_layer_norm", True),
        ("rope_full_precision", False),
        ("rope_scaling", {"type": "linear", "factor": 2.0}),
        ("multi_query_attention", True),
        ("attention_dropout", 0.1),
        ("embedding_dropout", 0.1),
        ("residual_dropout", 0.1),
    ],
)
def test_another_architecture_is_refused_by_the_name_of_its_field(config, name, value):
    found = re.escape(f"{name}={value!r}")
    with pytest.raises(ModelError, match=f"^the config says {found}; .* {name}=.* only"):
        Llada({**config, name: value})
    without = {key: kept for key, kept in config.items() if key != name}
    assert Llada(without).shape == Llada(config).shape


@pytest.mark.parametrize("name", ["bias_for_layer_norm", "multi_query_attention", "rope_scaling"])
def test_null_says_no(config, name):
    assert Llada({**config, name: None}).shape == Llada(config).shape


def test_every_missing_field_is_named(config):
    config = {k: v for k, v in config.items() if k not in ("rope_theta", "mask_token_id")}
    with pytest.raises(ModelError, match=r"^x/config\.json lacks rope_theta, mask_token_id; "):
        Llada(config, origin="x/config.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 5}, "d_model=64, which is not a multiple of n_heads=5"),
        ({"n_kv_heads": 3}, "n_heads=4, which is not a multiple of n_kv_heads=3"),
        ({"d_model": 12}, "heads that are 3 wide"),
        ({"n_layers": 0}, "n_layers=0"),
        ({"n_layers": "3"}, "n_layers='3'"),
        ({"mask_token_id": 203}, "mask_token_id=203; its vocabulary has 203 tokens"),
        ({"mask_token_id": None}, "mask_token_id=None; it needs an integer"),
        ({"pad_token_id": 200}, "pad_token_id=200, which is mask_token_id"),
        ({"eos_token_id": 200}, "eos_token_id=200, which is mask_token_id"),
        ({"vocab_size": 204}, "vocab_size=204, more than embedding_size=203"),
        ({"vocab_size": "203"}, "vocab_size='203'; it needs an integer"),
        ({"rope_theta": "500000"}, "rope_theta='500000'; it needs a number above 0"),
        ({"rope_theta": float("nan")}, "rope_theta=nan; it needs a number above 0"),
        ({"rms_norm_eps": 0}, "rms_norm_eps=0; it needs a number above 0"),
    ],
)
def test_sizes_that_do_not_fit_together_are_refused(config, changes, message):
    with pytest.raises(ModelError, match=message):
        Llada({**config, **changes})


def test_whole_numbers_will_do_for_scales(config):
    assert Llada({**config, "rope_theta": 500000}).shape == Llada(config).shape


def test_the_facts_of_a_model_are_those_of_its_config(golden_predictor):
    assert (golden_predictor.mask_id, golden_predictor.eos_id, golden_predictor.pad_id) == (
        200,
        197,
        197,
    )
    assert golden_predictor.end_ids == (197,)
    assert (golden_predictor.vocab_size, golden_predictor.max_length) == (203, 256)
    assert golden_predictor.device == torch.device("cpu")


def test_a_turn_ends_where_the_tokenizer_says_so(tiny_predictor):
    end_of_turn = tiny_predictor.tokenizer.convert_tokens_to_ids("<|eot_id|>")
    assert tiny_predictor.end_ids == (tiny_predictor.eos_id, end_of_turn)


# --------------------------------------------------------------------------- fresh weights


def test_fresh_weights_depend_on_the_seed_only(config):
    first, again, other = made(config, 1), made(config, 1), made(config, 2)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
        is_norm = weight.ndim == 1
        assert torch.equal(weight, other.state_dict()[name]) == is_norm


def test_fresh_outputs_of_a_branch_are_narrower(config):
    model = made(config)
    block = model.transformer["blocks"][0]
    for narrow in (block.attn_out, block.ff_out):
        # By hand: 3 layers have 6 branches, so their outputs are 1/sqrt(6) as wide.
        ratio = narrow.weight.std() / block.q_proj.weight.std()
        assert abs(ratio.item() * 6**0.5 - 1) < 0.05
    wide = model.transformer["ff_out"].weight.std() / block.q_proj.weight.std()
    assert abs(wide.item() - 1) < 0.05

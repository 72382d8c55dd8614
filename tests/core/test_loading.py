"""Tests of model folders: what loads, what is written, and the message for what does not load."""

import json
import shutil
import subprocess
import sys

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import load_file, save_file

from dtca_core.errors import ModelError
from dtca_core.models import load_predictor, save_predictor
from dtca_core.models.loading import (
    EMBEDDED,
    model_files,
    model_folder,
    resolve_device,
    tokenizer_files,
    weight_files,
)

IDS = torch.arange(24).view(2, 12)
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path, golden_folder):
    """A model folder that a test may damage."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(golden_folder / name, tmp_path)
    return tmp_path


def weights_of(folder):
    return load_file(folder / "model.safetensors")


def rewrite(folder, weights):
    save_file(weights, folder / "model.safetensors")


def shard(folder):
    """Split the weights of a folder in two files with an index, as large models are published."""
    weights = weights_of(folder)
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2]}
    parts["model-00002-of-00002.safetensors"] = names[1::2]
    for part, own in parts.items():
        save_file({name: weights[name] for name in own}, folder / part)
    weight_map = {name: part for part, own in parts.items() for name in own}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return list(parts)


# ------------------------------------------------------------------------------ what loads


def test_a_folder_loads_ready_to_predict(golden_folder, golden_predictor):
    for source in (golden_folder, str(golden_folder)):
        model = load_predictor(source)
        assert not model.training
        assert model.tokenizer is None
        assert all(weight.requires_grad for weight in model.parameters())
        assert torch.equal(model.logits(IDS), golden_predictor.logits(IDS))


def test_a_sharded_folder_gives_the_same_logits(folder, golden_predictor):
    parts = shard(folder)
    assert torch.equal(load_predictor(folder).logits(IDS), golden_predictor.logits(IDS))
    assert [path.name for path in weight_files(folder)] == parts
    (folder / parts[1]).unlink()
    with pytest.raises(ModelError, match=rf"^{folder} lacks {parts[1]}, which {INDEX} names; "):
        load_predictor(folder)


def test_bfloat16_is_near_float32_and_keeps_its_type(golden_folder, golden_predictor):
    model = load_predictor(golden_folder, dtype="bfloat16")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    logits = model.logits(IDS)
    assert logits.dtype == torch.bfloat16
    expected = golden_predictor.logits(IDS)
    # bfloat16 has 8 bits: a few hundredths of the logits' own spread, over three layers.
    assert (logits.float() - expected).std() < 0.05 * expected.std()


def test_weights_stored_in_bfloat16_load_as_float32(folder):
    narrow = {name: weight.bfloat16() for name, weight in weights_of(folder).items()}
    rewrite(folder, narrow)
    model = load_predictor(folder)
    for name, weight in model.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, narrow[name].float())


def test_embedded_is_a_folder_of_the_package():
    assert model_folder("embedded") == EMBEDDED
    assert EMBEDDED.parent.name == "models"


# ------------------------------------------------------------------------- what is written


def test_a_saved_model_is_the_model(tmp_path, tiny_model_folder, tiny_predictor):
    save_predictor(tiny_predictor, tmp_path / "copy", tokenizer_from=tiny_model_folder)
    copy = load_predictor(tmp_path / "copy")
    assert torch.equal(copy.logits(IDS), tiny_predictor.logits(IDS))
    assert copy.config == tiny_predictor.config
    text = "Tom has 5 apples.<|eot_id|>"
    assert copy.tokenizer(text)["input_ids"] == tiny_predictor.tokenizer(text)["input_ids"]
    assert copy.tokenizer.chat_template == tiny_predictor.tokenizer.chat_template
    assert copy.end_ids == tiny_predictor.end_ids
    names = {path.name for path in tmp_path.joinpath("copy").iterdir()}
    assert names == {path.name for path in tiny_model_folder.iterdir()}
    assert {path.name for path in model_files(tmp_path / "copy")} == names


def test_a_model_is_written_with_the_published_names(tmp_path, golden_folder, golden_predictor):
    save_predictor(golden_predictor, tmp_path, tokenizer_from=None)
    written, published = weights_of(tmp_path), weights_of(golden_folder)
    assert written.keys() == published.keys()
    assert "model.transformer.blocks.0.q_proj.weight" in written
    assert {"model.transformer.wte.weight", "model.transformer.ff_out.weight"} <= written.keys()
    assert all(torch.equal(written[name], published[name]) for name in published)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config == json.loads((golden_folder / "config.json").read_text())
    assert tokenizer_files(tmp_path) == []


def test_the_same_model_is_written_in_the_same_bytes(tmp_path, golden_predictor):
    for name in ("a", "b"):
        save_predictor(golden_predictor, tmp_path / name, tokenizer_from=None)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_model_without_its_tensors_is_not_written(tmp_path, golden_folder):
    # TR08: weights that are spread over processes are empty here; an older model stays.
    shutil.copytree(golden_folder, tmp_path / "old")
    before = {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    model = load_predictor(golden_folder)
    model.transformer["ln_f"].weight.data = torch.empty(0)
    with pytest.raises(
        ModelError, match=r"ln_f\.weight' as \[0\], its config needs \[64\]; gather"
    ):
        save_predictor(model, tmp_path / "old", tokenizer_from=None)
    assert {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before


def test_an_older_model_is_replaced_whole(folder, tmp_path, golden_predictor):
    shard(folder)
    save_predictor(golden_predictor, folder, tokenizer_from=None)
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}
    assert torch.equal(load_predictor(folder).logits(IDS), golden_predictor.logits(IDS))


# ------------------------------------------------------------------------ what cannot load


def test_a_missing_config_is_named(folder):
    (folder / "config.json").unlink()
    with pytest.raises(ModelError, match=rf"^{folder}/config\.json does not exist; "):
        load_predictor(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "holds a list"),
        ("{}", "lacks d_model, n_heads, "),
        ('{"d_model": 64}', "lacks n_heads, "),
    ],
)
def test_a_config_that_is_none_is_named(folder, text, message):
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelError, match=rf"^{folder}/config\.json {message}"):
        load_predictor(folder)


def test_missing_weights_are_named(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=rf"^{folder} lacks model\.safetensors; "):
        load_predictor(folder)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            "pytorch_model.bin",
            r"as pickle only \(pytorch_model\.bin\), .* so none is read; convert",
        ),
        ("pytorch_model-00001-of-00002.bin", "as pickle only"),
        ("model-00001-of-00002.safetensors", f"but neither model.safetensors nor {INDEX}"),
        ("adapter_config.json", r"an adapter \(adapter_config\.json\), not a model; merge it"),
    ],
)
def test_what_is_there_instead_of_weights_is_named(folder, file, message):
    (folder / "model.safetensors").rename(folder / file)
    with pytest.raises(ModelError, match=rf"^{folder} holds .*{message}"):
        load_predictor(folder)


def test_the_folder_of_an_adapter_is_called_one(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match=rf"^{tmp_path} holds an adapter .*merge it into its base"):
        load_predictor(tmp_path)


def test_two_sets_of_weights_are_refused(folder):
    whole = (folder / "model.safetensors").read_bytes()
    shard(folder)
    (folder / "model.safetensors").write_bytes(whole)
    with pytest.raises(ModelError, match=rf"^{folder} holds both model\.safetensors and {INDEX}"):
        load_predictor(folder)


@pytest.mark.parametrize("index", ["{}", '{"weight_map": {}}', '{"weight_map": ["a"]}'])
def test_an_index_without_weights_is_named(folder, index):
    shard(folder)
    (folder / INDEX).write_text(index)
    with pytest.raises(ModelError, match=rf"^{folder}/{INDEX} lists no weights; "):
        load_predictor(folder)


@pytest.mark.parametrize("file", ["../model.safetensors", "", None])
def test_an_index_that_leads_out_of_its_folder_is_refused(folder, file):
    shard(folder)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": file}}))
    with pytest.raises(ModelError, match=rf"{INDEX} puts tensor 'a' in {file!r}, which is no file"):
        load_predictor(folder)


def test_a_tensor_in_another_file_than_the_index_says_is_named_with_both(folder):
    first, second = shard(folder)
    name = "model.transformer.ln_f.weight"
    path = folder / INDEX
    index = json.loads(path.read_text())
    here, other = index["weight_map"][name], {first: second, second: first}
    index["weight_map"][name] = other[here]
    path.write_text(json.dumps(index))
    with pytest.raises(ModelError, match=f"{name!r} in {here}, {INDEX} says {other[here]}; "):
        load_predictor(folder)
    del index["weight_map"][name]
    path.write_text(json.dumps(index))
    with pytest.raises(ModelError, match=f"{name!r} in {here}, {INDEX} says nothing; "):
        load_predictor(folder)


def test_a_tensor_that_two_files_hold_is_named_with_both(folder):
    first, second = shard(folder)
    name, weight = next(iter(load_file(folder / first).items()))
    save_file({**load_file(folder / second), name: weight}, folder / second)
    with pytest.raises(ModelError, match=rf"{name!r} twice, in {first} and {second}; "):
        load_predictor(folder)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn, torch.float64])
def test_weights_of_a_type_that_is_not_read_are_named(folder, dtype):
    weights = weights_of(folder)
    name = "model.transformer.blocks.0.q_proj.weight"
    weights[name] = weights[name].to(dtype)
    rewrite(folder, weights)
    with pytest.raises(ModelError, match=rf"{name!r} in [A-Z].*; weights are read from F32, BF16"):
        load_predictor(folder)


@pytest.mark.parametrize("kept", [0, 4, 200, 0.5, -1])
def test_truncated_weights_are_named(folder, kept):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept == 0.5 else kept])
    with pytest.raises(ModelError, match=rf"^{path} cannot be read \(.*\); the file is truncated"):
        load_predictor(folder)


def test_a_pointer_instead_of_weights_is_named(folder):
    path = folder / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(ModelError, match=rf"^{path} cannot be read"):
        load_predictor(folder)


def test_a_tensor_of_another_shape_is_named_with_both(folder):
    weights = weights_of(folder)
    name = "model.transformer.blocks.1.ff_proj.weight"
    weights[name] = weights[name][:-1].clone()
    rewrite(folder, weights)
    with pytest.raises(
        ModelError, match=rf"'{name}' of shape \[159, 64\], config.json needs \[160"
    ):
        load_predictor(folder)


def test_an_unexpected_tensor_is_named(folder):
    weights = weights_of(folder)
    weights["model.transformer.blocks.3.q_proj.weight"] = torch.zeros(64, 64)
    rewrite(folder, weights)
    with pytest.raises(ModelError, match=r"'model\.transformer\.blocks\.3\.q_proj\.weight' that"):
        load_predictor(folder)


def test_missing_tensors_are_counted_and_the_first_named(folder):
    weights = weights_of(folder)
    for name in ("model.transformer.ln_f.weight", "model.transformer.blocks.2.k_proj.weight"):
        del weights[name]
    total = len(weights) + 2
    rewrite(folder, weights)
    first = r"model\.transformer\.blocks\.2\.k_proj\.weight"
    with pytest.raises(ModelError, match=f"lacks 2 of {total} tensors, the first is '{first}'; "):
        load_predictor(folder)


@pytest.fixture
def with_tokenizer(tmp_path, tiny_model_folder):
    """A model folder with a tokenizer, which a test may damage."""
    return shutil.copytree(tiny_model_folder, tmp_path / "copy")


def change(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_truncated_tokenizer_is_named(with_tokenizer, name):
    whole = (with_tokenizer / name).read_text()
    (with_tokenizer / name).write_text(whole[:-20])
    with pytest.raises(ModelError, match=rf"^{with_tokenizer}/{name} is not JSON"):
        load_predictor(with_tokenizer)


@pytest.mark.parametrize(
    "text", ["{}", '{"model": {}}', '{"version": "1.0", "model": {"type": "BPE", "vocab": 3}}']
)
def test_a_tokenizer_that_is_none_is_named(with_tokenizer, text):
    (with_tokenizer / "tokenizer.json").write_text(text)
    message = rf"^{with_tokenizer}/tokenizer\.json is no tokenizer \(.+\); fetch the folder again"
    with pytest.raises(ModelError, match=message):
        load_predictor(with_tokenizer)


def test_a_tokenizer_larger_than_the_model_is_refused(folder, tiny_model_folder):
    shutil.copy(tiny_model_folder / "tokenizer.json", folder)
    with pytest.raises(
        ModelError, match=rf"^{folder}: the tokenizer has an id \d+, the model has 203"
    ):
        load_predictor(folder)


@pytest.mark.parametrize(
    ("field", "what"), [("mask_token_id", "mask token"), ("eos_token_id", "end token")]
)
def test_a_tokenizer_with_other_special_tokens_is_refused(
    with_tokenizer, tiny_predictor, field, what
):
    right, wrong = tiny_predictor.config[field], tiny_predictor.vocab_size - 1
    change(with_tokenizer / "config.json", **{field: wrong})
    message = rf"the tokenizer's {what} is {right}, config\.json says {wrong}; "
    with pytest.raises(ModelError, match=message):
        load_predictor(with_tokenizer)


def test_a_tokenizer_that_pads_with_the_mask_is_refused(with_tokenizer):
    change(with_tokenizer / "tokenizer_config.json", pad_token="<|mdm_mask|>")
    with pytest.raises(ModelError, match=r"pads with the mask token \d+, .*; set pad_token in"):
        load_predictor(with_tokenizer)


@pytest.mark.parametrize("source", ["nowhere", "./no/where", "a/b/c", "/no/where", "~/model"])
def test_a_source_that_is_no_folder_is_named(source):
    with pytest.raises(ModelError, match=f"^model '{source}' is no folder; give 'embedded'"):
        load_predictor(source)


@pytest.mark.parametrize("source", ["no-one/nothing", "a b/c"])
def test_a_source_that_the_hub_does_not_give_is_named(source, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=f"^model '{source}' is no folder here and the hub did"):
        load_predictor(source)


@pytest.mark.parametrize("device", ["gpu", "", "cuda:99", "mps"])
def test_a_device_that_is_not_here_is_named(golden_folder, device):
    with pytest.raises(ModelError, match=f"^device='{device}' is not to be had here; "):
        load_predictor(golden_folder, device=device)


def test_auto_takes_a_gpu_where_there_is_one():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert resolve_device("auto") == torch.device(expected)
    assert resolve_device("cpu") == torch.device("cpu")


def test_a_type_that_no_model_has_is_named(golden_folder):
    with pytest.raises(ModelError, match=r"^dtype='float16' is not .*; use float32 or bfloat16"):
        load_predictor(golden_folder, dtype="float16")


def test_loading_a_model_without_a_tokenizer_needs_no_transformers(golden_folder):
    code = (
        "import sys; from dtca_core.models import load_predictor; "
        f"load_predictor({str(golden_folder)!r}); sys.exit('transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

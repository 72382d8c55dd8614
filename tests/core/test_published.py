"""Tests of the published LLaDA-8B-Instruct: names, shapes, tokenizer, and the way there and back.

Its weights are not to be had here. The 8B shape is proved from config.json and from the headers
of files whose tensors are holes; values, at a small width and the published vocabulary.
"""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import huggingface_hub.constants
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from dtca_core.errors import ModelError
from dtca_core.models import load_predictor, loading, save_predictor
from dtca_core.models.chat import encode_prompt
from dtca_core.models.llada import Llada
from dtca_core.models.loading import check_model, model_files
from dtca_core.models.tokenizer import load_tokenizer
from tests import published

INDEX = "model.safetensors.index.json"
TOKENIZER_FILES = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Folder in the published layout, with the published vocabulary and a small random model."""
    folder = tmp_path_factory.mktemp("published") / "LLaDA-8B-Instruct"
    folder.mkdir()
    published.write_tokenizer(folder)
    model = Llada(published.write_config(folder, **published.SMALL))
    model.initialise(torch.Generator().manual_seed(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_SHARD_SIZE", "20MB")
        save_predictor(model.bfloat16(), folder, tokenizer_from=None)
    return folder


@pytest.fixture(scope="module")
def predictor(small):
    """The model of `small`; tests leave it as it is."""
    return load_predictor(small)


def tensors_of(folder):
    """Return every tensor of a folder's files, as stored."""
    files = sorted(folder.glob("*.safetensors"))
    return {name: tensor for path in files for name, tensor in load_file(path).items()}


# ------------------------------------------------------------------------------------ shapes


def test_the_published_config_gives_the_published_names_shapes_and_count():
    with torch.device("meta"):
        model = Llada(published.CONFIG)
    shapes = {name: list(weight.shape) for name, weight in model.state_dict().items()}
    assert shapes == published.shapes_of(published.CONFIG)
    # By hand: two tables of 126464 x 4096; a block has 4 squares of 4096, 3 sheets of
    # 4096 x 12288 and 2 norms; one norm at the end. 9 tensors a block and 3 more.
    square, sheet, table = 4096 * 4096, 4096 * 12288, 126464 * 4096
    by_hand = 2 * table + 32 * (4 * square + 3 * sheet + 2 * 4096) + 4096
    assert sum(weight.numel() for weight in model.parameters()) == by_hand == 8_015_581_184
    assert len(shapes) == 32 * 9 + 3
    facts = (model.mask_id, model.eos_id, model.pad_id, model.vocab_size, model.max_length)
    assert facts == (126336, 126081, 126081, 126464, 4096)
    assert (model.shape.rope_theta, model.shape.rms_norm_eps) == (500000.0, 1e-5)


def test_a_folder_of_the_full_depth_passes_by_its_headers_alone(tmp_path):
    config = published.write_config(tmp_path)
    published.write_hollow_weights(tmp_path, config)
    published.write_tokenizer(tmp_path)
    model = check_model(tmp_path)
    assert {weight.device.type for weight in model.parameters()} == {"meta"}
    total_size = json.loads((tmp_path / INDEX).read_text())["metadata"]["total_size"]
    assert total_size == 16_031_162_368
    assert len(model_files(tmp_path)) == 1 + 6 + 3


# --------------------------------------------------------------------------------- tokenizer


def bytes_of(text):
    """Return the ids of the bytes of a text, by their place in the byte-level alphabet."""
    # The alphabet, sorted: the printable ASCII and Latin-1 bytes stand for themselves and come
    # first; the others are moved behind Latin-1, in their order.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = printable + [byte for byte in range(256) if byte not in printable]
    return [order.index(byte) for byte in text.encode()]


def test_a_prompt_is_encoded_as_the_published_template_says(predictor):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "  What is 2 + 3?\n\n"},
    ]

    def header(role):
        return [published.HEADER, *bytes_of(role), published.HEADER_END, *bytes_of("\n\n")]

    assert encode_prompt(predictor.tokenizer, messages) == [
        published.START,
        *header("system"),
        *bytes_of("Be brief."),
        published.TURN_END,
        *header("user"),
        *bytes_of("What is 2 + 3?"),
        published.TURN_END,
        *header("assistant"),
    ]


def test_end_of_text_and_end_of_turn_both_end_a_response(predictor):
    assert predictor.end_ids == (published.END, published.TURN_END)
    tokenizer = predictor.tokenizer
    assert tokenizer.convert_ids_to_tokens(predictor.mask_id) == "<|mdm_mask|>"
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (published.START, published.END)
    assert tokenizer.pad_token_id == predictor.pad_id == published.END
    text = "2 + 3 is 5.<|eot_id|><|endoftext|>"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ids == [*bytes_of("2 + 3 is 5."), published.TURN_END, published.END]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "2 + 3 is 5."


def test_a_folder_whose_tokenizer_has_no_template_predicts_but_cannot_be_asked(small, tmp_path):
    folder = shutil.copytree(small, tmp_path / "copy")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    del settings["chat_template"]
    path.write_text(json.dumps(settings))
    model = load_predictor(folder)
    assert model.logits(torch.tensor([[1, 2]])).shape == (1, 2, 126464)
    with pytest.raises(ModelError, match=r"chat template.*tokenizer_config\.json of the published"):
        encode_prompt(model.tokenizer, [{"role": "user", "content": "1 + 1?"}])


@pytest.mark.parametrize("template", ["{% for %}", "{{ raise_exception('no such role') }}"])
def test_a_template_that_fails_is_a_fault_of_the_model(small, template):
    tokenizer = load_tokenizer(small)
    tokenizer.chat_template = template
    with pytest.raises(
        ModelError, match=r"^the model's chat template fails on a prompt \(.+\); give"
    ):
        encode_prompt(tokenizer, [{"role": "user", "content": "1 + 1?"}])


# ---------------------------------------------------------------------------- there and back


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_written_is_the_published_layout_and_loads_bit_for_bit(
    small, tmp_path, dtype, monkeypatch
):
    monkeypatch.setattr(loading, "_SHARD_SIZE", "20MB")
    model = load_predictor(small, dtype=dtype)
    written = tmp_path / "written"
    save_predictor(model, written, tokenizer_from=small)
    names = {path.name for path in written.iterdir()}
    shards = {name for name in names if name.endswith(".safetensors")}
    assert len(shards) > 1
    assert names == shards | TOKENIZER_FILES | {"config.json", INDEX}
    for name in ("config.json", *TOKENIZER_FILES):
        assert json.loads((written / name).read_text()) == json.loads((small / name).read_text())
    index = json.loads((written / INDEX).read_text())
    shapes = published.shapes_of({**published.CONFIG, **published.SMALL})
    assert index["weight_map"].keys() == shapes.keys()
    assert set(index["weight_map"].values()) == shards
    elements = sum(math.prod(shape) for shape in shapes.values())
    assert index["metadata"]["total_size"] == elements * getattr(torch, dtype).itemsize
    again = load_predictor(written, dtype=dtype).state_dict()
    # Files of bfloat16 hold the same values as either type.
    for name, stored in tensors_of(small).items():
        assert again[name].dtype == getattr(torch, dtype)
        assert torch.equal(again[name], stored.to(again[name].dtype))


def test_a_model_is_split_at_the_size_of_published_files(tmp_path, golden_predictor, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        huggingface_hub, "save_torch_state_dict", lambda *_a, **kw: asked.update(kw)
    )
    save_predictor(golden_predictor, tmp_path, tokenizer_from=None)
    assert asked == {"max_shard_size": "5GB"}


def test_the_name_of_a_folder_means_nothing(small, tmp_path, predictor):
    # LLaDA-1.5 is the same layout under another name.
    folder = tmp_path / "LLaDA-1.5"
    folder.symlink_to(small, target_is_directory=True)
    other = load_predictor(folder)
    assert other.config == predictor.config == {**published.CONFIG, **published.SMALL}
    weights = predictor.state_dict()
    assert all(torch.equal(weights[name], weight) for name, weight in other.state_dict().items())


# -------------------------------------------------------------------------------- the hub


def test_a_hub_id_means_its_cached_snapshot_and_no_network(small, tmp_path, monkeypatch):
    # The cache as the hub's client keeps it: files by content, snapshots that link to them.
    repository = tmp_path / "models--GSAI-ML--LLaDA-8B-Instruct"
    snapshot = repository / "snapshots" / ("a" * 40)
    for folder in (snapshot, repository / "blobs", repository / "refs"):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text("a" * 40)
    for i, path in enumerate(sorted(small.iterdir())):
        shutil.copy(path, repository / "blobs" / f"{i:040x}")
        (snapshot / path.name).symlink_to(Path("../../blobs") / f"{i:040x}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    model = load_predictor("GSAI-ML/LLaDA-8B-Instruct")
    assert model.end_ids == (published.END, published.TURN_END)
    with pytest.raises(ModelError, match=r"'GSAI-ML/LLaDA-1\.5' is no folder here and the hub did"):
        load_predictor("GSAI-ML/LLaDA-1.5")
    index = json.loads((snapshot / INDEX).read_text())
    last = max(index["weight_map"].values())
    (snapshot / last).unlink()
    with pytest.raises(ModelError, match=rf"lacks {last}, which model\.safetensors\.index\.json"):
        load_predictor("GSAI-ML/LLaDA-8B-Instruct")


def test_of_a_repository_only_weights_settings_and_templates_are_fetched(monkeypatch, tmp_path):
    from huggingface_hub.utils import filter_repo_objects

    asked = {}

    def fetched(repo_id, allow_patterns):
        asked.update(repo_id=repo_id, allow_patterns=allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    assert loading.model_folder("GSAI-ML/LLaDA-8B-Instruct") == tmp_path
    weights = [f"model-{i:05d}-of-00006.safetensors" for i in range(1, 7)]
    settings = ["config.json", "generation_config.json", INDEX, *sorted(TOKENIZER_FILES)]
    code = [".gitattributes", "README.md", "configuration_llada.py", "modeling_llada.py"]
    files = [*weights, *settings, *code, "pytorch_model.bin"]
    kept = filter_repo_objects(files, allow_patterns=asked["allow_patterns"])
    assert list(kept) == [*weights, *settings]


# ----------------------------------------------------------------------------------- memory

MEASURE = """
import sys
from pathlib import Path
from dtca_core.models import load_predictor
def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024
load_predictor(sys.argv[3])  # so that what is imported late is there
Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
model = load_predictor(sys.argv[1], dtype=sys.argv[2])
weights = sum(weight.nbytes for weight in model.parameters())
print((resident("VmHWM") - before) / weights)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_loading_takes_little_more_memory_than_the_weights(tmp_path, golden_folder, dtype):
    # 131 million weights in files of bfloat16; mapped whole, a file would add a quarter or more.
    sizes = {"d_model": 512, "n_heads": 4, "n_kv_heads": 4, "mlp_hidden_size": 512, "n_layers": 1}
    config = published.write_config(tmp_path, **sizes)
    published.write_hollow_weights(tmp_path, config, files=2)
    command = [sys.executable, "-c", MEASURE, str(tmp_path), dtype, str(golden_folder)]
    ratio = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.95 < ratio < 1.15


def test_weights_are_not_their_file(tmp_path, golden_folder):
    folder = shutil.copytree(golden_folder, tmp_path / "copy")
    model = load_predictor(folder)
    path = folder / "model.safetensors"
    with safe_open(path, framework="pt") as tensors:
        kept = {name: tensors.get_tensor(name).clone() for name in tensors.keys()}  # noqa: SIM118
    with path.open("r+b") as file:
        file.seek(-4096, 2)
        file.write(bytes(4096))
    assert all(torch.equal(kept[name], weight) for name, weight in model.state_dict().items())

"""Model folders: reading and writing checkpoints in the published layout."""

import json
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dtca_core.errors import ModelError
from dtca_core.models.llada import Llada
from dtca_core.models.predictor import MaskPredictor

EMBEDDED = Path(__file__).parent / "embedded"
"""Folder of the model that comes with the package."""

_MODEL_FILES = ("*.safetensors", "*.json", "*.jinja")
_TOKENIZER_FILES = ("tokenizer*.json", "special_tokens_map.json", "chat_template.jinja")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_predictor(
    source: str | Path, *, device: str = "cpu", dtype: str = "float32"
) -> MaskPredictor:
    """Return the model of a folder, ready to predict; weights are read shard by shard.

    Args:
        source: "embedded", a local folder in the published LLaDA layout, or a hub id. A folder
            without a tokenizer still predicts.
        device: "auto", "cpu" or a CUDA device.
        dtype: "float32" or "bfloat16".

    Raises:
        ModelError: the folder lacks its config or weights, or a tensor is missing, unexpected,
            unreadable or of another shape; the message names it.
    """
    if dtype not in _DTYPES:
        raise ModelError(f"dtype={dtype!r} is not to be had; use {' or '.join(_DTYPES)}.")
    folder = model_folder(source)
    model = check_model(folder)
    target = resolve_device(device)
    for name, weight in _read_weights(folder):
        weight = weight.to(device=target, dtype=_DTYPES[dtype])
        model.load_state_dict({name: weight}, strict=False, assign=True)
    return model.eval()


def check_model(folder: Path) -> Llada:
    """Return the model of a folder without its weights, if these fit its config.

    Only the headers of the weight files are read, so that a folder can be refused at no cost.

    Raises:
        ModelError: as `load_predictor`.
    """
    config = _read_json(folder / "config.json")
    with torch.device("meta"):
        model = Llada(config, tokenizer=load_tokenizer(folder), origin=str(folder / "config.json"))
    expected = {name: list(weight.shape) for name, weight in model.state_dict().items()}
    found = dict(_read_shapes(folder))
    for name, shape in found.items():
        if name not in expected:
            raise ModelError(
                f"{folder} holds a tensor {name!r} that a LLaDA of this config does not have; "
                "config.json and the weights belong to different models."
            )
        if shape != expected[name]:
            raise ModelError(
                f"{folder}: tensor {name!r} is {shape}, config.json needs {expected[name]}; "
                "config.json and the weights belong to different models."
            )
    if missing := sorted(expected.keys() - found.keys()):
        raise ModelError(
            f"{folder} lacks {len(missing)} of {len(expected)} tensors, the first is "
            f"{missing[0]!r}; the download is incomplete, fetch the folder again."
        )
    return model


def save_predictor(predictor: MaskPredictor, folder: Path, *, tokenizer_from: Path | None) -> None:
    """Write a model in the layout it is read in: config, safetensors, tokenizer files."""
    from huggingface_hub import save_torch_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    save_torch_state_dict(dict(predictor.state_dict()), folder)
    config = json.dumps(predictor.config, indent=2, sort_keys=True) + "\n"
    (folder / "config.json").write_text(config, encoding="utf-8")
    for path in tokenizer_files(tokenizer_from) if tokenizer_from else ():
        shutil.copyfile(path, folder / path.name)


def model_folder(source: str | Path) -> Path:
    """Return the local folder of a model, fetching it from the hub if it is a hub id."""
    if source == "embedded":
        return EMBEDDED
    folder = Path(source)
    if folder.is_dir():
        return folder
    is_hub_id = isinstance(source, str) and source.count("/") == 1 and source[0] not in "./~"
    if not is_hub_id:
        raise ModelError(
            f"model {str(source)!r} is no folder; give 'embedded', the path of a folder with "
            "config.json and *.safetensors, or a hub id such as GSAI-ML/LLaDA-8B-Instruct."
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        return Path(snapshot_download(str(source), allow_patterns=list(_MODEL_FILES)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"model {str(source)!r} is no folder here and the hub did not give it "
            f"({type(error).__name__}); check the name and the network, or give a local folder."
        ) from None


def model_files(folder: Path) -> list[Path]:
    """Return the files that make up a model; its digest is theirs."""
    return [folder / "config.json", *weight_files(folder), *tokenizer_files(folder)]


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a model folder: those of its index, or the only one."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        weight_map = _read_json(index).get("weight_map")
        names = sorted(set(weight_map.values())) if isinstance(weight_map, dict) else []
    else:
        names = ["model.safetensors"]
    files = [folder / Path(name).name for name in names]
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise ModelError(
            f"{folder} lacks {', '.join(missing) or 'a list of weights in its index'}; give the "
            "folder of a complete checkpoint in safetensors."
        )
    return files


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the tokenizer files of a model folder."""
    return sorted(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern))


def load_tokenizer(folder: Path) -> Any:
    """Return the fast tokenizer of a model folder, or None where there is none."""
    if not (folder / "tokenizer.json").is_file():
        return None
    from transformers import PreTrainedTokenizerFast

    _read_json(folder / "tokenizer.json")  # a damaged file is named before it is parsed
    return PreTrainedTokenizerFast.from_pretrained(str(folder))


def resolve_device(device: str) -> torch.device:
    """Return the device meant; "auto" takes a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ModelError(
            f"device={device!r} is not to be had here; use 'auto' or 'cpu', or run where it is."
        ) from None
    return chosen


def _read_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor of a folder's safetensors files, one at a time."""
    for shard in weight_files(folder):
        with _opened(shard) as tensors:
            for name in tensors.keys():  # noqa: SIM118  (safe_open is no mapping)
                yield name, tensors.get_tensor(name)


def _read_shapes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Yield the shape of every tensor, from the headers of the files alone."""
    for shard in weight_files(folder):
        with _opened(shard) as tensors:
            for name in tensors.keys():  # noqa: SIM118  (safe_open is no mapping)
                yield name, list(tensors.get_slice(name).get_shape())


@contextmanager
def _opened(shard: Path) -> Generator[Any, None, None]:
    """Open a safetensors file, or raise ModelError that names it."""
    try:
        with safe_open(shard, framework="pt") as tensors:
            yield tensors
    except SafetensorError as error:
        raise ModelError(
            f"{shard} cannot be read ({error}); the file is truncated or altered, fetch it again."
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ModelError(f"{path} does not exist; a model folder holds config.json and weights.")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not JSON ({error}); fetch the folder again.") from None
    if not isinstance(value, dict):
        raise ModelError(
            f"{path} holds a {type(value).__name__}, not named fields; fetch the folder again."
        )
    return value

"""Models by name, folder or hub id: reading and writing checkpoints in the published layout."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dtca_core.errors import ModelError
from dtca_core.models.folder import read_config, tokenizer_files, weight_files
from dtca_core.models.llada import Llada
from dtca_core.models.predictor import MaskPredictor
from dtca_core.models.tensors import check_tensors, read_tensors
from dtca_core.models.tokenizer import check_tokenizer, load_tokenizer

EMBEDDED = Path(__file__).parent / "embedded"
"""Folder of the model that comes with the package."""

_HUB_FILES = ("*.safetensors", "*.json", "*.jinja")
"""What is fetched of a repository: no code, no pickle."""
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_SHARD_SIZE = "5GB"
"""Largest file of written weights, as the published ones: larger models get several."""


def load_predictor(
    source: str | Path, *, device: str = "cpu", dtype: str = "float32"
) -> MaskPredictor:
    """Return the model of a folder, ready to predict; weights are read piece by piece.

    Args:
        source: "embedded", a local folder in the published LLaDA layout, or a hub id. A folder
            without a tokenizer still predicts.
        device: "auto", "cpu" or a CUDA device.
        dtype: "float32" or "bfloat16", whatever the weights are stored in.

    Raises:
        ModelError: the folder lacks its config or weights, a tensor is missing, unexpected,
            unreadable or of another shape or type, or the tokenizer is of another model; the
            message names it.
    """
    if dtype not in _DTYPES:
        raise ModelError(f"dtype={dtype!r} is not to be had; use {' or '.join(_DTYPES)}.")
    folder = model_folder(source)
    model = check_model(folder)
    target = resolve_device(device)
    for name, weight in read_tensors(folder, dtype=_DTYPES[dtype], device=target):
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, nn.Parameter(weight))
    return model.eval()


def check_model(folder: Path) -> Llada:
    """Return the model of a folder without its weights, if these fit its config.

    Only the headers of the weight files are read, so that a folder can be refused at no cost.

    Raises:
        ModelError: as `load_predictor`.
    """
    config = read_config(folder)
    model = _without_weights(config, load_tokenizer(folder), str(folder / "config.json"))
    check_tensors(folder, _shapes(model))
    if model.tokenizer is not None:
        check_tokenizer(
            model.tokenizer,
            vocab_size=model.vocab_size,
            mask_id=model.mask_id,
            eos_id=model.eos_id,
            origin=folder,
        )
    return model


def save_predictor(predictor: MaskPredictor, folder: Path, *, tokenizer_from: Path | None) -> None:
    """Write a model in the layout it is read in: config, safetensors, tokenizer files.

    Raises:
        ModelError: the model does not hold the tensors of its config, as where its weights are
            spread over processes; nothing is written then, and an older model stays.
    """
    from huggingface_hub import save_torch_state_dict

    _refuse_incomplete(predictor)
    folder.mkdir(parents=True, exist_ok=True)
    save_torch_state_dict(dict(predictor.state_dict()), folder, max_shard_size=_SHARD_SIZE)
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
        return Path(snapshot_download(str(source), allow_patterns=list(_HUB_FILES)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelError(
            f"model {str(source)!r} is no folder here and the hub did not give it "
            f"({type(error).__name__}); check the name and the network, or give a local folder."
        ) from None


def model_files(folder: Path) -> list[Path]:
    """Return the files that make up a model; its digest is theirs."""
    return [folder / "config.json", *weight_files(folder), *tokenizer_files(folder)]


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


def _without_weights(config: Mapping[str, Any], tokenizer: Any, origin: str) -> Llada:
    """Return the model of a config with names and shapes, but no memory for its weights."""
    with torch.device("meta"):
        return Llada(config, tokenizer=tokenizer, origin=origin)


def _shapes(model: MaskPredictor) -> dict[str, list[int]]:
    """Return the shape of each tensor of a model."""
    return {name: list(weight.shape) for name, weight in model.state_dict().items()}


def _refuse_incomplete(predictor: MaskPredictor) -> None:
    """Raise ModelError if a model does not hold the tensors of its config."""
    needed = _shapes(_without_weights(predictor.config, None, "the config of the model"))
    held = _shapes(predictor)
    for name in sorted(needed.keys() | held.keys()):
        if held.get(name) != needed.get(name):
            raise ModelError(
                f"the model holds tensor {name!r} as {held.get(name, 'nothing')}, its config needs "
                f"{needed.get(name, 'nothing')}; gather weights that are spread over processes "
                "before they are saved."
            )

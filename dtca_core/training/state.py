"""Resumable checkpoints: weights and optimizer after an update, complete or not there at all.

Random streams are named by update and problem, so there is no random state to keep. Tensors go
to safetensors; nothing is pickled.
"""

import json
import os
import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dtca_core.errors import TrainingError
from dtca_core.store.files import sync, write_json

_PREFIX = "update-"


def save_state(
    folder: Path, update: int, model: nn.Module, optimizer: torch.optim.Optimizer, keep_last: int
) -> None:
    """Write the state after an update, then delete all but the newest `keep_last`."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{_PREFIX}{update:08d}"
    partial = folder / f".partial-{place.name}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    save_file(dict(model.state_dict()), partial / "model.safetensors")
    save_file(_optimizer_tensors(model, optimizer), partial / "optimizer.safetensors")
    write_json(partial / "state.json", {"update": update})
    for path in [*partial.iterdir(), partial]:
        sync(path)
    shutil.rmtree(place, ignore_errors=True)
    os.rename(partial, place)
    sync(folder)
    for old in _saved(folder)[:-keep_last]:
        shutil.rmtree(old)


def resume_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Restore the newest complete state and return its update; 0 where there is none.

    Raises:
        TrainingError: a file of it is missing or cannot be read, or it is of another model.
    """
    saved = _saved(folder)
    if not saved:
        return 0
    newest = saved[-1]
    try:
        weights = load_file(newest / "model.safetensors")
        tensors = load_file(newest / "optimizer.safetensors")
        update = int(json.loads((newest / "state.json").read_text())["update"])
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise TrainingError(
            f"{newest} cannot be resumed ({error}); a state holds weights, optimizer and update. "
            "Remove it to go on from the one before."
        ) from None
    expected = {name: value.shape for name, value in model.state_dict().items()}
    if {name: value.shape for name, value in weights.items()} != expected:
        raise TrainingError(
            f"{newest} holds the weights of another model; the folder belongs to another run. "
            "Remove it to start over."
        )
    model.load_state_dict(weights)
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, _, field = key.rpartition("/")
        if name not in parameters:
            raise TrainingError(
                f"{newest} holds optimizer state of {name!r}, which this model does not have; "
                "the folder belongs to another run. Remove it to start over."
            )
        optimizer.state[parameters[name]][field] = value.to(
            value.device if field == "step" else parameters[name].device
        )
    return update


def _saved(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_PREFIX}*"))


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{field}": value.contiguous()
        for name, parameter in model.named_parameters()
        for field, value in optimizer.state.get(parameter, {}).items()
    }

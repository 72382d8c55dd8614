"""The tensors of a model folder: checked by the headers alone, then read without a second copy."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dtca_core.errors import ModelError
from dtca_core.models.folder import INDEX, weight_files, weight_map

_STORED = ("F32", "BF16", "F16")
"""Types of stored weights that are read, in the names of safetensors."""
_WINDOW = 16 * 2**20
"""Bytes of a file that are mapped at a time: what reading takes on top of the weights."""


def check_tensors(folder: Path, shapes: Mapping[str, list[int]]) -> None:
    """Refuse a folder whose files do not hold exactly the tensors of these names and shapes.

    Raises:
        ModelError: a tensor is missing, unexpected, there twice, in another file than the index
            says, of another shape or of another type; or a file cannot be read.
    """
    index = weight_map(folder)
    found: dict[str, str] = {}
    for path, name, shape, stored in _headers(folder):
        if name in found:
            raise ModelError(
                f"{folder} holds tensor {name!r} twice, in {found[name]} and {path.name}; the "
                "files are of different checkpoints, fetch the folder again."
            )
        found[name] = path.name
        if reason := _misfit(name, shape, stored, shapes):
            raise ModelError(f"{folder} {reason}")
        if index and index.get(name) != path.name:
            raise ModelError(
                f"{folder} holds tensor {name!r} in {path.name}, {INDEX} says "
                f"{index.get(name, 'nothing')}; the files are of different checkpoints, "
                "fetch the folder again."
            )
    if missing := sorted(shapes.keys() - found.keys()):
        raise ModelError(
            f"{folder} lacks {len(missing)} of {len(shapes)} tensors, the first is "
            f"{missing[0]!r}; the download is incomplete, fetch the folder again."
        )


def read_tensors(
    folder: Path, *, dtype: torch.dtype, device: torch.device
) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor of a folder as one of this type and device, file by file.

    Each is filled through a window on its file that is mapped anew for every part: pages of a
    mapping stay in memory until it ends, and a tensor that is one would change with its file.
    """
    for path, name, shape, _ in _headers(folder):
        tensor = torch.empty(shape, dtype=dtype, device=device)
        for rows in _windows(tensor):
            with _opened(path) as tensors:
                tensor[rows] = tensors.get_slice(name)[rows]
        yield name, tensor


def _windows(tensor: Tensor) -> Iterator[slice]:
    """Yield the rows of a tensor in parts of at most a window, or of one row if that is more."""
    row_bytes = tensor[0].numel() * torch.float32.itemsize
    step = max(1, _WINDOW // row_bytes)
    for start in range(0, len(tensor), step):
        yield slice(start, min(start + step, len(tensor)))


def _misfit(name: str, shape: list[int], stored: str, shapes: Mapping[str, list[int]]) -> str:
    """Return what is wrong with one tensor by itself, or nothing."""
    if name not in shapes:
        return (
            f"holds a tensor {name!r} that a LLaDA of this config does not have; "
            "config.json and the weights belong to different models."
        )
    if shape != shapes[name]:
        return (
            f"holds tensor {name!r} of shape {shape}, config.json needs {shapes[name]}; "
            "config.json and the weights belong to different models."
        )
    if stored not in _STORED:
        return (
            f"holds tensor {name!r} in {stored}; weights are read from {', '.join(_STORED)}. "
            "Give the checkpoint as it was before it was quantised."
        )
    return ""


def _headers(folder: Path) -> Iterator[tuple[Path, str, list[int], str]]:
    """Yield file, name, shape and stored type of every tensor, from the headers alone."""
    for path in weight_files(folder):
        with _opened(path) as tensors:
            parts = [(name, tensors.get_slice(name)) for name in tensors.keys()]  # noqa: SIM118
        for name, part in parts:
            yield path, name, list(part.get_shape()), str(part.get_dtype())


@contextmanager
def _opened(path: Path) -> Generator[Any, None, None]:
    """Open a safetensors file, or raise ModelError that names it."""
    try:
        with safe_open(path, framework="pt") as tensors:
            yield tensors
    except SafetensorError as error:
        raise ModelError(
            f"{path} cannot be read ({error}); the file is truncated or altered, fetch it again."
        ) from None

"""The files of a model folder: its config, its weights, its tokenizer; what else is refused."""

import json
from pathlib import Path
from typing import Any

from dtca_core.errors import ModelError

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

_TOKENIZER_FILES = ("tokenizer*.json", "special_tokens_map.json", "chat_template.jinja")


def read_config(folder: Path) -> dict[str, Any]:
    """Return the config of a model folder.

    Raises:
        ModelError: it is not there, or no JSON object; an adapter's folder is called one.
    """
    if not (folder / "config.json").is_file():
        _refuse_adapter(folder)
    return read_json(folder / "config.json")


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files of a model folder: those of its index, or the only one.

    Raises:
        ModelError: none is there, one that the index names is not, or there are two sets.
    """
    has_index, has_whole = (folder / INDEX).is_file(), (folder / WEIGHTS).is_file()
    if has_index and has_whole:
        raise ModelError(
            f"{folder} holds both {WEIGHTS} and {INDEX}, two sets of weights; "
            "move away the one that is not meant."
        )
    if not has_index:
        if not has_whole:
            _refuse_weights(folder)
        return [folder / WEIGHTS]
    files = [folder / name for name in sorted(set(weight_map(folder).values()))]
    if missing := [path.name for path in files if not path.is_file()]:
        raise ModelError(
            f"{folder} lacks {', '.join(missing)}, which {INDEX} names; the download is "
            "incomplete, fetch the folder again."
        )
    return files


def weight_map(folder: Path) -> dict[str, str]:
    """Return the file of each tensor as the index says; empty where a folder has no index."""
    path = folder / INDEX
    if not path.is_file():
        return {}
    files = read_json(path).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise ModelError(f"{path} lists no weights; fetch the folder again.")
    for name, file in files.items():
        if not isinstance(file, str) or not file or Path(file).name != file:
            raise ModelError(
                f"{path} puts tensor {name!r} in {file!r}, which is no file name; "
                "fetch the folder again."
            )
    return files


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the tokenizer files of a model folder."""
    return sorted(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern))


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file of a model folder holds, or raise ModelError."""
    if not path.is_file():
        raise ModelError(
            f"{path} does not exist; a model folder holds config.json and weights. "
            "Fetch the whole folder."
        )
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not JSON ({error}); fetch the folder again.") from None
    if not isinstance(value, dict):
        raise ModelError(
            f"{path} holds a {type(value).__name__}, not named fields; fetch the folder again."
        )
    return value


def _refuse_adapter(folder: Path) -> None:
    """Raise ModelError if a folder is that of an adapter, such as LoRA's."""
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"{folder} holds an adapter (adapter_config.json), not a model; merge it into its "
            "base model, save that as safetensors, and give its folder."
        )


def _refuse_weights(folder: Path) -> None:
    """Raise the ModelError that says what a folder holds instead of weights."""
    _refuse_adapter(folder)
    if pickles := sorted(path.name for path in folder.glob("*.bin")):
        raise ModelError(
            f"{folder} holds weights as pickle only ({pickles[0]}), and reading a pickle can run "
            f"any code, so none is read; convert them to {WEIGHTS} where you trust them."
        )
    if strays := sorted(path.name for path in folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder} holds {strays[0]} but neither {WEIGHTS} nor {INDEX}, which says what is "
            "where; fetch the index too."
        )
    raise ModelError(
        f"{folder} lacks {WEIGHTS}; give the folder of a complete checkpoint in safetensors."
    )

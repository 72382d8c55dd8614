"""Memory and time of loading and saving a model of LLaDA-8B's width, against their limit.

`python bench/loading.py` writes random weights of a few layers to a temporary folder; each
figure is of a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from dtca_core.models import load_predictor, save_predictor
from dtca_core.models.llada import Llada

LIMIT = 1.15
"""Largest peak of resident memory, as a multiple of the weights."""
SHARD = 3 * 2**30
"""Bytes of a file at most, about those of the published checkpoint."""
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
CASES = (("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float32", "float32"))
"""Type of the files, type of the model."""
CONFIG = {
    "model_type": "llada",
    "d_model": 4096,
    "n_heads": 32,
    "n_kv_heads": 32,
    "mlp_hidden_size": 12288,
    "embedding_size": 126464,
    "max_sequence_length": 4096,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5,
    "mask_token_id": 126336,
    "eos_token_id": 126081,
    "pad_token_id": 126081,
}


def write_checkpoint(folder: Path, layers: int, dtype: torch.dtype) -> None:
    """Write a checkpoint of random weights, holding one file of it in memory at a time."""
    config = {**CONFIG, "n_layers": layers}
    (folder / "config.json").write_text(json.dumps(config))
    with torch.device("meta"):
        shapes = {name: weight.shape for name, weight in Llada(config).state_dict().items()}
    parts: list[list[str]] = [[]]
    size = 0
    for name, shape in shapes.items():
        size += shape.numel() * dtype.itemsize
        if size > SHARD and parts[-1]:
            parts.append([])
            size = shape.numel() * dtype.itemsize
        parts[-1].append(name)
    files = {}
    for i, names in enumerate(parts, 1):
        file = f"model-{i:05d}-of-{len(parts):05d}.safetensors"
        weights = {name: torch.randn(shapes[name], dtype=dtype) * 0.02 for name in names}
        save_file(weights, folder / file)
        files |= dict.fromkeys(names, file)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def resident(field: str) -> int:
    """Return a figure of this process's resident memory in bytes: VmRSS, or its peak VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def forget_peak() -> int:
    """Start a new peak at what is resident now, and return that in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def measure(folder: Path, dtype: str) -> dict[str, float]:
    """Return bytes, seconds and peaks of loading a folder in this process, and of saving it."""
    before, start = forget_peak(), time.perf_counter()
    model = load_predictor(folder, dtype=dtype)
    loaded = time.perf_counter()
    load_peak = resident("VmHWM") - before
    forget_peak()
    save_predictor(model, folder / "saved", tokenizer_from=None)
    weights = sum(weight.nbytes for weight in model.parameters())
    return {
        "gigabytes": weights / 1e9,
        "load_seconds": loaded - start,
        "load_peak": load_peak / weights,
        "save_seconds": time.perf_counter() - loaded,
        "save_peak": (resident("VmHWM") - before) / weights,
    }


def measure_apart(folder: Path, dtype: str) -> dict[str, float]:
    """Return what `measure` finds in a fresh process."""
    command = [sys.executable, __file__, "--measure", str(folder), "--dtype", dtype]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print one line for each case; return 1 if one is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=3, help="depth; 32 is the whole LLaDA-8B")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--dtype", choices=DTYPES, help="only models of this type")
    chosen = parser.parse_args()
    if chosen.measure:
        sys.stdout.write(json.dumps(measure(chosen.measure, chosen.dtype)))
        return 0
    worst = 0.0
    for stored, dtype in CASES:
        if chosen.dtype in (None, dtype):
            with tempfile.TemporaryDirectory() as folder:
                write_checkpoint(Path(folder), chosen.layers, DTYPES[stored])
                found = measure_apart(Path(folder), dtype)
            figures = "  ".join(f"{name} {value:.3f}" for name, value in found.items())
            sys.stdout.write(f"{stored} files, {dtype} model: {figures}\n")
            worst = max(worst, found["load_peak"], found["save_peak"])
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

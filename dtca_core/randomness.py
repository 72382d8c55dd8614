"""Random streams named by what they are for, so that nothing depends on order or neighbours."""

import hashlib
import json

import torch


def stream(seed: int, *name: str | int) -> torch.Generator:
    """Return a CPU generator that depends on the seed and the name of its use only.

    Streams stay on the CPU, so that a sample does not depend on the device it was drawn for.
    """
    digest = hashlib.sha256(json.dumps([seed, *name]).encode()).digest()
    # 63 bits, because torch takes a signed seed.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

"""The key of an artifact: the digest of what decides its content, known before it is built."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dtca_core.errors import ConfigError

DIGEST_LENGTH = 32
"""Hexadecimal characters of a key or a content digest: half a SHA-256."""


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, compact, ASCII.

    Refuses what JSON would bend or lose: NaN, infinities, keys that are not text, objects.
    The integer 1 and the float 1.0 differ; a tuple and a list do not.
    """
    return json.dumps(_plain(value, "value"), sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the first 32 hexadecimal characters of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()[:DIGEST_LENGTH]


def artifact_key(
    kind: str, version: int, config: Mapping[str, Any], inputs: Mapping[str, str]
) -> str:
    """Return the key of an artifact.

    Args:
        kind: the kind of artifact, such as `weights`.
        version: the stage's VERSION.
        config: the settings that decide the result; those that say how fast are left out.
        inputs: content digest of each input, by the input's name.
    """
    return digest({"kind": kind, "version": version, "config": config, "inputs": inputs})


def _plain(value: Any, name: str) -> Any:
    """Return the value in plain JSON types, or refuse it by its dotted name."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        for key in entries:
            if not isinstance(key, str):
                raise ConfigError(
                    f"{name} has the key {key!r}, a {type(key).__name__}; write it as text."
                )
        return {key: _plain(inner, f"{name}.{key}") for key, inner in entries.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        members = cast("Sequence[Any]", value)
        return [_plain(inner, f"{name}[{i}]") for i, inner in enumerate(members)]
    is_plain = value is None or isinstance(value, str | int | float)
    if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
        raise ConfigError(
            f"{name} is {value!r}; a key is made of text, finite numbers, booleans and null. "
            "Convert it, or leave it out of the config."
        )
    return value

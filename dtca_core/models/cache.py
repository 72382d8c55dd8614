"""Keys and values of a sequence, so that a window of it can be predicted alone.

One cache serves both published variants: after a full pass, a window that reaches to the end of
the sequence is Fast-dLLM's prefix cache, and a window of one block is its dual cache.
"""

from jaxtyping import Float, Int
from torch import Tensor


class KeyValueCache:
    """Keys and values of every layer for the whole sequence; a window overwrites its own part."""

    def __init__(self) -> None:
        self._layers: list[tuple[Tensor, Tensor]] = []

    def update(
        self, layer: int, start: int, key: Float[Tensor, "B H W D"], value: Float[Tensor, "B H W D"]
    ) -> tuple[Float[Tensor, "B H S D"], Float[Tensor, "B H S D"]]:
        """Return the keys and values of the whole sequence, after putting in those of a window.

        The first call for a layer brings the whole sequence; later ones a window at `start`.
        """
        if layer == len(self._layers):
            self._layers.append((key, value))
            return key, value
        keys, values = self._layers[layer]
        end = start + key.shape[2]
        keys[:, :, start:end] = key
        values[:, :, start:end] = value
        return keys, values

    def keep(self, rows: Int[Tensor, " K"]) -> None:
        """Keep only these rows of the batch."""
        self._layers = [(key[rows], value[rows]) for key, value in self._layers]

"""The weight artifact: a small JSON file that a person reads, compares, edits and trains with."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
from jaxtyping import Float
from pydantic import ConfigDict, Field
from torch import Tensor

from dtca_core.config import Settings, parse_settings
from dtca_core.errors import ArtifactError, ConfigError

Weight = Annotated[float, Field(gt=0.0)]
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]

_INTERVAL = re.compile(r"\[\n\s+([^][\n]+),\n\s+([^][\n]+)\n\s+\]")


class _Record(Settings):
    """A record of a file: types are not converted, and numbers are finite."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class CategoryEstimate(_Record):
    """What is known of one category.

    Intervals and the standard error are null where fewer than two responses have the category:
    one response says nothing of how much responses differ.
    """

    weight: Weight = Field(description="w_c; edit this one to change what training does.")
    weight_interval: Interval | None = Field(
        default=None, description="95 % of w_c over resampled responses: [low, high]."
    )
    mean_delta_p: float = Field(description="m_c, mean contribution of its tokens.")
    mean_interval: Interval | None = Field(
        default=None, description="95 % of m_c over resampled responses: [low, high]."
    )
    standard_error: float | None = Field(description="Of m_c, with responses as the unit.")
    count: int = Field(gt=0, description="N_c, tokens with a defined contribution.")
    num_responses: int | None = Field(
        default=None, gt=0, description="Responses that these tokens are from."
    )


class WeightArtifact(_Record):
    """Category weights and where they come from."""

    format_version: Literal[2] = Field(default=2, description="Version of this file's format.")
    tagger: str = Field(description="Name of the tagger that gave the categories.")
    tagger_version: str = Field(description="Version of that tagger.")
    normalisation: Literal["minmax", "ratio"] = Field(description="How means became weights.")
    low: Weight = Field(description="Smallest weight.")
    high: Weight = Field(description="Largest weight.")
    min_count: int = Field(gt=0, description="A category seen less often has unseen_weight.")
    categories: dict[str, CategoryEstimate] = Field(description="Estimates by category.")
    unseen_weight: Weight = Field(description="Weight of a category that is not listed.")

    @classmethod
    def read(cls, path: Path) -> "WeightArtifact":
        """Return the artifact of a JSON file, or raise ArtifactError that names what is wrong."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ArtifactError(
                f"weight file {path} cannot be read ({error}); give the path of a JSON file that "
                "the weights stage wrote."
            ) from None
        if not isinstance(values, dict):
            raise ArtifactError(
                f"weight file {path} holds a {type(values).__name__}, not an object with "
                "'categories'; give the path of a JSON file that the weights stage wrote."
            )
        try:
            return parse_settings(cls, cast(dict[str, Any], values), f"weight file {path}")
        except ConfigError as error:
            raise ArtifactError(f"{error}\nCorrect the file or run the weights stage.") from None

    def write(self, path: Path) -> None:
        """Write the artifact as JSON, one field a line, categories by name."""
        values = self.model_dump()
        values["categories"] = dict(sorted(values["categories"].items()))
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
        text = _INTERVAL.sub(r"[\1, \2]", text)
        path.write_text(text + "\n", encoding="utf-8")

    def weight_of(self, category: str) -> float:
        """Return w_c, or the weight of an unseen category."""
        estimate = self.categories.get(category)
        return self.unseen_weight if estimate is None else estimate.weight

    def weights_of(self, categories: Sequence[Sequence[str]], length: int) -> Float[Tensor, "B L"]:
        """Return the weight of each token, float32.

        Positions after a row's last category are end padding. They weigh 0, so that they add
        nothing to a timestep's score.

        Args:
            categories: per response, the category of each of its tokens.
            length: L, at least the tokens of the longest response.
        """
        weights = torch.zeros(len(categories), length)
        for row, response in zip(weights, categories, strict=True):
            row[: len(response)] = torch.tensor([self.weight_of(c) for c in response])
        return weights

"""Category weights: mean contributions m_c, weights w_c, and the artifact that carries them.

The artifact is a small JSON file that a person reads, compares, edits and hands to training.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
from jaxtyping import Float
from pydantic import ConfigDict, Field
from torch import Tensor

from dtca_core.categories import Tagger
from dtca_core.config import Settings, WeightsConfig, parse_settings
from dtca_core.errors import ArtifactError, ConfigError, DataError

Weight = Annotated[float, Field(gt=0.0)]


def category_weights(
    means: Mapping[str, float], low: float = 0.8, high: float = 1.2
) -> dict[str, float]:
    """Return w_c, the mean contributions scaled onto [low, high].

        w_c = low + (high - low) (m_c - min m) / (max m - min m)

    All are the midpoint where all m_c are equal, so also where there is one category.

    Args:
        means: mean contribution m_c of each category.
        low: weight of the smallest mean.
        high: weight of the largest mean.
    """
    if not means:
        return {}
    smallest, largest = min(means.values()), max(means.values())
    if largest == smallest:
        return dict.fromkeys(means, (low + high) / 2)
    return {c: low + (high - low) * (m - smallest) / (largest - smallest) for c, m in means.items()}


def ratio_weights(
    means: Mapping[str, float], mean: float, low: float = 0.8, high: float = 1.2
) -> dict[str, float]:
    """Return w_c = clip(m_c / mean, low, high); 1, clipped alike, where the mean is 0.

    Args:
        means: mean contribution m_c of each category.
        mean: mean contribution of a token, whatever its category.
        low: smallest weight.
        high: largest weight.
    """
    return {c: min(max(m / mean if mean else 1.0, low), high) for c, m in means.items()}


class _Record(Settings):
    """A record of a file: types are not converted, and numbers are finite."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class CategoryEstimate(_Record):
    """What is known of one category."""

    weight: Weight = Field(description="w_c; edit this one to change what training does.")
    mean_delta_p: float = Field(description="m_c, mean contribution of its tokens.")
    standard_error: float | None = Field(description="Of m_c; null where one token was seen.")
    count: int = Field(gt=0, description="N_c, tokens with a defined contribution.")


class WeightArtifact(_Record):
    """Category weights and where they come from."""

    format_version: Literal[1] = Field(default=1, description="Version of this file's format.")
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


def estimate_weights(
    delta_p: Iterable[float | None],
    category: Iterable[str],
    config: WeightsConfig,
    tagger: Tagger,
) -> WeightArtifact:
    """Return the weight artifact of contributions and their categories.

    Categories seen at least `min_count` times decide the scale. All others, and those never
    seen, get the mean weight of the tokens of these; where no category was seen often enough,
    every weight is the midpoint of [low, high], which is the base method. The result does not
    depend on the order of the tokens.

    Args:
        delta_p: contribution of each token, a list or a column; null where it is undefined, and
            then left out.
        category: category of each token.
        config: normalisation, bounds and `min_count`.
        tagger: what gave the categories, for the record.
    """
    seen = _by_category(delta_p, category)
    counts = {c: len(values) for c, values in seen.items()}
    means = {c: math.fsum(values) / counts[c] for c, values in seen.items()}
    frequent = {c: m for c, m in means.items() if counts[c] >= config.min_count}
    weights = _scaled(frequent, counts, config)
    midpoint = (config.low + config.high) / 2
    mean_weight = _token_mean(weights, counts) if weights else midpoint
    return WeightArtifact(
        tagger=tagger.name,
        tagger_version=tagger.version,
        normalisation=config.normalisation,
        low=config.low,
        high=config.high,
        min_count=config.min_count,
        categories={
            c: CategoryEstimate(
                weight=weights.get(c, mean_weight),
                mean_delta_p=means[c],
                standard_error=_standard_error(seen[c], means[c]),
                count=counts[c],
            )
            for c in sorted(seen)
        },
        unseen_weight=mean_weight,
    )


def _by_category(
    delta_p: Iterable[float | None], category: Iterable[str]
) -> dict[str, list[float]]:
    """Return the defined contributions of each category, which have to be finite and >= 0."""
    values: dict[str, list[float]] = defaultdict(list)
    for row, (value, name) in enumerate(zip(delta_p, category, strict=True)):
        if value is None:
            continue
        if not 0.0 <= value < math.inf:
            raise DataError(
                f"token {row} ({name}) has delta_p={value}; it is a finite number of at least 0, "
                "or null where it is undefined. Measure the contributions again."
            )
        values[name].append(float(value))
    return values


def _scaled(
    means: Mapping[str, float], counts: Mapping[str, int], config: WeightsConfig
) -> dict[str, float]:
    """Return the weights of these categories by the configured normalisation."""
    if config.normalisation == "minmax" or not means:
        return category_weights(means, config.low, config.high)
    return ratio_weights(means, _token_mean(means, counts), config.low, config.high)


def _token_mean(values: Mapping[str, float], counts: Mapping[str, int]) -> float:
    """Return the mean over the tokens of these categories of a value of their category."""
    total = sum(counts[c] for c in values)
    return math.fsum(counts[c] * value for c, value in values.items()) / total


def _standard_error(values: Sequence[float], mean: float) -> float | None:
    """Return the standard error of the mean, with n - 1; None of a single value."""
    if len(values) < 2:
        return None
    squares = math.fsum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))

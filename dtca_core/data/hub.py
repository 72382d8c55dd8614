"""Datasets known by name, read from the Hugging Face hub through `datasets`.

Each is pinned to a commit, so that a name always means the same rows: the name is in the key of
the artifact, and who moves a pin raises the version of the stage. Any other dataset of the hub is
a Parquet or JSON file that can be fetched and given by its path.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

from dtca_core.data.rows import Row
from dtca_core.errors import DataError

Purpose = Literal["training", "evaluation"]
"""What problems are for."""


@dataclass(frozen=True, kw_only=True)
class HubDataset:
    """Where a dataset is on the hub, and which of its rows are meant."""

    repository: str
    """Hub id, or a folder that is laid out like one."""
    config: str | None = None
    """Name of the configuration; None where there is one only."""
    revision: str
    """Commit of the repository."""
    splits: dict[Purpose, str]
    """Split for each purpose that it serves."""
    levels: tuple[int, ...] | None = None
    """Levels to take; None: all rows."""


HUB_DATASETS = {
    "gsm8k": HubDataset(
        repository="openai/gsm8k",
        config="main",
        revision="740312add88f781978c0658806c59bc2815b9866",
        splits={"training": "train", "evaluation": "test"},
    ),
    "math500": HubDataset(
        repository="HuggingFaceH4/MATH-500",
        revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        splits={"evaluation": "test"},
    ),
    # The 12,000 problems of MATH that are not in MATH500; the usual training set are levels 3 to 5.
    "math-train": HubDataset(
        repository="nlile/hendrycks-MATH-benchmark",
        revision="b2d17b56c4299a255acb1d4bc14ce920eb15f4fc",
        splits={"training": "train"},
        levels=(3, 4, 5),
    ),
}
"""Hub datasets by the name that settings use. None of them was ever fetched where this was written:
ids, commits, splits and columns are as other public code and the hub's pages give them."""


def check_purpose(name: str, purpose: Purpose) -> None:
    """Refuse a dataset for what it has no split for.

    Raises:
        DataError: it says which datasets have one.
    """
    if purpose not in HUB_DATASETS[name].splits:
        others = [other for other, known in HUB_DATASETS.items() if purpose in known.splits]
        raise DataError(
            f"dataset {name!r} has no split for {purpose}; use {' or '.join(map(repr, others))}, "
            "or the path of a file."
        )


def hub_rows(name: str, purpose: Purpose) -> list[Row]:
    """Return the rows of a dataset, in its order, fetching it unless it was fetched before.

    Raises:
        DataError: the hub cannot be reached, or gives something else than is expected.
    """
    check_purpose(name, purpose)
    known = HUB_DATASETS[name]
    split = known.splits[purpose]
    place = f"{name}, {split}"
    rows = _load(name, known, split)
    if known.levels is not None:
        rows = [row for row in rows if _level(row, place) in known.levels]
    if not rows:
        raise DataError(
            f"dataset {name!r} ({known.repository}) holds no problems in its split {split!r}; "
            "give the path of a problem file instead."
        )
    return [(f"{place}, row {number}", row) for number, row in enumerate(rows, 1)]


def _load(name: str, known: HubDataset, split: str) -> list[dict[str, Any]]:
    # Imported here: it brings pandas, which nothing else needs.
    from datasets import load_dataset  # pyright: ignore[reportMissingTypeStubs]
    from datasets.exceptions import DatasetsError  # pyright: ignore[reportMissingTypeStubs]

    try:
        loaded = load_dataset(known.repository, known.config, split=split, revision=known.revision)
    # What a hub that is away, a repository that moved, and rows of another form raise.
    except (OSError, ValueError, DatasetsError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"dataset {name!r} could not be read from the hub, {known.repository} at "
            f"{known.revision[:12]} ({reason}). Check the network, or fetch its {split} split "
            "elsewhere as JSON, JSON Lines or Parquet and give the path of that file."
        ) from None
    return cast(list[dict[str, Any]], cast(Any, loaded).to_list())


def _level(row: dict[str, Any], place: str) -> int | None:
    """Return the level of a row, 5 as well as "Level 5"; None where it has no number."""
    if "level" not in row:
        raise DataError(
            f"{place} has no column 'level' to choose problems by; it has "
            f"{', '.join(map(repr, row))}. Give the path of a problem file instead."
        )
    last = str(row["level"])[-1:]
    return int(last) if last.isdigit() else None

"""Small references that pass between Prefect tasks and flows; never the data itself."""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from dtca_core.store import Artifact, Store

ROOT_VARIABLE = "DTCA_ARTIFACTS"
"""Environment variable that names the artifact root."""


class ArtifactRef(BaseModel):
    """Which artifact: enough to find it again in the store."""

    model_config = ConfigDict(frozen=True)

    kind: str = Field(description="Kind of the artifact, such as 'weights'.")
    key: str = Field(description="Key of the artifact: 32 hexadecimal digits.")
    path: str = Field(description="Where it is.")
    is_cached: bool = Field(description="Whether the store held it already.")
    seconds: float = Field(description="Wall time that it took to have it.")

    @property
    def short(self) -> str:
        """Return the name that people use."""
        return f"{self.kind}/{self.key[:12]}"


def open_store() -> Store:
    """Return the store of this environment: DTCA_ARTIFACTS, or `artifacts/` of the checkout.

    Without a checkout it is `artifacts/` where one stands. A worker starts its runs in folders
    of their own, so for one the current folder would be no lasting place.
    """
    checkout = Path(__file__).resolve().parent.parent
    base = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return Store(Path(os.environ.get(ROOT_VARIABLE, base / "artifacts")))


def resolve(kind: str, reference: str) -> Artifact:
    """Return the artifact meant by `latest`, a key or its prefix, or a path."""
    return open_store().resolve(kind, reference)

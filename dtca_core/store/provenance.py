"""Provenance: what an artifact was made of, with what, and when."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from dtca_core.store.keys import artifact_key

Kind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Record(BaseModel):
    """A frozen record that refuses unknown names, NaN and infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class InputRecord(Record):
    """An artifact that another one was made from."""

    kind: Kind
    key: Digest
    content: Digest


class Provenance(Record):
    """All that a manifest says before its files are known."""

    format: Literal[1] = 1
    """Version of the manifest itself."""
    kind: Kind
    key: Digest
    version: int
    """The stage's VERSION; in the key."""
    code: str
    """Digest of the core modules that the stage ran; not in the key."""
    git_commit: str | None
    config: dict[str, Any]
    """The settings that decide the result; in the key."""
    execution: dict[str, Any]
    """The full resolved config, with what only said how fast to go."""
    inputs: dict[str, InputRecord]
    """By the input's name; their contents are in the key."""
    packages: dict[str, str]
    """Version of each package that matters, by name."""
    device: str
    dtype: str
    seed: int | None
    started: AwareDatetime
    """When the build started, UTC."""
    seconds: float = Field(ge=0.0)
    """Wall time of the build."""
    counts: dict[str, int | float]
    """How many rows, tokens and the like, by name."""

    @property
    def finished(self) -> datetime:
        """When the build ended, UTC."""
        return self.started + timedelta(seconds=self.seconds)

    @field_validator("started")
    @classmethod
    def _in_utc(cls, started: datetime) -> datetime:
        return started.astimezone(UTC)

    @model_validator(mode="after")
    def _key_follows(self) -> "Provenance":
        contents = {name: record.content for name, record in self.inputs.items()}
        key = artifact_key(self.kind, self.version, self.config, contents)
        if self.key != key:
            raise ValueError(
                f"key={self.key} does not follow from kind, version, config and inputs; "
                f"they give {key}"
            )
        return self

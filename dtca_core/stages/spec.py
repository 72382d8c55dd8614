"""A stage is data: what it makes, from what, with which function. `run.py` runs any of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from dtca_core.config import ModelConfig, Settings
from dtca_core.store import Artifact


@runtime_checkable
class Listener(Protocol):
    """Whoever watches a stage."""

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        """Say how far the stage is, in units of its own."""
        ...

    def waiting(self, reference: str) -> None:
        """Say that another process builds the same artifact, and that this one waits for it."""
        ...

    def note(self, message: str) -> None:
        """Say once what a person should know of the result."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    """A model as an input: where it is, and the digest of its files."""

    source: str
    """What to load: a folder, or "embedded"."""
    config: ModelConfig
    """Its dtype decides the result, its device does not."""
    artifact: Artifact
    """Its content is the digest of the model's own files, or that of the checkpoint it is in."""


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """What a stage's function is given."""

    folder: Path
    """Where to write; what a killed build has finished is still there."""
    config: Any
    """Settings of the stage's own class."""
    inputs: Mapping[str, Artifact]
    """Artifacts by the input's name."""
    model: ModelInput | None
    """The model, for a stage that needs one."""
    listener: Listener
    """To be told of progress."""

    @property
    def model_config(self) -> ModelConfig:
        """Settings that load the model that was given."""
        assert self.model is not None, "the stage's spec says that it needs a model"
        return self.model.config.model_copy(update={"source": self.model.source})


Counts = dict[str, int | float]
"""What a stage says of its artifact: rows, tokens and the like, by name."""


def no_files(config: Any) -> Mapping[str, Path]:
    """Return the files that the settings of most stages name: none."""
    return {}


@dataclass(frozen=True, kw_only=True)
class StageSpec:
    """A stage: name, version, settings, inputs, function."""

    name: str
    """Name of the stage, as on the command line."""
    kind: str
    """Kind of the artifact that it makes."""
    version: int
    """To be raised by hand when the same settings and inputs are to give another result."""
    config: type[Settings]
    """Class of its settings."""
    inputs: tuple[str, ...]
    """Names of its inputs, which are kinds of artifacts but for `before` and `after`."""
    needs_model: bool
    """Whether it is given a model."""
    build: Callable[[StageContext], Counts]
    """Writes the artifact's files into the folder."""
    files: Callable[[Any], Mapping[str, Path]] = no_files
    """Returns the files that settings name, by the setting's name; they count by content."""
    program: str | None = None
    """Module that the function runs in a process of its own, which no import leads to."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the stage starts from; its code is theirs and what they import."""
        own = self.build.__module__
        return (own,) if self.program is None else (own, self.program)

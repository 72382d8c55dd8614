"""What the training process is told: one JSON file, written by whoever starts it."""

from pathlib import Path

from pydantic import Field

from dtca_core.config import ModelConfig, Settings, TrainConfig


class TrainJob(Settings):
    """A training run: settings, what it reads and where it writes."""

    config: TrainConfig
    model: ModelConfig
    problems: Path = Field(description="Parquet file of a dataset artifact.")
    weights: Path | None = Field(description="weights.json, or null for equal weights.")
    output: Path = Field(description="Folder to write in; what is there already is resumed.")

    @property
    def model_folder(self) -> Path:
        """Where the trained model goes."""
        return self.output / "model"

    @property
    def metrics_file(self) -> Path:
        """One JSON object per update or validation; the same for the same run."""
        return self.output / "metrics.jsonl"

    @property
    def timings_file(self) -> Path:
        """One JSON object per update with seconds and memory; differs from run to run."""
        return self.output / "logs" / "timings.jsonl"

    @property
    def state_folder(self) -> Path:
        """Resumable checkpoints while the run goes on."""
        return self.output / "state"

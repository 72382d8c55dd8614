"""Metrics of a run: JSON Lines that continue where a resumed run continues, and TensorBoard."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtca_core.training.job import TrainJob


class MetricsWriter:
    """Appends what happened at each update; what a killed run wrote too much is taken back."""

    def __init__(self, job: TrainJob, resumed_at: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._metrics, self._timings = job.metrics_file, job.timings_file
        for path in (self._metrics, self._timings):
            path.parent.mkdir(parents=True, exist_ok=True)
            _truncate(path, resumed_at)
        folder = job.output / "logs" / "tensorboard"
        self._board = SummaryWriter(str(folder), purge_step=resumed_at + 1)

    def write(self, update: int, values: Mapping[str, int | float]) -> None:
        """Append what is the same in every run of this config."""
        self._append(self._metrics, update, values)

    def write_timings(self, update: int, values: Mapping[str, int | float]) -> None:
        """Append what differs from run to run."""
        self._append(self._timings, update, values)

    def close(self) -> None:
        """Flush everything."""
        self._board.close()

    def _append(self, path: Path, update: int, values: Mapping[str, int | float]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"update": update, **values}) + "\n")
        for name, value in values.items():
            self._board.add_scalar(f"{path.stem}/{name}", value, update)
        self._board.flush()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a metrics file; a last line that was cut off is left out."""
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            rows.append(json.loads(line))
    return rows


def _truncate(path: Path, update: int) -> None:
    """Keep only rows up to an update; before the first one there is nothing to keep."""
    if not path.exists():
        return
    kept = [row for row in read_metrics(path) if update and row["update"] <= update]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")

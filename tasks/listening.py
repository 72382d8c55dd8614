"""What a person sees of a running stage: a bar on a terminal, else a line now and then."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tasks.logger import say

_SECONDS_BETWEEN_LINES = 10.0


class StageListener:
    """Shows the progress of one stage; a context manager, so that a bar always ends."""

    def __init__(self, name: str, console: Console) -> None:
        self.name, self.console = name, console
        self._begin = self._last_line = time.monotonic()
        self._first_done: int | None = None
        self._bar = _bar(console) if console.is_terminal else None
        self._row: TaskID | None = None

    def __enter__(self) -> "StageListener":
        """Show the bar, where there is a terminal."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def progress(self, done: int, total: int, unit: str, note: str = "") -> None:
        """Say how far the stage is."""
        if self._bar is not None:
            if self._row is None:
                self._row = self._bar.add_task(self.name, total=total, unit=unit, rate="", note="")
            rate = f"{self._rate(done):.1f} {unit}/s" if self._rate(done) else unit
            self._bar.update(self._row, completed=done, rate=rate, note=note)
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES and done < total:
            self._last_line = time.monotonic()
            say(self._line(done, total, unit, note))
        if self._first_done is None:
            self._first_done, self._begin = done, time.monotonic()

    def waiting(self, reference: str) -> None:
        """Say that this process waits for another one."""
        say(f"{self.name}: another run builds {reference}; waiting for it")

    def note(self, message: str) -> None:
        """Say what a person should know of the result."""
        say(f"{self.name}: {message}")

    def _rate(self, done: int) -> float:
        """Return units per second since this process began; what it found done does not count."""
        elapsed = time.monotonic() - self._begin
        return (done - (self._first_done or 0)) / elapsed if elapsed > 0 else 0.0

    def _line(self, done: int, total: int, unit: str, note: str) -> str:
        rate = self._rate(done)
        left = f", {(total - done) / rate:.0f} s left" if rate else ""
        return f"{self.name}: {done}/{total} {unit}, {rate:.1f}/s{left}" + (
            f", {note}" if note else ""
        )


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
    )

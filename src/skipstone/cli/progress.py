"""Progress bars on a terminal: the stage, how much of it is done, and the time left."""

from __future__ import annotations

import threading
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

__all__ = ["Bars"]


class Bars:
    """Draws a bar for each stage on standard error, unless that is no terminal or it is told to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._stage: TaskID | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def start(self, stage: str, total: int) -> None:
        """Begin a bar."""
        with self._lock:
            self._stage = self._bars.add_task(stage, total=total)

    def advance(self, steps: int) -> None:
        """Move the current bar on."""
        with self._lock:
            if self._stage is not None:
                self._bars.advance(self._stage, steps)

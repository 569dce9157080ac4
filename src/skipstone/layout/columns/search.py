"""How long a search may go on, who watches it, and what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from skipstone.errors import InvalidInput

DEFAULT_SECONDS = 10.0
"""How long a search goes on when nobody says."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search is: the best cost so far, after so many moves and seconds."""

    seconds: float
    moves: int
    best_cost: float


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to search: for so many seconds, so many moves, or whichever ends first.

    With moves and no seconds a search gives the same answer every time. `stop` is asked a few dozen times a second,
    and `progress` is told as often; a search that is stopped, by `stop` or by an interrupt from the keyboard, returns
    the best it has. `clock` counts the seconds: with `time.process_time`, searches can be compared on a busy machine.
    """

    seconds: float | None = None
    moves: int | None = None
    progress: Callable[[Progress], None] | None = None
    stop: Callable[[], bool] | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0:
            raise InvalidInput(f"a search of {self.seconds:g} seconds finds nothing; give a number above 0")
        if self.moves is not None and self.moves < 1:
            raise InvalidInput(f"a search of {self.moves} moves finds nothing; give a number above 0")


@dataclass(slots=True)
class Watch:
    """Runs beside one search: counts its moves, keeps its time, tells who listens, swallows the interrupt.

    >>> with Watch(Effort(moves=10)) as watch:
    ...     while watch.goes_on():
    ...         watch.made(4, best_cost=1.0)
    >>> watch.moves, watch.stopped
    (12, False)
    """

    effort: Effort
    moves: int = 0
    stopped: bool = False
    started: float = field(init=False)
    trace: list[Progress] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started = self.now()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, KeyboardInterrupt):
            self.stopped = True
            return True
        return False

    def now(self) -> float:
        """The effort's clock."""
        return self.effort.clock()

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self.now() - self.started

    def spent(self) -> float:
        """The share of the effort that is spent, 1 or more when it is over."""
        if self.effort.moves is None and self.effort.seconds is None:
            return self.seconds / DEFAULT_SECONDS
        by_moves = 0.0 if self.effort.moves is None else self.moves / self.effort.moves
        by_time = 0.0 if self.effort.seconds is None else self.seconds / self.effort.seconds
        return max(by_moves, by_time)

    def goes_on(self, share: float = 1.0) -> bool:
        """Whether the search may make more moves before `share` of its effort is spent."""
        if self.effort.stop is not None and not self.stopped:
            self.stopped = self.effort.stop()
        return not self.stopped and self.spent() < share

    def made(self, moves: int, best_cost: float) -> None:
        """Count moves, and tell how far the search has come."""
        self.moves += moves
        progress = Progress(self.seconds, self.moves, best_cost)
        if not self.trace or best_cost < self.trace[-1].best_cost - 1e-9:
            self.trace.append(progress)
        if self.effort.progress is not None:
            self.effort.progress(progress)

    @property
    def timed(self) -> bool:
        """Whether the clock ends this search, so that it need not be the same twice."""
        return self.effort.moves is None


@dataclass(frozen=True, slots=True)
class FoundOrder:
    """An order of all columns, by number, and how it was found."""

    order: tuple[int, ...]
    algorithm: str
    seed: int
    initial_cost: float
    final_cost: float
    moves: int = 0
    seconds: float = 0.0
    stopped: bool = False
    trace: tuple[Progress, ...] = ()
    """Each point at which the best cost was seen to be lower than before."""

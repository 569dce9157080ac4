"""Two reports of one experiment side by side: what got worse, what got better, what is gone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from bench.report import MEASURES, Better, Report, Table

TOLERANCE = 0.10
"""A time may grow by this share before it counts; below it, two runs of one program differ."""


class Verdict(Enum):
    """What a difference means."""

    WORSE = "worse"
    BETTER = "better"
    CHANGED = "changed"
    """Different in a measure that is neither good nor bad, such as the number of matching rows."""
    MISSING = "missing"
    """Measured before and not any more."""
    NEW = "new"

    @property
    def is_regression(self) -> bool:
        """Return whether somebody should look at it."""
        return self in (Verdict.WORSE, Verdict.CHANGED, Verdict.MISSING)


@dataclass(frozen=True, slots=True)
class Change:
    """One measured value that differs between two reports."""

    table: str
    labels: tuple[str, ...]
    measure: str
    before: float | None
    after: float | None
    verdict: Verdict

    @property
    def ratio(self) -> float | None:
        """Return after over before, where both are there."""
        if self.before is None or self.after is None:
            return None
        return self.after / self.before if self.before else math.inf


def compare(before: Report, after: Report) -> tuple[Change, ...]:
    """Return what differs between two reports of one experiment at one scale and seed."""
    for what in ("experiment", "scale", "seed", "smoke"):
        first, second = getattr(before, what), getattr(after, what)
        if first != second:
            raise ValueError(f"the reports are not of the same {what}: {first} before, {second} after")
    old, new = ({table.name: table for table in report.tables} for report in (before, after))
    return tuple(
        change for name in dict.fromkeys([*old, *new]) for change in _tables(name, old.get(name), new.get(name))
    )


def _tables(name: str, before: Table | None, after: Table | None) -> Iterator[Change]:
    old, new = (_values(table) if table else {} for table in (before, after))
    for labels, measure in dict.fromkeys([*old, *new]):
        first, second = old.get((labels, measure)), new.get((labels, measure))
        verdict = _verdict(measure, first, second, _spread(old, labels, measure), _spread(new, labels, measure))
        if verdict is not None:
            yield Change(name, labels, measure, first, second, verdict)


def _values(table: Table) -> dict[tuple[tuple[str, ...], str], float]:
    return {
        (line.labels, measure): value
        for line in table.lines
        for measure, value in zip(table.measures, line.values, strict=True)
        if value is not None
    }


def _spread(
    values: dict[tuple[tuple[str, ...], str], float], labels: tuple[str, ...], measure: str
) -> tuple[float, float] | None:
    """Return the quartiles that belong to a median, where the table has them."""
    low, high = values.get((labels, f"{measure}_low")), values.get((labels, f"{measure}_high"))
    return None if low is None or high is None else (low, high)


def _verdict(
    measure: str,
    before: float | None,
    after: float | None,
    spread_before: tuple[float, float] | None,
    spread_after: tuple[float, float] | None,
) -> Verdict | None:
    if before is None or after is None:
        return Verdict.NEW if before is None else Verdict.MISSING
    definition = MEASURES[measure]
    if before == after or measure.endswith(("_low", "_high")):
        return None  # quartiles qualify their median and are not judged by themselves
    if definition.better is Better.NEITHER:
        return Verdict.CHANGED if definition.exact else None
    if not definition.exact and _within_noise(before, after, spread_before, spread_after):
        return None
    grew = after > before
    return Verdict.WORSE if grew == (definition.better is Better.LESS) else Verdict.BETTER


def _within_noise(
    before: float, after: float, spread_before: tuple[float, float] | None, spread_after: tuple[float, float] | None
) -> bool:
    """Return whether a difference is small, or smaller than the spread of either run."""
    if abs(after - before) <= TOLERANCE * abs(before):
        return True
    if spread_before is None or spread_after is None:
        return False
    return spread_before[0] <= spread_after[1] and spread_after[0] <= spread_before[1]

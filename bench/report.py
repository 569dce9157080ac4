"""What an experiment found: measured lines, figures, claims that hold or do not, and how to write them down as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from bench.measure import ScanCounts, Timing


class Better(Enum):
    """Which way a measure improves."""

    LESS = "less"
    MORE = "more"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity that reports may hold."""

    name: str
    title: str
    unit: str
    better: Better = Better.LESS
    exact: bool = False
    """Whether two runs with one seed must agree on it to the last digit."""


_MEASURES = (
    Measure("queries", "queries", "count", Better.NEITHER, exact=True),
    Measure("rows_read", "rows read", "count", exact=True),
    Measure("rows_share", "rows read", "share", exact=True),
    Measure("bound_share", "rows that match", "share", Better.NEITHER, exact=True),
    Measure("times_bound", "read / matching", "ratio", exact=True),
    Measure("cells_read", "cells read", "count", exact=True),
    Measure("cells_share", "cells read", "share", exact=True),
    Measure("row_ids_read", "row ids read", "count", exact=True),
    Measure("cells_and_ids_read", "cells + row ids", "count", exact=True),
    Measure("blocks_read", "blocks read", "count", exact=True),
    Measure("files_read", "files read", "count", exact=True),
    Measure("bytes_read", "bytes read", "bytes", exact=False),
    Measure("bytes_share", "bytes read", "share", exact=False),
    Measure("matching_rows", "rows that match", "count", Better.NEITHER, exact=True),
    Measure("matching_cells", "cells that match", "count", Better.NEITHER, exact=True),
    Measure("rows_skipped_share", "rows skipped", "share", Better.MORE, exact=True),
    Measure("blocks", "blocks", "count", Better.NEITHER, exact=True),
    Measure("files", "files", "count", Better.NEITHER, exact=True),
    Measure("rows_per_block", "rows a block", "count", Better.NEITHER, exact=True),
    Measure("storage", "storage", "ratio", exact=True),
    Measure("seconds", "wall time", "seconds"),
    Measure("seconds_low", "lower quartile", "seconds"),
    Measure("seconds_high", "upper quartile", "seconds"),
    Measure("cpu_seconds", "processor time", "seconds"),
    Measure("runs", "runs", "count", Better.NEITHER),
    Measure("planning_ms", "planning", "milliseconds"),
    Measure("predicted_share", "rows predicted", "share", Better.NEITHER),
    Measure("advise_seconds", "time to advise", "seconds"),
    Measure("first_planning_ms", "planning, first time", "milliseconds"),
    Measure("layout_seconds", "time to lay out", "seconds"),
    Measure("layout_bytes", "bytes written", "bytes"),
    Measure("times_copy", "times a copy", "ratio"),
    Measure("peak_bytes", "peak memory", "bytes"),
    Measure("break_even_runs", "pays after", "runs"),
    Measure("statements", "statements", "count", Better.NEITHER, exact=True),
    Measure("understood", "understood", "count", Better.MORE, exact=True),
    Measure("per_second", "a second", "count", Better.MORE),
    Measure("groups", "groups", "count", Better.NEITHER),
    Measure("features", "features", "count", Better.NEITHER, exact=True),
    Measure("distinct_requests", "distinct requests", "count", Better.NEITHER, exact=True),
    Measure("reading_seconds", "reading", "seconds"),
    Measure("mining_seconds", "mining", "seconds"),
    Measure("subsumed_pairs", "pairs that hold", "count", Better.NEITHER, exact=True),
    Measure("memory_bytes", "kept in memory", "bytes"),
    Measure("beyond_dates", "with more than dates", "count", Better.NEITHER, exact=True),
    Measure("served", "subsumed by a feature", "count", Better.MORE, exact=True),
    Measure("weight", "weight", "count", Better.NEITHER, exact=True),
    Measure("additional", "adds", "count", Better.NEITHER, exact=True),
    Measure("cost_ms", "modelled cost", "milliseconds"),
    Measure("saved_share", "taken off", "share", Better.MORE),
    Measure("headroom_share", "space used", "share", Better.NEITHER),
    Measure("duplicates", "duplicates", "count", Better.NEITHER),
    Measure("proven_share", "choices proven best", "share", Better.MORE),
    Measure("choice_ms", "a choice", "milliseconds"),
    Measure("moves", "moves", "count", Better.NEITHER),
    Measure("worse_share", "queries worse off", "share"),
    Measure("mean_saving", "saved on average", "share", Better.MORE),
    Measure("least_saving", "saved at least", "share", Better.MORE),
    Measure("median_us", "median, µs", "count"),
    Measure("most_us", "99 % below, µs", "count"),
    Measure("ranges_read", "ranges read", "count", exact=True),
    Measure("requests_sent", "requests", "count", exact=True),
    Measure("speed_up", "times faster", "ratio", Better.MORE),
    Measure("gain", "gain", "ratio", Better.MORE),
)
MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _MEASURES}

UNITS = ("count", "share", "ratio", "bytes", "seconds", "milliseconds", "runs")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: what was measured, and the measured values in the table's order."""

    labels: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Lines that share their labels and their measures."""

    name: str
    title: str
    labels: tuple[str, ...]
    measures: tuple[str, ...]
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        unknown = [name for name in self.measures if name not in MEASURES]
        if unknown:
            raise ValueError(f"table {self.name!r} has measures that bench.report does not define: {unknown}")

    def value(self, measure: str, *labels: str) -> float:
        """Return one measured value; it must be there."""
        place = self.measures.index(measure)
        for line in self.lines:
            if line.labels == labels:
                value = line.values[place]
                if value is not None:
                    return value
        raise KeyError(f"table {self.name!r} has no {measure} for {', '.join(labels)}")


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, or one colour of bars; a point may be missing."""

    name: str
    points: tuple[tuple[str | float, float], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot in the style of a paper's figure."""

    name: str
    title: str
    kind: str
    """`bars` or `lines`."""
    x: str
    y: str
    series: tuple[Series, ...]
    log_y: bool = False
    paper: str = ""
    """The figure of the paper that this one stands beside, if there is one."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A target, what was measured for it, and whether that is enough."""

    name: str
    sentence: str
    measured: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def holds(self) -> bool:
        """Return whether the measured value is within the limits.

        >>> Claim("scan", "reads at most 7 % of the rows", 0.065, at_most=0.07).holds
        True
        """
        above = self.at_most is not None and not self.measured <= self.at_most
        below = self.at_least is not None and not self.measured >= self.at_least
        return not (above or below)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run of an experiment found."""

    experiment: str
    sentence: str
    paper: str
    scale: float
    seed: int
    smoke: bool
    settings: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    machine: tuple[tuple[str, str], ...] = ()

    def table(self, name: str) -> Table:
        """Return one table of this report."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"report of {self.experiment!r} has no table {name!r}")

    def on(self, machine: Mapping[str, str], seconds: float) -> Report:
        """Return this report with the machine that it was run on and the time it took."""
        return replace(self, machine=tuple(machine.items()), seconds=seconds)


def table_of(
    name: str,
    title: str,
    labels: Iterable[str],
    lines: Iterable[tuple[tuple[str, ...], Mapping[str, float]]],
) -> Table:
    """Build a table from lines that each name their values; measures come in the order of their definition.

    >>> table_of("t", "T", ["layout"], [(("plain",), {"rows_read": 5.0}), (("sorted",), {"rows_read": 2.0})]).measures
    ('rows_read',)
    """
    collected = [(label, dict(values)) for label, values in lines]
    present = {measure for _, values in collected for measure in values}
    unknown = sorted(present - set(MEASURES))
    if unknown:
        raise ValueError(f"table {name!r} has measures that bench.report does not define: {unknown}")
    measures = tuple(measure for measure in MEASURES if measure in present)
    made = tuple(Line(label, tuple(values.get(measure) for measure in measures)) for label, values in collected)
    return Table(name, title, tuple(labels), measures, made)


def scan_values(counts: ScanCounts, *, table_rows: int, queries: int) -> dict[str, float]:
    """Return the measures of a scan of `queries` queries over a table of `table_rows` rows."""
    everything = table_rows * queries
    return {
        "queries": queries,
        "rows_read": counts.rows,
        "rows_share": counts.rows / everything,
        "bound_share": counts.matching_rows / everything,
        "times_bound": counts.rows / counts.matching_rows if counts.matching_rows else math.inf,
        "cells_read": counts.cells,
        "row_ids_read": counts.row_ids,
        "blocks_read": counts.blocks,
        "files_read": counts.files,
        "bytes_read": counts.bytes,
        "matching_rows": counts.matching_rows,
        "matching_cells": counts.matching_cells,
    }


def timing_values(timing: Timing) -> dict[str, float]:
    """Return the measures of a timing."""
    return {
        "seconds": timing.median,
        "seconds_low": timing.low,
        "seconds_high": timing.high,
        "runs": timing.runs,
    }


def to_json(report: Report) -> str:
    """Write a report as JSON; infinity becomes the string `inf`, which JSON can say."""
    return json.dumps(_without_infinity(asdict(report)), indent=1)


def from_json(text: str) -> Report:
    """Read a report back.

    >>> claim = Claim("c", "C.", math.inf, at_least=2.0)
    >>> report = Report("scan", "Reads rows.", "", 1.0, 7, smoke=True, claims=(claim,))
    >>> from_json(to_json(report)) == report
    True
    """
    raw = json.loads(text)
    raw["tables"] = tuple(
        Table(
            t["name"],
            t["title"],
            tuple(t["labels"]),
            tuple(t["measures"]),
            tuple(Line(tuple(line["labels"]), tuple(map(_number, line["values"]))) for line in t["lines"]),
        )
        for t in raw["tables"]
    )
    raw["figures"] = tuple(
        Figure(**{**f, "series": tuple(Series(s["name"], tuple(map(_point, s["points"]))) for s in f["series"])})
        for f in raw["figures"]
    )
    raw["claims"] = tuple(Claim(**{**c, "measured": _number(c["measured"])}) for c in raw["claims"])
    for pairs in ("settings", "machine"):
        raw[pairs] = tuple((name, value) for name, value in raw[pairs])
    raw["notes"] = tuple(raw["notes"])
    return Report(**raw)


def read_report(file: Path) -> Report:
    """Read a report from a file, with an error that names the file."""
    try:
        return from_json(file.read_text())
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{file} is not a report that `python -m bench run` wrote: {problem}") from problem


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _point(point: Any) -> tuple[str | float, float]:
    x, y = point
    return x, _number(y)

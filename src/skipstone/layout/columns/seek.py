"""What a gap between two reads costs: seek profiles by name, behind one small Protocol."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skipstone.errors import InvalidInput, listed
from skipstone.layout.columns.seek_kernels import FORMULA, TABLE, CompiledSeek, add_costs

KILOBYTE = 1000.0
MEGABYTE = 1000.0 * KILOBYTE

_NOTHING: NDArray[np.float64] = np.zeros(1)


class SeekProfile(Protocol):
    """The function f of Definition 2: cost in milliseconds of skipping d bytes between two reads; f(0) is 0."""

    @property
    def name(self) -> str:
        """What to call it on a command line."""
        ...

    def compiled(self) -> CompiledSeek:
        """The form that compiled loops take."""
        ...


def seek_costs(profile: SeekProfile, distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost in milliseconds of every distance in bytes.

    >>> seek_costs(PowerSeek(), np.array([0.0, 10_000.0, 1e9])).round(3).tolist()
    [0.0, 0.5, 32.697]
    """
    costs = np.zeros(len(distances))
    add_costs(profile.compiled(), 1.0, np.asarray(distances, np.float64), 0.0, 0, len(distances), costs)
    return costs


def is_concave(seek: CompiledSeek) -> bool:
    """Whether each byte that a gap gets wider costs no more than the one before it; a step down is let pass.

    >>> is_concave(PowerSeek().compiled()), is_concave(ObjectStoreSeek().compiled())
    (True, False)
    """
    if seek.kind == TABLE:
        slopes = [*(np.diff(seek.ys) / np.diff(seek.xs)), 0.0]
        return all(before >= after for before, after in pairwise(slopes))
    if seek.limit <= 0:
        return True
    before = seek.root * math.sqrt(seek.limit) + seek.slope * seek.limit
    slope = seek.root / (2 * math.sqrt(seek.limit)) + seek.slope
    return seek.far_slope * seek.limit + seek.far_base <= before and seek.far_slope <= slope


@dataclass(frozen=True, slots=True)
class PowerSeek:
    """A hard disk: the arm accelerates over short distances and runs at full speed over long ones.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, Appendix A:
    a + b * sqrt(s) for short seeks, linear for long ones. The constants are those that the authors publish with
    their tool: 0.005 * sqrt(d) milliseconds up to 36 million bytes, then 3e-9 * d + 29.697. The two meet with a
    step from 30.000 down to 29.805 milliseconds, which is in the published function and is kept.

    Departs from the paper: nothing here.
    """

    name: str = "power"

    def compiled(self) -> CompiledSeek:
        """The form that compiled loops take."""
        return CompiledSeek(FORMULA, 36 * MEGABYTE, 0.005, 0.0, 3e-9, 29.697, _NOTHING, _NOTHING)


@dataclass(frozen=True, slots=True)
class LinearSeek:
    """Cost in proportion to the distance: the profile that section 6.7 of the paper warns of, kept to compare with."""

    milliseconds_per_megabyte: float = 1.0
    name: str = "linear"

    def compiled(self) -> CompiledSeek:
        """The form that compiled loops take."""
        slope = self.milliseconds_per_megabyte / MEGABYTE
        return CompiledSeek(FORMULA, 0.0, 0.0, slope, slope, 0.0, _NOTHING, _NOTHING)


@dataclass(frozen=True, slots=True)
class ObjectStoreSeek:
    """An object store: a gap is either read through or costs another request.

    Readers merge two ranges when the gap between them is at most `coalesced_bytes` (pyarrow calls it
    `hole_size_limit`) and read the gap for nothing but its bytes; a wider gap starts a request. The defaults are a
    request of 30 ms, 50 MB/s for one stream, and pyarrow's limit of 8 KiB.

    >>> seek_costs(ObjectStoreSeek(), np.array([0.0, 8192.0, 8193.0])).round(3).tolist()
    [0.0, 0.164, 30.0]
    """

    request_milliseconds: float = 30.0
    megabytes_per_second: float = 50.0
    coalesced_bytes: float = 8192.0
    name: str = "object-store"

    def compiled(self) -> CompiledSeek:
        """The form that compiled loops take."""
        through = 1000.0 / (self.megabytes_per_second * MEGABYTE)
        return CompiledSeek(
            FORMULA, self.coalesced_bytes, 0.0, through, 0.0, self.request_milliseconds, _NOTHING, _NOTHING
        )


@dataclass(frozen=True, slots=True)
class PiecewiseSeek:
    """Straight lines between measured points, flat after the last: nothing is assumed that was not measured.

    A point at distance 0 says what the shortest seek costs; without one the line starts at nothing.

    >>> profile = PiecewiseSeek(((0.0, 1.0), (1000.0, 3.0)))
    >>> seek_costs(profile, np.array([0.0, 500.0, 9000.0])).tolist()
    [0.0, 2.0, 3.0]
    """

    points: tuple[tuple[float, float], ...]
    name: str = "piecewise"

    def __post_init__(self) -> None:
        if not self.points:
            raise InvalidInput("a piecewise profile needs at least one point: distance in bytes, milliseconds")
        for (distance, cost), (before, _) in zip(self.points, ((-1.0, 0.0), *self.points), strict=False):
            if not (math.isfinite(distance) and math.isfinite(cost) and distance >= 0 and cost >= 0):
                raise InvalidInput(f"the point {distance:g} bytes, {cost:g} ms is not two numbers of 0 or more")
            if distance <= before:
                raise InvalidInput(f"distances must grow from point to point; {distance:g} follows {before:g}")

    def compiled(self) -> CompiledSeek:
        """The form that compiled loops take."""
        points = self.points if self.points[0][0] == 0 else ((0.0, 0.0), *self.points)
        xs = np.array([distance for distance, _ in points], np.float64)
        ys = np.array([cost for _, cost in points], np.float64)
        return CompiledSeek(TABLE, 0.0, 0.0, 0.0, 0.0, 0.0, xs, ys)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PiecewiseSeek:
        """Read one point a line: distance in bytes, a tab, milliseconds."""
        points = []
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInput(f"cannot read the seek profile {path}: {problem}") from problem
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                distance, cost = (float(field) for field in line.split("\t"))
                points.append((distance, cost))
                cls(tuple(points))
            except InvalidInput as problem:
                raise InvalidInput(f"{path}, line {number}: {problem}") from None
            except ValueError:
                raise InvalidInput(
                    f"{path}, line {number}: {line!r} is not a distance in bytes, a tab and milliseconds"
                ) from None
        if not points:
            raise InvalidInput(f"{path}: no point in it; a line is a distance in bytes, a tab and milliseconds")
        return cls(tuple(points), name=str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write what `read` reads."""
        lines = (f"{distance!r}\t{cost!r}\n" for distance, cost in self.points)
        try:
            Path(path).write_text("".join(lines), encoding="utf-8")
        except OSError as problem:
            raise InvalidInput(f"cannot write {path}: {problem.strerror or problem}") from problem


PROFILES: dict[str, Callable[[], SeekProfile]] = {
    "power": PowerSeek,
    "linear": LinearSeek,
    "object-store": ObjectStoreSeek,
}
"""Profiles that have a name; everything else is a file."""

_OBJECT_STORE_OPTIONS = {
    "latency": "request_milliseconds",
    "throughput": "megabytes_per_second",
    "gap": "coalesced_bytes",
}


def seek_profile(text: str) -> SeekProfile:
    """Find a profile by name or read it from a file.

    `object-store` takes options: latency in milliseconds, throughput in MB/s, and the widest gap in bytes that the
    reader reads through.

    >>> seek_profile("object-store:latency=80,gap=1048576").compiled().limit
    1048576.0
    """
    name, _, options = text.partition(":")
    if name == "object-store" and options:
        return _object_store(options, text)
    if text in PROFILES:
        return PROFILES[text]()
    if Path(text).is_file():
        return PiecewiseSeek.read(text)
    raise InvalidInput(
        f'no seek profile "{text}", and no file of that name. There are {listed(sorted(PROFILES))}; '
        "a file has a distance in bytes, a tab and milliseconds on each line"
    )


def _object_store(options: str, text: str) -> ObjectStoreSeek:
    found: dict[str, float] = {}
    for option in options.split(","):
        key, _, value = option.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        smallest_allowed = 0.0 if key == "gap" else math.ulp(0.0)
        if key not in _OBJECT_STORE_OPTIONS or not (math.isfinite(number) and number >= smallest_allowed):
            raise InvalidInput(
                f'"{option}" in the seek profile "{text}" is not understood; '
                "it takes latency=MILLISECONDS, throughput=MEGABYTES_PER_SECOND and gap=BYTES"
            )
        found[_OBJECT_STORE_OPTIONS[key]] = number
    return ObjectStoreSeek(**found, name=text)

"""A seek profile in the form that compiled loops can call: five numbers, or a table."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit

FORMULA = 0
"""root * sqrt(d) + slope * d up to `limit` bytes, far_slope * d + far_base beyond."""

TABLE = 1
"""Straight lines between the points (xs, ys); flat after the last."""


class CompiledSeek(NamedTuple):
    """What a gap of d bytes costs, in milliseconds, for numba: a gap of 0 bytes costs nothing in every profile."""

    kind: int
    limit: float
    root: float
    slope: float
    far_slope: float
    far_base: float
    xs: NDArray[np.float64]
    ys: NDArray[np.float64]


@njit(cache=True)
def seek_cost(seek: CompiledSeek, distance: float) -> float:
    """Cost of one gap."""
    if distance <= 0.0:
        return 0.0
    if seek.kind == FORMULA:
        if distance <= seek.limit:
            return seek.root * sqrt(distance) + seek.slope * distance
        return seek.far_slope * distance + seek.far_base
    return float(_from_table(seek.xs, seek.ys, distance))


@njit(cache=True)
def _from_table(xs: NDArray[np.float64], ys: NDArray[np.float64], distance: float) -> float:
    last = xs.shape[0] - 1
    if distance >= xs[last]:
        return float(ys[last])
    right = np.searchsorted(xs, distance, side="right")
    left = right - 1
    return float(ys[left] + (ys[right] - ys[left]) * (distance - xs[left]) / (xs[right] - xs[left]))


@njit(cache=True)
def add_costs(
    seek: CompiledSeek,
    weight: float,
    distances: NDArray[np.float64],
    shift: float,
    low: int,
    high: int,
    totals: NDArray[np.float64],
) -> None:
    """totals[k] += weight * cost(distances[k] + shift) for low <= k < high.

    The loop over the formula has no branch that depends on data but one select, so that LLVM turns it into vector
    instructions. Distances below 0 count as 0.
    """
    if seek.kind == FORMULA:
        limit, root, slope, far_slope, far_base = seek.limit, seek.root, seek.slope, seek.far_slope, seek.far_base
        for k in range(low, high):
            d = max(distances[k] + shift, 0.0)
            near = root * sqrt(d) + slope * d
            far = far_slope * d + far_base
            totals[k] += weight * (near if d <= limit else far)
    else:
        for k in range(low, high):
            totals[k] += weight * seek_cost(seek, distances[k] + shift)


@njit(cache=True)
def add_split_costs(
    seek: CompiledSeek,
    weight: float,
    offsets: NDArray[np.float64],
    from_left: float,
    to_right: float,
    low: int,
    high: int,
    totals: NDArray[np.float64],
) -> None:
    """totals[k] += weight * (cost(offsets[k] - from_left) + cost(to_right - offsets[k])) for low <= k < high.

    What a query pays around a block at offsets[k] between two of its items; the search spends its time here.
    """
    if seek.kind == FORMULA:
        limit, root, slope, far_slope, far_base = seek.limit, seek.root, seek.slope, seek.far_slope, seek.far_base
        for k in range(low, high):
            d = max(offsets[k] - from_left, 0.0)
            near = root * sqrt(d) + slope * d
            far = far_slope * d + far_base
            e = max(to_right - offsets[k], 0.0)
            near_right = root * sqrt(e) + slope * e
            far_right = far_slope * e + far_base
            totals[k] += weight * ((near if d <= limit else far) + (near_right if e <= limit else far_right))
    else:
        for k in range(low, high):
            totals[k] += weight * (seek_cost(seek, offsets[k] - from_left) + seek_cost(seek, to_right - offsets[k]))


@njit(cache=True)
def add_side_costs(
    seek: CompiledSeek,
    weight: float,
    offsets: NDArray[np.float64],
    sign: float,
    origin: float,
    low: int,
    high: int,
    totals: NDArray[np.float64],
) -> None:
    """totals[k] += weight * cost(sign * (offsets[k] - origin)): a query with items on one side of the block only."""
    if seek.kind == FORMULA:
        limit, root, slope, far_slope, far_base = seek.limit, seek.root, seek.slope, seek.far_slope, seek.far_base
        for k in range(low, high):
            d = max(sign * (offsets[k] - origin), 0.0)
            near = root * sqrt(d) + slope * d
            far = far_slope * d + far_base
            totals[k] += weight * (near if d <= limit else far)
    else:
        for k in range(low, high):
            totals[k] += weight * seek_cost(seek, sign * (offsets[k] - origin))

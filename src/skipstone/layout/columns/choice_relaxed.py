"""Which copy of each item a query reads, by Lagrangian relaxation: prices on items, and a shortest path under them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.choice_kernels import Copies, detour, reading_cost
from skipstone.layout.columns.seek_kernels import CompiledSeek, seek_cost

MOST_STEPS = 150
PATIENCE = 6
"""Steps without a better bound before steps become shorter."""

SHORTER = 0.6
SHORTEST = 1e-3


@njit(cache=True)
def relaxed_choice(
    seek: CompiledSeek,
    copies: Copies,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    chosen: NDArray[np.int32],
) -> tuple[float, float]:
    """Write a good choice of copies into `chosen`; return what it costs, and what every choice costs at least.

    That each item is read exactly once is relaxed (Fisher, "The Lagrangian Relaxation Method for Solving Integer
    Programming Problems", Management Science 1981): a path through the copies, from left to right, reads any of them
    and is paid the item's price for each. Its cost, less what it is paid, plus each item's price once, bounds the cost
    of every choice from below. Prices rise where an item is not read and fall where it is read more than once.
    Each path is repaired into a choice: what is missing comes in where it costs least, what is read twice goes where
    that saves most.
    """
    items, count = copies.start.shape[0] - 1, copies.of_item.shape[0]
    order = np.argsort(begin[copies.of_item])
    at, upto = begin[copies.of_item][order], end[copies.of_item][order]
    reader = np.zeros(count, np.int32)
    for item in range(items):
        reader[copies.start[item] : copies.start[item + 1]] = item
    reader = reader[order]
    many = np.diff(copies.start)
    prices, times = np.zeros(items), np.zeros(items, np.int64)
    read, repaired = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    nearest, begins, gaps = _gap_costs(seek, at, upto, reader, many)
    found, bound, length, since_better = np.inf, -np.inf, 1.0, 0
    for _ in range(MOST_STEPS):
        value = _cheapest_path(nearest, begins, gaps, reader, many, prices, read)
        for item in range(items):
            value += prices[item]
        if value > bound + 1e-9:
            bound, since_better = value, 0
        else:
            since_better += 1
            if since_better >= PATIENCE:
                length, since_better = length * SHORTER, 0
        times[:] = 0
        for c in range(count):
            times[reader[c]] += read[c]
        missed = ((times - 1) ** 2).sum()
        repaired[:] = read
        cost = _repair(seek, at, upto, reader, repaired, times.copy())
        if cost < found:
            found = cost
            for c in range(count):
                if repaired[c]:
                    chosen[reader[c]] = copies.of_item[order[c]]
        if missed == 0 or found - bound < 1e-6 or length < SHORTEST:
            break
        prices += length * (found - value) / missed * (1 - times)
    return found, min(bound, found)


@njit(cache=True)
def _gap_costs(
    seek: CompiledSeek,
    at: NDArray[np.float64],
    upto: NDArray[np.float64],
    reader: NDArray[np.int32],
    many: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Price every gap that a path may have, once for all paths.

    A path does not jump over a copy that is an item's only one: `nearest[c]` is the first copy from which copy c can be
    reached, and the gaps from there on begin at `begins[c]`.
    """
    count = at.shape[0]
    nearest, begins = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    forced = 0
    for c in range(count):
        nearest[c], begins[c + 1] = forced, begins[c] + c - forced
        if many[reader[c]] == 1:
            forced = c
    gaps = np.zeros(begins[count])
    for c in range(count):
        for d in range(nearest[c], c):
            gaps[begins[c] + d - nearest[c]] = seek_cost(seek, at[c] - upto[d])
    return nearest, begins, gaps


@njit(cache=True)
def _cheapest_path(
    nearest: NDArray[np.int64],
    begins: NDArray[np.int64],
    gaps: NDArray[np.float64],
    reader: NDArray[np.int32],
    many: NDArray[np.int32],
    prices: NDArray[np.float64],
    read: NDArray[np.bool_],
) -> float:
    """Mark the copies on the cheapest path, which passes through every copy that is an item's only one."""
    count = reader.shape[0]
    reached, came_from = np.zeros(count), np.zeros(count, np.int32)
    forced = -1
    for c in range(count):
        best, before = (0.0, -1) if forced < 0 else (np.inf, -1)
        to_gap = begins[c] - nearest[c]
        for d in range(c - 1, nearest[c] - 1, -1):
            cost = reached[d] + gaps[to_gap + d]
            if cost < best:
                best, before = cost, d
        reached[c], came_from[c] = best - prices[reader[c]], before
        if many[reader[c]] == 1:
            forced = c
    last = max(forced, 0)
    for c in range(last + 1, count):
        if reached[c] < reached[last]:
            last = c
    value = float(reached[last])
    read[:] = False
    while last >= 0:
        read[last] = True
        last = came_from[last]
    return value


@njit(cache=True)
def _repair(
    seek: CompiledSeek,
    at: NDArray[np.float64],
    upto: NDArray[np.float64],
    reader: NDArray[np.int32],
    read: NDArray[np.bool_],
    times: NDArray[np.int64],
) -> float:
    """Make a path read every item once, change by change, the cheapest first; return what it costs then."""
    count = at.shape[0]
    for missing in (True, False):
        while True:
            best, least = -1, np.inf
            for c in range(count):
                wanted = times[reader[c]] == 0 if missing else (read[c] and times[reader[c]] > 1)
                if wanted:
                    change = detour(seek, at, upto, read, count, c)
                    if not missing:
                        change = -change
                    if change < least:
                        best, least = c, change
            if best < 0:
                break
            read[best] = missing
            times[reader[best]] += 1 if missing else -1
    return float(reading_cost(seek, at, upto, read, count))

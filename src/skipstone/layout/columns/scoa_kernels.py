"""The compiled loop of SCOA: swap two columns, price the swap query by query, keep it or not."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.randomness import below, uniform
from skipstone.layout.columns.seek_kernels import CompiledSeek, seek_cost
from skipstone.layout.columns.sweep_kernels import Items


@njit(cache=True)
def rank(positions: NDArray[np.int32], begin: int, end: int, position: int) -> int:
    """Index of the first of a query's sorted positions that is not below `position`."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if positions[middle] < position:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def swap_delta(
    items: Items, seek: CompiledSeek, positions: NDArray[np.int32], start: NDArray[np.float64], x: int, y: int
) -> float:
    """By how much the workload's cost changes when the columns at positions x < y are swapped.

    Everything strictly between them shifts by the difference of their sizes. `positions` holds each query's sorted
    positions, `start` the byte offset of every position and of the end.
    """
    grown = (start[y + 1] - start[y]) - (start[x + 1] - start[x])
    delta = 0.0
    for q in range(items.weights.shape[0]):
        begin, end = items.query_start[q], items.query_start[q + 1]
        at_x = rank(positions, begin, end, x)
        at_y = rank(positions, at_x, end, y)
        reads_x = at_x < end and positions[at_x] == x
        reads_y = at_y < end and positions[at_y] == y
        if reads_x and reads_y:
            # Figure 2 (a): what lies between two reads stays what it is.
            continue
        if reads_x:
            change = _reads_left(seek, positions, start, begin, end, at_x, at_y, x, y, grown)
        elif reads_y:
            change = _reads_right(seek, positions, start, begin, end, at_x, at_y, x, y, grown)
        elif at_x == at_y:
            continue
        else:
            change = _reads_neither(seek, positions, start, begin, end, at_x, at_y, grown)
        delta += items.weights[q] * change
    return delta


@njit(cache=True)
def _reads_neither(
    seek: CompiledSeek,
    positions: NDArray[np.int32],
    start: NDArray[np.float64],
    begin: int,
    end: int,
    at_x: int,
    at_y: int,
    grown: float,
) -> float:
    """Algorithm 2, lines 3-10: the gaps around the two columns take each other's size."""
    change = 0.0
    if at_x > begin:
        gap = start[positions[at_x]] - start[positions[at_x - 1] + 1]
        change += seek_cost(seek, gap + grown) - seek_cost(seek, gap)
    if at_y < end:
        gap = start[positions[at_y]] - start[positions[at_y - 1] + 1]
        change += seek_cost(seek, gap - grown) - seek_cost(seek, gap)
    return change


@njit(cache=True)
def _reads_left(
    seek: CompiledSeek,
    positions: NDArray[np.int32],
    start: NDArray[np.float64],
    begin: int,
    end: int,
    at_x: int,
    at_y: int,
    x: int,
    y: int,
    grown: float,
) -> float:
    """Figure 2 (c): the query reads the column at x, which goes to y."""
    change = 0.0
    has_left, has_right = at_x > begin, at_y < end
    left_end = start[positions[at_x - 1] + 1] if has_left else 0.0
    right_start = start[positions[at_y]] if has_right else 0.0
    if has_left:
        change -= seek_cost(seek, start[x] - left_end)
    if has_right:
        change += seek_cost(seek, right_start - start[y + 1])
    if at_y == at_x + 1:
        # Nothing else is read between x and y.
        if has_left:
            change += seek_cost(seek, start[y] + grown - left_end)
        if has_right:
            change -= seek_cost(seek, right_start - start[x + 1])
        return change
    following, preceding = positions[at_x + 1], positions[at_y - 1]
    change -= seek_cost(seek, start[following] - start[x + 1])
    if has_left:
        change += seek_cost(seek, start[following] + grown - left_end)
    change += seek_cost(seek, start[y] - start[preceding + 1])
    if has_right:
        change -= seek_cost(seek, right_start - start[preceding + 1])
    return change


@njit(cache=True)
def _reads_right(
    seek: CompiledSeek,
    positions: NDArray[np.int32],
    start: NDArray[np.float64],
    begin: int,
    end: int,
    at_x: int,
    at_y: int,
    x: int,
    y: int,
    grown: float,
) -> float:
    """Figure 2 (c), mirrored: the query reads the column at y, which goes to x."""
    change = 0.0
    has_left, has_right = at_x > begin, at_y + 1 < end
    left_end = start[positions[at_x - 1] + 1] if has_left else 0.0
    right_start = start[positions[at_y + 1]] if has_right else 0.0
    if has_left:
        change += seek_cost(seek, start[x] - left_end)
    if has_right:
        change -= seek_cost(seek, right_start - start[y + 1])
    if at_x == at_y:
        # Nothing else is read between x and y.
        if has_left:
            change -= seek_cost(seek, start[y] - left_end)
        if has_right:
            change += seek_cost(seek, right_start - start[x + 1] - grown)
        return change
    following, preceding = positions[at_x], positions[at_y - 1]
    if has_left:
        change -= seek_cost(seek, start[following] - left_end)
    change += seek_cost(seek, start[following] - start[x + 1])
    change -= seek_cost(seek, start[y] - start[preceding + 1])
    if has_right:
        change += seek_cost(seek, right_start - start[preceding + 1] - grown)
    return change


@njit(cache=True)
def swap(
    items: Items,
    order: NDArray[np.int32],
    positions: NDArray[np.int32],
    start: NDArray[np.float64],
    x: int,
    y: int,
) -> None:
    """Swap the columns at positions x < y, and keep the offsets and every query's sorted positions true."""
    left, right = order[x], order[y]
    grown = items.sizes[right] - items.sizes[left]
    for q in range(items.weights.shape[0]):
        begin, end = items.query_start[q], items.query_start[q + 1]
        at_x = rank(positions, begin, end, x)
        at_y = rank(positions, at_x, end, y)
        reads_x = at_x < end and positions[at_x] == x
        reads_y = at_y < end and positions[at_y] == y
        if reads_x and not reads_y:
            for e in range(at_x, at_y - 1):
                positions[e] = positions[e + 1]
            positions[at_y - 1] = y
        elif reads_y and not reads_x:
            for e in range(at_y, at_x, -1):
                positions[e] = positions[e - 1]
            positions[at_x] = x
    order[x], order[y] = right, left
    for p in range(x + 1, y + 1):
        start[p] += grown


@njit(cache=True)
def anneal_swaps(
    items: Items,
    seek: CompiledSeek,
    order: NDArray[np.int32],
    positions: NDArray[np.int32],
    start: NDArray[np.float64],
    best: NDArray[np.int32],
    costs: NDArray[np.float64],
    moves: int,
    temperature: float,
    cooling: float,
    state: NDArray[np.uint64],
) -> float:
    """Make `moves` moves of Algorithm 1, multiplying the temperature by `cooling` after each; return the temperature.

    `costs` holds the present and the best cost, and is kept.
    """
    count = order.shape[0]
    for _ in range(moves):
        x = below(state, count)
        y = below(state, count - 1)
        if y >= x:
            y += 1
        if x > y:
            x, y = y, x
        delta = swap_delta(items, seek, positions, start, x, y)
        if delta <= 0.0 or (temperature > 0.0 and uniform(state) < exp(-delta / temperature)):
            swap(items, order, positions, start, x, y)
            costs[0] += delta
            if costs[0] < costs[1] - 1e-9:
                costs[1] = costs[0]
                best[:] = order
        temperature *= cooling
    return temperature

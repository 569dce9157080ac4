"""The compiled heart of the search: take a block out, and price every slot and both directions in one pass."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.randomness import below, uniform
from skipstone.layout.columns.seek_kernels import (
    CompiledSeek,
    add_costs,
    add_side_costs,
    add_split_costs,
    seek_cost,
)

CONTINUED = 0.6
"""Probability that a block goes on by one more item."""


class Items(NamedTuple):
    """What is to be placed: sizes, and who reads what (two compressed lists, one the transpose of the other)."""

    sizes: NDArray[np.float64]
    query_start: NDArray[np.int32]
    query_items: NDArray[np.int32]
    item_start: NDArray[np.int32]
    item_queries: NDArray[np.int32]
    weights: NDArray[np.float64]


class Arrangement(NamedTuple):
    """An order of the items, and what follows from it; `rebuild` keeps the rest true to `order`."""

    order: NDArray[np.int32]
    place: NDArray[np.int32]
    """Position of each item."""
    start: NDArray[np.float64]
    """Byte offset of each position; one more for the end."""
    positions: NDArray[np.int32]
    """Positions of each query's items, ascending, in the slices of `Items.query_start`."""
    readers: NDArray[np.int32]
    """The items at `positions`: what was sorted the last time is nearly sorted the next time."""
    adjacent: NDArray[np.float64]
    """adjacent[p]: weight of the queries that read both position p - 1 and p."""
    gap_query: NDArray[np.int32]
    gap_after: NDArray[np.int32]
    gap_before: NDArray[np.int32]
    gap_bytes: NDArray[np.float64]
    gap_cost: NDArray[np.float64]
    gap_count: NDArray[np.int64]
    """One element: how many gaps there are."""
    gap_start: NDArray[np.int32]
    """The gaps of each query are a slice."""


class Scratch(NamedTuple):
    """Room that sweeps share, so that the inner loop allocates nothing."""

    offsets: NDArray[np.float64]
    steps: NDArray[np.float64]
    wide_steps: NDArray[np.float64]
    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    widened: NDArray[np.float64]
    narrowed: NDArray[np.float64]
    weights: NDArray[np.float64]
    """Weights of the queries, 0 while a query is touched by the block in hand."""
    touched: NDArray[np.int32]
    head: NDArray[np.float64]
    tail: NDArray[np.float64]
    rest: NDArray[np.int32]


def new_arrangement(items: Items, order: NDArray[np.int32]) -> Arrangement:
    """Room for an order of these items; `rebuild` fills it."""
    count, entries, queries = len(items.sizes), len(items.query_items), len(items.weights)
    return Arrangement(
        order=order.astype(np.int32),
        place=np.zeros(count, np.int32),
        start=np.zeros(count + 1),
        positions=np.zeros(entries, np.int32),
        readers=items.query_items.copy(),
        adjacent=np.zeros(count + 1),
        gap_query=np.zeros(entries, np.int32),
        gap_after=np.zeros(entries, np.int32),
        gap_before=np.zeros(entries, np.int32),
        gap_bytes=np.zeros(entries),
        gap_cost=np.zeros(entries),
        gap_count=np.zeros(1, np.int64),
        gap_start=np.zeros(queries + 1, np.int32),
    )


def new_scratch(items: Items) -> Scratch:
    """Room for sweeps over these items."""
    slots, queries, entries = len(items.sizes) + 2, len(items.weights), len(items.query_items)
    return Scratch(
        offsets=np.zeros(slots),
        steps=np.zeros(slots),
        wide_steps=np.zeros(slots),
        forward=np.zeros(slots),
        backward=np.zeros(slots),
        widened=np.zeros(entries),
        narrowed=np.zeros(entries),
        weights=items.weights.copy(),
        touched=np.zeros(queries, np.int32),
        head=np.zeros(queries),
        tail=np.zeros(queries),
        rest=np.zeros(slots, np.int32),
    )


@njit(cache=True)
def rebuild(items: Items, seek: CompiledSeek, arrangement: Arrangement) -> float:
    """Derive everything from `arrangement.order`; return the weighted cost."""
    count = items.sizes.shape[0]
    order, place, start = arrangement.order, arrangement.place, arrangement.start
    positions, readers = arrangement.positions, arrangement.readers
    offset = 0.0
    for p in range(count):
        start[p] = offset
        offset += items.sizes[order[p]]
        place[order[p]] = p
    start[count] = offset
    arrangement.adjacent[:] = 0.0
    gaps = 0
    for q in range(items.weights.shape[0]):
        weight = items.weights[q]
        begin, end = items.query_start[q], items.query_start[q + 1]
        arrangement.gap_start[q] = gaps
        for e in range(begin, end):
            item = readers[e]
            p = place[item]
            hole = e
            while hole > begin and positions[hole - 1] > p:
                positions[hole] = positions[hole - 1]
                readers[hole] = readers[hole - 1]
                hole -= 1
            positions[hole] = p
            readers[hole] = item
        for e in range(begin + 1, end):
            after, before = positions[e - 1], positions[e]
            if before == after + 1:
                arrangement.adjacent[before] += weight
            else:
                arrangement.gap_query[gaps] = q
                arrangement.gap_after[gaps] = after
                arrangement.gap_before[gaps] = before
                arrangement.gap_bytes[gaps] = start[before] - start[after + 1]
                gaps += 1
    arrangement.gap_start[items.weights.shape[0]] = gaps
    arrangement.gap_count[0] = gaps
    arrangement.gap_cost[:gaps] = 0.0
    add_costs(seek, 1.0, arrangement.gap_bytes, 0.0, 0, gaps, arrangement.gap_cost)
    total = 0.0
    for g in range(gaps):
        total += items.weights[arrangement.gap_query[g]] * arrangement.gap_cost[g]
    return total


@njit(cache=True)
def price_block(
    items: Items, seek: CompiledSeek, arrangement: Arrangement, scratch: Scratch, begin: int, length: int
) -> None:
    """Price the block of `length` positions from `begin` at every slot of the rest, forwards and backwards.

    Afterwards `scratch.forward[k]` and `scratch.backward[k]` hold, up to one constant, the workload's cost with the
    block before the k-th item of the rest. Slot `begin`, forwards, is where the block is now.
    """
    count = items.sizes.shape[0]
    slots = count - length + 1
    start = arrangement.start
    size = start[begin + length] - start[begin]
    for k in range(begin + 1):
        scratch.offsets[k] = start[k]
    for k in range(begin + 1, slots):
        scratch.offsets[k] = start[k + length] - size
    scratch.steps[: slots + 1] = 0.0
    scratch.forward[:slots] = 0.0
    if length > 1:
        scratch.backward[:slots] = 0.0
    touched = _touch(items, arrangement, scratch, begin, length)
    _price_widened_gaps(items, seek, arrangement, scratch, begin, length, size)
    split = seek_cost(seek, size)
    _price_touched(items, seek, arrangement, scratch, touched, begin, length, split)
    # Slots left of the block are the same in the rest as in the order; those right of it are `length` further on.
    running = wide = 0.0
    for k in range(begin + 1):
        running += scratch.steps[k]
        wide += scratch.wide_steps[k]
        fixed = running + wide + (split * arrangement.adjacent[k] if k < begin else 0.0)
        scratch.forward[k] += fixed
        scratch.backward[k] += fixed
    for k in range(begin + 1, begin + 1 + length):
        wide += scratch.wide_steps[k]
    for k in range(begin + 1, slots):
        running += scratch.steps[k]
        wide += scratch.wide_steps[k + length]
        fixed = running + wide + split * arrangement.adjacent[k + length]
        scratch.forward[k] += fixed
        scratch.backward[k] += fixed
    for t in range(touched):
        scratch.weights[scratch.touched[t]] = items.weights[scratch.touched[t]]


@njit(cache=True)
def _touch(items: Items, arrangement: Arrangement, scratch: Scratch, begin: int, length: int) -> int:
    """List the queries that read in the block, and how far their first and last item is from its edges."""
    start, weights = arrangement.start, scratch.weights
    touched = 0
    for p in range(begin, begin + length):
        item = arrangement.order[p]
        for e in range(items.item_start[item], items.item_start[item + 1]):
            q = items.item_queries[e]
            if weights[q] != 0.0:
                weights[q] = 0.0
                scratch.touched[touched] = q
                touched += 1
                scratch.head[q] = start[p] - start[begin]
            scratch.tail[q] = start[begin + length] - start[p + 1]
    return touched


@njit(cache=True)
def _price_widened_gaps(
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: Scratch,
    begin: int,
    length: int,
    size: float,
) -> None:
    """Queries that do not read the block pay for seeking over it where it lands in one of their gaps.

    Steps are kept at the positions of the order, the block's own included; `price_block` leaves those out.
    """
    gaps = arrangement.gap_count[0]
    widened, narrowed, steps = scratch.widened, scratch.narrowed, scratch.wide_steps
    gap_after, gap_before, gap_query = arrangement.gap_after, arrangement.gap_before, arrangement.gap_query
    gap_cost, weights = arrangement.gap_cost, scratch.weights
    widened[:gaps] = 0.0
    add_costs(seek, 1.0, arrangement.gap_bytes, size, 0, gaps, widened)
    narrowed[:gaps] = 0.0
    add_costs(seek, 1.0, arrangement.gap_bytes, -size, 0, gaps, narrowed)
    steps[: items.sizes.shape[0] + 2] = 0.0
    end = begin + length
    for g in range(gaps):
        # A gap that holds the block now would be narrower without it.
        holds = (gap_after[g] < begin) & (gap_before[g] >= end)
        more = (gap_cost[g] - narrowed[g]) if holds else (widened[g] - gap_cost[g])
        widened[g] = more * weights[gap_query[g]]
    for g in range(gaps):
        steps[gap_after[g] + 1] += widened[g]
        steps[gap_before[g] + 1] -= widened[g]


@njit(cache=True)
def _price_touched(
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: Scratch,
    touched_count: int,
    begin: int,
    length: int,
    split: float,
) -> None:
    """A query that reads in the block seeks to it from its item on the left, and from it to the one on the right."""
    slots = items.sizes.shape[0] - length + 1
    offsets, steps, forward, backward = scratch.offsets, scratch.steps, scratch.forward, scratch.backward
    weights, query_start, positions = items.weights, items.query_start, arrangement.positions
    heads, tails, touched = scratch.head, scratch.tail, scratch.touched
    end = begin + length
    turn = length > 1
    for t in range(touched_count):
        q = touched[t]
        weight, head, tail = weights[q], heads[q], tails[q]
        # Between two neighbours that it reads, the query pays the same wherever that is; `adjacent` counts this query
        # among those that would seek over the block, so that is taken off again.
        inside = weight * (seek_cost(seek, head) + seek_cost(seek, tail) - split)
        last = -1
        for e in range(query_start[q], query_start[q + 1]):
            p = positions[e]
            if begin <= p < end:
                continue
            here = p if p < begin else p - length
            if last < 0:
                add_side_costs(seek, weight, offsets, -1.0, offsets[here] + tail, 0, here + 1, forward)
                if turn:
                    add_side_costs(seek, weight, offsets, -1.0, offsets[here] + head, 0, here + 1, backward)
            elif here == last + 1 and here != begin:
                steps[here] += inside
                steps[here + 1] -= inside
            else:
                from_left, to_right = offsets[last + 1], offsets[here]
                saved = weight * seek_cost(seek, to_right - from_left)
                steps[last + 1] -= saved
                steps[here + 1] += saved
                add_split_costs(seek, weight, offsets, from_left - head, to_right + tail, last + 1, here + 1, forward)
                if turn:
                    low, high = from_left - tail, to_right + head
                    add_split_costs(seek, weight, offsets, low, high, last + 1, here + 1, backward)
            last = here
        if last >= 0:
            add_side_costs(seek, weight, offsets, 1.0, offsets[last + 1] - head, last + 1, slots, forward)
            if turn:
                add_side_costs(seek, weight, offsets, 1.0, offsets[last + 1] - tail, last + 1, slots, backward)


@njit(cache=True)
def choose(scratch: Scratch, slots: int, both: bool, here: int, temperature: float, state: NDArray[np.uint64]) -> int:
    """Pick a slot by heat bath: probability proportional to exp(-cost / temperature); 2k forwards, 2k + 1 backwards.

    At temperature 0 the cheapest wins, and the present place wins a tie.
    """
    forward, backward = scratch.forward, scratch.backward
    best, best_cost = 2 * here, forward[here]
    for k in range(slots):
        if forward[k] < best_cost - 1e-9:
            best, best_cost = 2 * k, forward[k]
    if both:
        for k in range(slots):
            if backward[k] < best_cost - 1e-9:
                best, best_cost = 2 * k + 1, backward[k]
    if temperature <= 0.0:
        return best
    # What is e**25 times less likely than the best is left out.
    horizon = best_cost + 25.0 * temperature
    total = 0.0
    for k in range(slots):
        if forward[k] < horizon:
            total += exp((best_cost - forward[k]) / temperature)
        if both and backward[k] < horizon:
            total += exp((best_cost - backward[k]) / temperature)
    target = uniform(state) * total
    for k in range(slots):
        if forward[k] < horizon:
            target -= exp((best_cost - forward[k]) / temperature)
            if target <= 0.0:
                return 2 * k
        if both and backward[k] < horizon:
            target -= exp((best_cost - backward[k]) / temperature)
            if target <= 0.0:
                return 2 * k + 1
    return best


@njit(cache=True)
def move_block(order: NDArray[np.int32], rest: NDArray[np.int32], begin: int, length: int, choice: int) -> bool:
    """Put the block where `choose` said; return whether anything moved. `rest` is room for the block."""
    slot, turned = choice // 2, choice % 2 == 1
    if slot == begin and not turned:
        return False
    for j in range(length):
        rest[j] = order[begin + length - 1 - j] if turned else order[begin + j]
    if slot < begin:
        for p in range(begin - 1, slot - 1, -1):
            order[p + length] = order[p]
    else:
        for p in range(begin, slot):
            order[p] = order[p + length]
    for j in range(length):
        order[slot + j] = rest[j]
    return True


@njit(cache=True)
def anneal(
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: Scratch,
    best: NDArray[np.int32],
    costs: NDArray[np.float64],
    moves: int,
    temperature: float,
    longest: int,
    state: NDArray[np.uint64],
) -> None:
    """Make `moves` moves at one temperature.

    A move takes a block of consecutive items out, of geometrically distributed length up to `longest`, and puts it
    back by heat bath. `costs` holds the present cost and the cost of `best`, and both are kept true.
    """
    count = items.sizes.shape[0]
    for _ in range(moves):
        length = 1
        while length < longest and uniform(state) < CONTINUED:
            length += 1
        length = min(length, count)
        begin = below(state, count - length + 1)
        price_block(items, seek, arrangement, scratch, begin, length)
        choice = choose(scratch, count - length + 1, length > 1, begin, temperature, state)
        if move_block(arrangement.order, scratch.rest, begin, length, choice):
            costs[0] = rebuild(items, seek, arrangement)
            if costs[0] < costs[1] - 1e-9:
                costs[1] = costs[0]
                best[:] = arrangement.order


@njit(cache=True)
def descend(
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: Scratch,
    costs: NDArray[np.float64],
    begin: int,
    moves: int,
    longest: int,
    state: NDArray[np.uint64],
) -> int:
    """Move blocks of up to `longest` items to their best slot, position after position from `begin`.

    Returns how many moves made the order better; `moves` of them make one pass when they are as many as
    positions times lengths.
    """
    count = items.sizes.shape[0]
    better = 0
    for m in range(moves):
        at = (begin + m) % (count * longest)
        length = min(1 + at // count, count)
        first = at % count
        if first + length > count:
            continue
        price_block(items, seek, arrangement, scratch, first, length)
        choice = choose(scratch, count - length + 1, length > 1, first, 0.0, state)
        if move_block(arrangement.order, scratch.rest, first, length, choice):
            costs[0] = rebuild(items, seek, arrangement)
            better += 1
    return better


@njit(cache=True)
def typical_spread(items: Items, seek: CompiledSeek, arrangement: Arrangement, scratch: Scratch) -> float:
    """What a badly placed item costs above its best place: the median slot, for the median item."""
    count = items.sizes.shape[0]
    spreads = np.zeros(count)
    for p in range(count):
        price_block(items, seek, arrangement, scratch, p, 1)
        prices = scratch.forward[:count]
        spreads[p] = np.median(prices) - prices.min()
    return float(np.median(spreads))

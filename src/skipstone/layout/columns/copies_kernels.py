"""Compiled loops for duplicates: what new copies are worth at every slot, and which copies queries read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.choice_kernels import ChoiceRoom, Copies, improve_choice
from skipstone.layout.columns.seek_kernels import (
    CompiledSeek,
    add_costs,
    add_side_costs,
    add_split_costs,
    seek_cost,
)
from skipstone.layout.columns.sweep_kernels import Arrangement, Items


class CopyScratch(NamedTuple):
    """Room for pricing new copies."""

    weights: NDArray[np.float64]
    """Weights of the queries, 0 while a query may read the copies in hand."""
    steps: NDArray[np.float64]
    widened: NDArray[np.float64]
    over: NDArray[np.float64]
    read: NDArray[np.float64]
    touched: NDArray[np.int32]
    head: NDArray[np.float64]
    """Bytes before a query's first group among the new copies."""
    reached: NDArray[np.float64]
    """Where its last group among them ends."""
    inner: NDArray[np.float64]
    """What it pays between them."""
    marked: NDArray[np.int8]
    """Groups that are among them."""


def new_copy_scratch(groups: Items, slots: int) -> CopyScratch:
    """Room for pricing new copies of these groups in an order with so many slots."""
    queries = len(groups.weights)
    return CopyScratch(
        weights=groups.weights.copy(),
        steps=np.zeros(slots + 2),
        widened=np.zeros(len(groups.query_items)),
        over=np.zeros(slots + 1),
        read=np.zeros(slots + 1),
        touched=np.zeros(queries, np.int32),
        head=np.zeros(queries),
        reached=np.zeros(queries),
        inner=np.zeros(queries),
        marked=np.zeros(len(groups.sizes), np.int8),
    )


@njit(cache=True)
def rechoose(
    groups: Items,
    seek: CompiledSeek,
    copies: Copies,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    room: ChoiceRoom,
    changed: NDArray[np.bool_],
    chosen: NDArray[np.int32],
) -> None:
    """Let the queries that read one of the groups `changed` choose their copies anew.

    `chosen` runs beside `groups.query_items`.
    """
    for q in range(groups.weights.shape[0]):
        low, high = groups.query_start[q], groups.query_start[q + 1]
        concerned = False
        for e in range(low, high):
            concerned |= changed[groups.query_items[e]]
        if concerned:
            improve_choice(seek, copies, begin, end, groups.query_items[low:high], room, chosen[low:high])


@njit(cache=True)
def price_copies(
    groups: Items,
    copy_group: NDArray[np.int32],
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: CopyScratch,
    block: NDArray[np.int32],
    totals: NDArray[np.float64],
) -> None:
    """By how much the workload's cost changes when new copies of the groups `block`, side by side, go into each slot.

    A query that reads some of these groups either reads all of them there, or goes on as it is and seeks over them;
    `items` are the copies that queries read now. `totals[k]` is for the slot before position k.
    """
    slots = arrangement.order.shape[0] + 1
    weights, steps = scratch.weights, scratch.steps
    size = 0.0
    touched = 0
    for b in range(block.shape[0]):
        group = block[b]
        for e in range(groups.item_start[group], groups.item_start[group + 1]):
            q = groups.item_queries[e]
            if weights[q] != 0.0:
                weights[q] = 0.0
                scratch.touched[touched] = q
                touched += 1
                scratch.head[q] = size
                scratch.inner[q] = 0.0
            else:
                scratch.inner[q] += seek_cost(seek, size - scratch.reached[q])
            scratch.reached[q] = size + groups.sizes[group]
        size += groups.sizes[group]
        scratch.marked[group] = 1
    steps[: slots + 1] = 0.0
    _price_seeking_over(items, seek, arrangement, scratch, size)
    split = seek_cost(seek, size)
    running = 0.0
    for k in range(slots):
        running += steps[k]
        totals[k] = running + split * (arrangement.adjacent[k] if k < slots - 1 else 0.0)
    for t in range(touched):
        q = scratch.touched[t]
        _price_reader(groups, copy_group, items, seek, arrangement, scratch, q, size, totals)
        weights[q] = items.weights[q]
    for b in range(block.shape[0]):
        scratch.marked[block[b]] = 0


@njit(cache=True)
def _price_seeking_over(
    items: Items, seek: CompiledSeek, arrangement: Arrangement, scratch: CopyScratch, size: float
) -> None:
    """Gaps of queries that read none of the new copies get wider."""
    gaps = arrangement.gap_count[0]
    widened, steps, weights = scratch.widened, scratch.steps, scratch.weights
    gap_after, gap_before, gap_query = arrangement.gap_after, arrangement.gap_before, arrangement.gap_query
    widened[:gaps] = 0.0
    add_costs(seek, 1.0, arrangement.gap_bytes, size, 0, gaps, widened)
    for g in range(gaps):
        more = (widened[g] - arrangement.gap_cost[g]) * weights[gap_query[g]]
        steps[gap_after[g] + 1] += more
        steps[gap_before[g] + 1] -= more


@njit(cache=True)
def _price_reader(
    groups: Items,
    copy_group: NDArray[np.int32],
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: CopyScratch,
    q: int,
    size: float,
    totals: NDArray[np.float64],
) -> None:
    """Add what a query pays that may read the new copies: the smaller of reading them and of seeking over them."""
    slots = arrangement.order.shape[0] + 1
    offsets, over, read = arrangement.start, scratch.over, scratch.read
    weight, head = items.weights[q], scratch.head[q]
    tail = size - scratch.reached[q]
    split = seek_cost(seek, size)
    over[:slots] = 0.0
    read[:slots] = 0.0
    # As it is: every slot between its reads lies in one of its gaps. Read there: gaps between what else it reads.
    now = without = 0.0
    before = last = -1
    for e in range(items.query_start[q], items.query_start[q + 1]):
        p = arrangement.positions[e]
        if before >= 0:
            if p == before + 1:
                over[p] = split
            else:
                gap = offsets[p] - offsets[before + 1]
                cost = seek_cost(seek, gap)
                over[before + 1 : p + 1] = seek_cost(seek, gap + size) - cost
                now += cost
        before = p
        if scratch.marked[copy_group[arrangement.order[p]]] == 1:
            continue
        if last < 0:
            add_side_costs(seek, 1.0, offsets, -1.0, offsets[p] + tail, 0, p + 1, read)
        else:
            gap = offsets[p] - offsets[last + 1]
            cost = seek_cost(seek, gap)
            without += cost
            add_split_costs(seek, 1.0, offsets, offsets[last + 1] - head, offsets[p] + tail, last + 1, p + 1, read)
            for k in range(last + 1, p + 1):
                read[k] -= cost
        last = p
    if last >= 0:
        add_side_costs(seek, 1.0, offsets, 1.0, offsets[last + 1] - head, last + 1, slots, read)
    fixed = scratch.inner[q] + without - now
    # `adjacent` counts this query among those that would seek over the new copies; that is taken off again.
    before = -1
    for e in range(items.query_start[q], items.query_start[q + 1]):
        p = arrangement.positions[e]
        if before >= 0 and p == before + 1:
            totals[p] -= weight * split
        before = p
    for k in range(slots):
        totals[k] += weight * min(over[k], read[k] + fixed)

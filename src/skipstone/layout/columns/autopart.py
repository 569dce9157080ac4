"""AutoPart-C, the baseline of the wide-table paper: fragments of columns, merged two by two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem, GroupedProblem
from skipstone.layout.columns.search import Effort, FoundOrder, Watch
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.seek_kernels import CompiledSeek
from skipstone.layout.columns.sweep_kernels import (
    Arrangement,
    Items,
    Scratch,
    new_arrangement,
    new_scratch,
    price_block,
    rebuild,
)

Fragment = tuple[int, ...]
"""Groups of columns that stay together in this sequence."""


def autopart_c(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Cut the columns into fragments query by query, then combine the pair of fragments that gains most.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, Appendix E,
    Algorithm 4, after AutoPart (Papadomanolakis and Ailamaki, SSDBM 2004) and HillClimb (Hankins and Patel,
    VLDB 2003).

        Q, q     problem.reads, heaviest first     F       fragments
        af       the columns of q that are new     S       best

    Departs from the paper: columns with the same readers are adjacent inside a fragment. All slots for a pair are
    priced in one sweep, which changes the time and not the choice. Columns that nobody reads go to the end. The
    effort may end the search before it converges; it ends by itself when no pair gains. A move is one insertion or
    one pair, tried in both sequences at every slot.
    """
    grouped = GroupedProblem.of(problem)
    seek = profile.compiled()
    _prepare(seek)
    initial = list(range(len(problem.sizes)))
    initial_cost = order_cost(problem, initial, profile)
    fragments: list[Fragment] = []
    with Watch(effort) as watch:
        fragments = _fragments(grouped.problem, seek, watch, initial_cost)
        _combine(grouped.problem, seek, fragments, watch)
    rest = set(range(len(grouped.groups))) - {group for fragment in fragments for group in fragment}
    order = grouped.columns_of([group for fragment in fragments for group in fragment] + sorted(rest))
    final_cost = order_cost(problem, order, profile)
    if final_cost >= initial_cost:
        order, final_cost = initial, initial_cost
    return FoundOrder(
        order=tuple(order),
        algorithm="autopart-c",
        seed=seed,
        initial_cost=initial_cost,
        final_cost=final_cost,
        moves=watch.moves,
        seconds=watch.seconds,
        stopped=watch.stopped,
        trace=tuple(watch.trace),
    )


def _prepare(seek: CompiledSeek) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    problem = ColumnProblem(np.ones(3), ((0, 2), (1,)), np.ones(2))
    watch = Watch(Effort(moves=1_000))  # no seconds: compiling may take many
    fragments = _fragments(problem, seek, watch, 0.0)
    _combine(problem, seek, fragments, watch)


def _fragments(problem: ColumnProblem, seek: CompiledSeek, watch: Watch, best_cost: float) -> list[Fragment]:
    """Lines 1-4: what each query reads and no query before it did, inserted where the queries so far pay least."""
    heaviest_first = sorted(range(len(problem.reads)), key=lambda query: (-problem.weights[query], query))
    fragments: list[Fragment] = []
    placed: set[int] = set()
    for done, query in enumerate(heaviest_first):
        new = tuple(group for group in problem.reads[query] if group not in placed)
        if not new or watch.stopped:
            continue
        placed.update(new)
        if fragments:
            slot = _best_slot(problem, seek, heaviest_first[: done + 1], fragments, new)
            fragments.insert(slot, new)
        else:
            fragments.append(new)
        watch.made(1, best_cost)
        watch.goes_on()
    return fragments


def _best_slot(
    problem: ColumnProblem, seek: CompiledSeek, queries: Sequence[int], fragments: Sequence[Fragment], new: Fragment
) -> int:
    """Where among the fragments the new one costs least, counting only these queries."""
    order = [*new, *(group for fragment in fragments for group in fragment)]
    number = {group: index for index, group in enumerate(order)}
    part = ColumnProblem(
        problem.sizes[order],
        tuple(tuple(number[group] for group in problem.reads[query]) for query in queries),
        problem.weights[list(queries)],
    )
    items = part.items()
    arrangement, scratch = new_arrangement(items, np.arange(len(order), dtype=np.int32)), new_scratch(items)
    rebuild(items, seek, arrangement)
    price_block(items, seek, arrangement, scratch, 0, len(new))
    borders = np.concatenate([[0], np.cumsum([len(fragment) for fragment in fragments])])
    return int(np.argmin(scratch.forward[borders]))


def _combine(problem: ColumnProblem, seek: CompiledSeek, fragments: list[Fragment], watch: Watch) -> None:
    """Lines 5-9: combine, again and again, the two fragments whose combination at its best place gains most."""
    items = problem.items()
    scratch = new_scratch(items)
    order = np.array([group for fragment in fragments for group in fragment], np.int32)
    if len(order) < len(problem.sizes):
        return  # stopped before every query had its fragment
    arrangement = new_arrangement(items, order)
    cost = rebuild(items, seek, arrangement)
    watch.made(0, cost)
    while len(fragments) > 1 and watch.goes_on():
        ends = np.cumsum([len(fragment) for fragment in fragments]).astype(np.int64)
        order = np.array([group for fragment in fragments for group in fragment], np.int32)
        found = np.array([cost, -1.0, -1.0, -1.0])
        for first in range(len(fragments)):
            if not watch.goes_on():
                return
            _best_partner(items, seek, arrangement, scratch, order, ends, first, found)
            watch.made(len(fragments) - 1 - first, cost)
        if found[1] < 0:
            return
        cost = float(found[0])
        one, other, slot = (int(value) for value in found[1:])
        combined = fragments[one] + fragments[other]
        for index in sorted((one, other), reverse=True):
            del fragments[index]
        fragments.insert(slot, combined)
        watch.made(0, cost)


@njit(cache=True)
def _best_partner(
    items: Items,
    seek: CompiledSeek,
    arrangement: Arrangement,
    scratch: Scratch,
    order: NDArray[np.int32],
    ends: NDArray[np.int64],
    first: int,
    found: NDArray[np.float64],
) -> None:
    """Try the fragment `first` with every later one, either in front; `found` keeps the best cost, pair and slot."""
    count, fragments = order.shape[0], ends.shape[0]
    for second in range(first + 1, fragments):
        for turned in range(2):
            one, other = (second, first) if turned else (first, second)
            # The pair goes to the front, and the sweep tells what every other slot costs against that.
            at = 0
            for fragment in (one, other):
                for p in range(ends[fragment - 1] if fragment > 0 else 0, ends[fragment]):
                    arrangement.order[at] = order[p]
                    at += 1
            length = at
            for fragment in range(fragments):
                if fragment not in (one, other):
                    for p in range(ends[fragment - 1] if fragment > 0 else 0, ends[fragment]):
                        arrangement.order[at] = order[p]
                        at += 1
            cost = rebuild(items, seek, arrangement)
            if length == count:
                if cost < found[0] - 1e-9:
                    found[0], found[1], found[2], found[3] = cost, one, other, 0
                continue
            price_block(items, seek, arrangement, scratch, 0, length)
            slot, border = 0, 0
            for fragment in range(-1, fragments):
                if fragment >= 0:
                    if fragment in (one, other):
                        continue
                    border += ends[fragment] - (ends[fragment - 1] if fragment > 0 else 0)
                    slot += 1
                there = cost + scratch.forward[border] - scratch.forward[0]
                if there < found[0] - 1e-9:
                    found[0], found[1], found[2], found[3] = there, one, other, slot

"""The default search for duplicates: take some copies out, refill the headroom with what gains most, let it settle."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.copies import CopiedOrder, Pricing
from skipstone.layout.columns.duplicates import FoundDuplicates, finished, headroom_bytes
from skipstone.layout.columns.problem import ColumnProblem, GroupedProblem
from skipstone.layout.columns.randomness import random_state
from skipstone.layout.columns.search import Effort, Watch
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.sweep import LONGEST_BLOCK, prepare
from skipstone.layout.columns.sweep_kernels import anneal, new_scratch, typical_spread

QUERIES_A_ROUND = 25
"""Queries, drawn by what they pay, whose columns are candidates in one round."""

SINGLES_A_ROUND = 10
LONGEST_RUN = 8
"""A run of replicas takes in at most this many stretches of what a query reads."""

TAKEN_OUT = (0.05, 0.3)
"""Share of the headroom that a round empties, between these."""

BYTES_COUNT = (0.3, 1.0)
"""A round ranks candidates by gain / bytes ** x, with x between these: small replicas first, or large runs."""

WARM = ((0.02, 0.002, 1200), (0.005, 0.001, 600))
"""After a refill the order is annealed: hot and cold in units of `typical_spread`, and moves, twice."""

STEPS = 8


def refill(
    problem: ColumnProblem,
    order: Sequence[int],
    headroom: float,
    profile: SeekProfile,
    effort: Effort,
    seed: int,
) -> FoundDuplicates:
    """Find duplicates by large neighbourhood search (Shaw, "Using Constraint Programming and Local Search Methods to
    Solve Vehicle Routing Problems", CP 1998).

    A round takes copies out of random stretches of the order, then fills the headroom again, greedily by gain for
    bytes. A candidate is one group of columns, or a run: side by side, all that a query reads, or neighbouring
    stretches of it. One sweep prices a candidate at every slot, where each query either reads it there or
    seeks over it. Then the order is annealed while it is warm, and queries choose their copies again. The better of
    before and after goes on.

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> problem = ColumnProblem(np.array([10.0, 1e6, 1e6]), ((0, 1), (0, 2), (1, 2)), np.ones(3))
    >>> found = refill(problem, [0, 1, 2], 0.01, PowerSeek(), Effort(moves=500), seed=1)
    >>> found.initial_cost > found.final_cost == 0.0, found.duplicate_bytes
    (True, 10.0)
    """
    limit = headroom_bytes(problem, headroom)
    grouped = GroupedProblem.of(problem)
    seek = profile.compiled()
    prepare(seek)
    place = {column: position for position, column in enumerate(order)}
    by_place = sorted(range(len(grouped.groups)), key=lambda group: place[grouped.groups[group][0]])
    current = CopiedOrder.of(grouped.problem, by_place, seek)
    _warm_up(current)
    random, state = np.random.default_rng(seed), random_state(seed)
    with Watch(effort) as watch:
        unit = typical_spread(current.items, seek, current.arrangement, new_scratch(current.items))
        while unit > 0.0 and watch.goes_on():
            tried = current.clone()
            _take_out(tried, random, limit)
            _fill(tried, _candidates(tried, random, limit), random.uniform(*BYTES_COUNT), limit, watch, current.cost)
            for hot, cold, moves in WARM:
                _anneal(tried, moves, hot * unit, cold * unit, state, watch, current.cost)
                tried.settle()
            if tried.cost < current.cost - 1e-9:
                current = tried
            watch.made(0, current.cost)
    return finished(
        problem,
        order,
        current,
        grouped.groups.__getitem__,
        grouped.unread,
        algorithm="refill",
        seed=seed,
        profile=profile,
        headroom=limit,
        watch=watch,
    )


def _warm_up(copied: CopiedOrder) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    copied.settle()
    Pricing(copied).gain((0,))


def _take_out(copied: CopiedOrder, random: np.random.Generator, limit: float) -> None:
    """Take copies out of random stretches, up to a share of the headroom."""
    target, taken = random.uniform(*TAKEN_OUT) * limit, 0.0
    gone: dict[int, None] = {}
    many = np.bincount(copied.copy_group)
    while taken < target and copied.copied_bytes > 0.0:
        begin = int(random.integers(len(copied.order)))
        for copy in copied.order[begin : begin + int(random.integers(1, 12))].tolist():
            if many[copied.copy_group[copy]] > 1:
                gone[copy] = None
                taken += float(copied.groups.sizes[copied.copy_group[copy]])
        # A stretch without copies counts a little as well, so that this ends.
        taken += 0.002 * limit
    if gone:
        copied.remove(gone)
        copied.settle()


def _candidates(copied: CopiedOrder, random: np.random.Generator, limit: float) -> list[tuple[int, ...]]:
    """Runs that some expensive queries would read, and some single groups, that fit into what is left."""
    left = limit - copied.copied_bytes
    sizes = copied.groups.sizes
    costs = _query_costs(copied)
    drawn = min(QUERIES_A_ROUND, int((costs > 0).sum()))
    found: dict[frozenset[int], tuple[int, ...]] = {}
    if drawn:
        for query in random.choice(len(costs), size=drawn, replace=False, p=costs / costs.sum()).tolist():
            for run in _runs(_stretches(copied, query)):
                if float(sizes[list(run)].sum()) <= left:
                    found.setdefault(frozenset(run), run)
    for group in random.choice(len(sizes), size=min(SINGLES_A_ROUND, len(sizes)), replace=False).tolist():
        if sizes[group] <= left:
            found.setdefault(frozenset((group,)), (group,))
    return list(found.values())


def _query_costs(copied: CopiedOrder) -> NDArray[np.float64]:
    arrangement, weights = copied.arrangement, copied.groups.weights
    gaps = int(arrangement.gap_count[0])
    costs = np.bincount(arrangement.gap_query[:gaps], weights=arrangement.gap_cost[:gaps], minlength=len(weights))
    return np.asarray(costs * weights, np.float64)


def _stretches(copied: CopiedOrder, query: int) -> list[list[int]]:
    """The groups that a query reads now, in stored order, cut where it seeks."""
    low, high = copied.groups.query_start[query], copied.groups.query_start[query + 1]
    stretches: list[list[int]] = []
    before = -2
    for position in copied.arrangement.positions[low:high].tolist():
        group = int(copied.copy_group[copied.arrangement.order[position]])
        if position == before + 1:
            stretches[-1].append(group)
        else:
            stretches.append([group])
        before = position
    return stretches


def _runs(stretches: Sequence[Sequence[int]]) -> Iterable[tuple[int, ...]]:
    """Neighbouring stretches put together: each alone, each with those that follow, up to all that the query reads.

    >>> list(_runs([[1], [2, 3]]))
    [(1,), (1, 2, 3), (2, 3)]
    >>> list(_runs([[1, 2]]))
    []
    """
    if len(stretches) < 2:
        return
    for first in range(len(stretches)):
        run: list[int] = []
        for stretch in stretches[first : first + LONGEST_RUN]:
            run += stretch
            yield tuple(run)


def _fill(
    copied: CopiedOrder,
    candidates: Sequence[tuple[int, ...]],
    exponent: float,
    limit: float,
    watch: Watch,
    best_cost: float,
) -> None:
    """Insert what gains most for its bytes, again and again, as long as it fits.

    Gains mostly shrink as copies come in, so a candidate's last gain stands until it comes first and is priced again.
    """
    sizes = copied.groups.sizes
    pricing = Pricing(copied)
    heap: list[tuple[float, tuple[int, ...]]] = []
    for run in candidates:
        if not watch.goes_on():
            return
        gain, _ = pricing.gain(run)
        watch.made(1, best_cost)
        if gain > 1e-6:
            heap.append((-gain / float(sizes[list(run)].sum()) ** exponent, run))
    heapq.heapify(heap)
    while heap and watch.goes_on():
        _, run = heapq.heappop(heap)
        size = float(sizes[list(run)].sum())
        if copied.copied_bytes + size > limit:
            continue
        gain, slot = pricing.gain(run)
        watch.made(1, best_cost)
        rank = -gain / size**exponent
        if gain <= 1e-6:
            continue
        if heap and rank > heap[0][0] + 1e-12:
            heapq.heappush(heap, (rank, run))
            continue
        copied.insert(run, slot)
        copied.settle(run)
        pricing = Pricing(copied)


def _anneal(
    copied: CopiedOrder,
    moves: int,
    hot: float,
    cold: float,
    state: NDArray[np.uint64],
    watch: Watch,
    best_cost: float,
) -> None:
    """Move blocks of copies about, each query reading the copies that it reads now."""
    scratch = new_scratch(copied.items)
    best, costs = copied.order.copy(), np.array([copied.cost, copied.cost])
    for step in range(STEPS):
        if not watch.goes_on():
            break
        temperature = hot * (cold / hot) ** (step / (STEPS - 1))
        anneal(
            copied.items,
            copied.seek,
            copied.arrangement,
            scratch,
            best,
            costs,
            moves // STEPS,
            temperature,
            LONGEST_BLOCK,
            state,
        )
        watch.made(moves // STEPS, best_cost)
    copied.order = best
    copied.refresh()

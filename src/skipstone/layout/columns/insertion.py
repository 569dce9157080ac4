"""The duplication algorithm of the wide-table paper: one replica after the other, with periodic refinement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.copies import CopiedOrder, Pricing
from skipstone.layout.columns.duplicates import FoundDuplicates, finished, headroom_bytes
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.randomness import random_state
from skipstone.layout.columns.scoa_kernels import anneal_swaps
from skipstone.layout.columns.search import Effort, Watch
from skipstone.layout.columns.seek import SeekProfile

CANDIDATES = 300
"""How many of the most popular columns are considered (the authors' setting)."""

SLOT_STRIDE = 10
"""Every tenth slot is considered (section 4.2.2)."""

POPULARITY_PERIOD = 10
"""Replicas between two rankings of the columns (the authors' setting)."""

REFINE_PERIOD = 5
"""Replicas between two refinements (section 6.10)."""

REFINE_SWAPS = 5000
SWAPS_A_CALL = 256


def insertion(
    problem: ColumnProblem,
    order: Sequence[int],
    headroom: float,
    profile: SeekProfile,
    effort: Effort,
    seed: int,
) -> FoundDuplicates:
    """Insert the replica that saves most for its bytes, until the headroom is used up.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, Algorithm 3
    with the heuristics of section 4.2.2 (only popular columns, only every tenth slot) and the periodic refinement of
    section 4.2.1 (swaps accepted by SCOA at a temperature near 0).

        S_O  order             max_reduce_c   gain          H      limit
        S_D  copied.order      best_pos_c     slot          C_q    copied.chosen

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> problem = ColumnProblem(np.array([10.0, 1e6, 1e6]), ((0, 1), (0, 2), (1, 2)), np.ones(3))
    >>> found = insertion(problem, [0, 1, 2], 0.01, PowerSeek(), Effort(moves=5000), seed=1)
    >>> found.initial_cost > found.final_cost, found.duplicate_bytes <= found.headroom_bytes
    (True, True)

    Departs from the paper: a replica that does not fit into what is left is passed over, where the paper's loop lets
    the last one exceed the headroom. A query reads the new replica where that is cheaper, and may then change to
    other copies too. The refinement goes on with what is left of the effort once the headroom is full. A move is one
    replica priced at all slots, or one swap tried.
    """
    limit = headroom_bytes(problem, headroom)
    read = sorted({column for reads in problem.reads for column in reads})
    number = {column: index for index, column in enumerate(read)}
    part = ColumnProblem(
        problem.sizes[read], tuple(tuple(number[c] for c in reads) for reads in problem.reads), problem.weights
    )
    copied = CopiedOrder.of(part, [number[column] for column in order if column in number], profile.compiled())
    copied.settle()
    Pricing(copied).gain((0,))
    state = random_state(seed)
    _refine(copied, state, Watch(Effort(moves=1)), swaps=1)
    with Watch(effort) as watch:
        _insert_replicas(copied, limit, state, watch)
        while len(copied.order) > 1 and watch.goes_on():
            _refine(copied, state, watch)
    # The copies that queries read may be a better choice by now, which may leave others unread.
    copied.settle()
    unread = [column for column in order if column not in number]
    return finished(
        problem,
        order,
        copied,
        lambda item: (read[item],),
        unread,
        algorithm="insertion",
        seed=seed,
        profile=profile,
        headroom=limit,
        watch=watch,
    )


def _insert_replicas(copied: CopiedOrder, limit: float, state: NDArray[np.uint64], watch: Watch) -> None:
    """Lines 4-14 of Algorithm 3."""
    replicas = 0
    popular: list[int] = []
    while watch.goes_on():
        if replicas % POPULARITY_PERIOD == 0:
            popular = _most_popular(copied)
        left = limit - copied.copied_bytes
        best: tuple[float, int, int] | None = None
        pricing = Pricing(copied)
        for item in popular:
            size = float(copied.groups.sizes[item])
            if size > left or not watch.goes_on():
                continue
            gain, slot = pricing.gain((item,), SLOT_STRIDE)
            watch.made(1, copied.cost)
            if gain > 1e-6 and (best is None or gain / size > best[0]):
                best = (gain / size, item, slot)
        if best is None:
            return
        _, item, slot = best
        copied.insert((item,), slot)
        copied.settle((item,))
        replicas += 1
        if replicas % REFINE_PERIOD == 0:
            _refine(copied, state, watch)


def _most_popular(copied: CopiedOrder) -> list[int]:
    """Items by the seek distances to their neighbours among what queries read (section 4.2.2), weighted."""
    distances = np.zeros(len(copied.groups.sizes))
    arrangement = copied.arrangement
    gaps = int(arrangement.gap_count[0])
    seen = arrangement.gap_bytes[:gaps] * copied.groups.weights[arrangement.gap_query[:gaps]]
    for neighbour in (arrangement.gap_after[:gaps], arrangement.gap_before[:gaps]):
        np.add.at(distances, copied.copy_group[arrangement.order[neighbour]], seen)
    ranked = np.argsort(-distances, kind="stable")[:CANDIDATES]
    return [int(item) for item in ranked if distances[item] > 0.0]


def _refine(copied: CopiedOrder, state: NDArray[np.uint64], watch: Watch, swaps: int = REFINE_SWAPS) -> None:
    """Swap columns as SCOA does at a temperature near 0, each query reading the copies that it reads now."""
    order, arrangement = copied.order.copy(), copied.arrangement
    positions, start = arrangement.positions.copy(), arrangement.start.copy()
    best, costs = order.copy(), np.array([copied.cost, copied.cost])
    made = 0
    while made < swaps and len(order) > 1 and watch.goes_on():
        many = min(SWAPS_A_CALL, swaps - made)
        anneal_swaps(copied.items, copied.seek, order, positions, start, best, costs, many, 0.0, 1.0, state)
        made += many
        watch.made(many, float(costs[1]))
    copied.order = best
    copied.refresh()
    copied.settle()

"""The genetic algorithm that the wide-table paper tried beside SCOA."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.randomness import below, random_state
from skipstone.layout.columns.scoa_kernels import swap, swap_delta
from skipstone.layout.columns.search import Effort, FoundOrder, Watch
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.seek_kernels import CompiledSeek
from skipstone.layout.columns.sweep_kernels import Items, new_arrangement, rebuild

POPULATION = 40
PARENTS = 20


def genetic(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Let a population of orders breed; the fittest half of each generation are the parents of the next.

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, Appendix D:
    an individual is a column order, its fitness the seek cost; a child is crossed from two parents by swapping a pair
    of columns and mutated by swapping two more.

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> problem = ColumnProblem(np.full(6, 1e6), ((0, 3), (1, 4), (2, 5)), np.ones(3))
    >>> found = genetic(problem, PowerSeek(), Effort(moves=4000), seed=1)
    >>> found.final_cost < found.initial_cost
    True

    Departs from the paper: the paper draws the crossing and does not spell it out; here a child is one parent with
    the pair of columns swapped that gives it the other parent's column at a random place. Population and share of
    parents are ours. Parents live on, so that the best order is never lost. A move is one child.
    """
    items, seek = problem.items(), profile.compiled()
    count = len(problem.sizes)
    arrangement = new_arrangement(items, np.arange(count, dtype=np.int32))
    initial_cost = rebuild(items, seek, arrangement)
    orders = np.tile(arrangement.order, (POPULATION, 1))
    positions = np.tile(arrangement.positions, (POPULATION, 1))
    starts = np.tile(arrangement.start, (POPULATION, 1))
    costs, state = np.full(POPULATION, initial_cost), random_state(seed)
    ranked = np.arange(POPULATION)
    with Watch(effort) as watch:
        _breed(items, seek, orders, positions, starts, costs, ranked, random_state(0), 0)
        watch.started = watch.now()
        while count > 1 and watch.goes_on():
            _breed(items, seek, orders, positions, starts, costs, ranked, state, PARENTS)
            ranked = np.argsort(costs, kind="stable")
            watch.made(POPULATION - PARENTS, float(costs[ranked[0]]))
    best = orders[ranked[0]]
    return FoundOrder(
        order=tuple(best.tolist()),
        algorithm="genetic",
        seed=seed,
        initial_cost=initial_cost,
        final_cost=order_cost(problem, best, profile),
        moves=watch.moves,
        seconds=watch.seconds,
        stopped=watch.stopped,
        trace=tuple(watch.trace),
    )


@njit(cache=True)
def _breed(
    items: Items,
    seek: CompiledSeek,
    orders: NDArray[np.int32],
    positions: NDArray[np.int32],
    starts: NDArray[np.float64],
    costs: NDArray[np.float64],
    ranked: NDArray[np.int64],
    state: NDArray[np.uint64],
    parents: int,
) -> None:
    """Replace all but the `parents` fittest by their children; with no parents, nobody is replaced."""
    if parents == 0:
        return
    count = orders.shape[1]
    for r in range(parents, ranked.shape[0]):
        child = ranked[r]
        one, other = ranked[below(state, parents)], ranked[below(state, parents)]
        orders[child, :] = orders[one]
        positions[child, :] = positions[one]
        starts[child, :] = starts[one]
        costs[child] = costs[one]
        place = below(state, count)
        wanted = orders[other, place]
        there = place
        for p in range(count):
            if orders[child, p] == wanted:
                there = p
        for step in range(2):
            x, y = (place, there) if step == 0 else (below(state, count), below(state, count))
            if x != y:
                x, y = min(x, y), max(x, y)
                costs[child] += swap_delta(items, seek, positions[child], starts[child], x, y)
                swap(items, orders[child], positions[child], starts[child], x, y)

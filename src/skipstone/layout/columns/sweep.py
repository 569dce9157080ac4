"""The default search for a column order: take a block out, price all slots in one sweep, put it back by heat bath."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem, GroupedProblem
from skipstone.layout.columns.randomness import random_state
from skipstone.layout.columns.search import Effort, FoundOrder, Watch
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.seek_kernels import CompiledSeek
from skipstone.layout.columns.sweep_kernels import (
    Arrangement,
    Items,
    Scratch,
    anneal,
    descend,
    new_arrangement,
    new_scratch,
    rebuild,
    typical_spread,
)

LONGEST_BLOCK = 20
HOT, COLD = 0.4, 0.003
"""Temperatures of a full annealing, in units of `typical_spread`."""

FULL_ANNEALING = 20
"""Moves an item from which it pays to begin at `HOT`; with fewer, the order of the descent is worth keeping."""

RESTARTS = 20
"""With r * r times this many moves an item, r annealings are made and the best is kept: about one in eight ends in a
poor valley however slowly it cools, so that two shorter ones are better than one."""

FIRST_PASSES = 2
ANNEALED_SHARE = 0.95
"""The rest of the effort refines: groups in place first, then single columns."""

REFINED_BLOCK = 3
MOVES_A_CALL = 32
CALL_SECONDS = 0.015


def sweep(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Find an order of the columns in which queries seek little.

    Columns with the same readers move as one. A move takes a block of consecutive groups out and puts it back at one
    of all the slots, forwards or backwards, with the probability that a heat bath gives each (Geman and Geman,
    "Stochastic Relaxation, Gibbs Distributions, and the Bayesian Restoration of Images", PAMI 1984); the temperature
    falls geometrically. A short search begins colder, a long one begins again and keeps the best. At the end, the
    groups and then the single columns move to their best slots until none has a better one or the effort is spent.

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> reads = ((0, 3), (1, 4), (2, 5))
    >>> problem = ColumnProblem(np.full(6, 1e6), reads, np.ones(3))
    >>> found = sweep(problem, PowerSeek(), Effort(moves=200), seed=1)
    >>> found.initial_cost > 0.0 == found.final_cost
    True
    """
    grouped = GroupedProblem.of(problem)
    seek = profile.compiled()
    prepare(seek)
    initial = list(range(len(problem.sizes)))
    initial_cost = order_cost(problem, initial, profile)
    search = _Search.over(grouped.problem.items(), np.arange(len(grouped.groups), dtype=np.int32), seek, seed)
    with Watch(effort) as watch:
        _anneal_groups(search, watch)
        _descend(search, watch, LONGEST_BLOCK, 1.0 - (1.0 - ANNEALED_SHARE) / 2)
    by_groups = grouped.columns_of(search.best)
    columns = by_groups
    if not watch.stopped:
        with watch:
            columns = _refine_columns(problem, grouped, by_groups, seek, seed, watch)
    # Whatever the search believes, what it returns is priced by the model, and is never worse than doing nothing.
    candidates = [columns, by_groups, initial]
    costs = [order_cost(problem, candidate, profile) for candidate in candidates]
    cheapest = min(range(len(candidates)), key=costs.__getitem__)
    return FoundOrder(
        order=tuple(candidates[cheapest]),
        algorithm="sweep",
        seed=seed,
        initial_cost=initial_cost,
        final_cost=costs[cheapest],
        moves=watch.moves,
        seconds=watch.seconds,
        stopped=watch.stopped,
        trace=tuple(watch.trace),
    )


@dataclass(slots=True)
class _Search:
    """An order that is being improved, and the best one seen."""

    items: Items
    seek: CompiledSeek
    arrangement: Arrangement
    scratch: Scratch
    best: NDArray[np.int32]
    costs: NDArray[np.float64]
    """The present cost and the best."""
    state: NDArray[np.uint64]

    @classmethod
    def over(cls, items: Items, order: NDArray[np.int32], seek: CompiledSeek, seed: int) -> _Search:
        arrangement = new_arrangement(items, order)
        cost = rebuild(items, seek, arrangement)
        costs = np.array([cost, cost])
        return cls(items, seek, arrangement, new_scratch(items), order.copy(), costs, random_state(seed))

    @property
    def count(self) -> int:
        return len(self.items.sizes)

    def start_from(self, order: NDArray[np.int32]) -> None:
        self.arrangement.order[:] = order
        self.costs[0] = rebuild(self.items, self.seek, self.arrangement)
        self.keep_if_best()

    def keep_if_best(self) -> None:
        if self.costs[0] < self.costs[1] - 1e-9:
            self.costs[1] = self.costs[0]
            self.best[:] = self.arrangement.order


@dataclass(slots=True)
class _CallSize:
    """How many moves to make in one compiled call: a fixed number, or what fits between two looks at the clock."""

    timed: bool
    moves: int = MOVES_A_CALL

    def measured(self, seconds: float) -> None:
        if self.timed:
            wanted = self.moves * CALL_SECONDS / max(seconds, 1e-6)
            self.moves = max(1, min(int(wanted), 2 * self.moves, 4096))


def prepare(seek: CompiledSeek) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    items = ColumnProblem(np.ones(3), ((0, 2), (1, 2)), np.ones(2)).items()
    search = _Search.over(items, np.arange(3, dtype=np.int32), seek, 0)
    anneal(items, seek, search.arrangement, search.scratch, search.best, search.costs, 1, 1.0, 2, search.state)
    descend(items, seek, search.arrangement, search.scratch, search.costs, 0, 1, 2, search.state)
    typical_spread(items, seek, search.arrangement, search.scratch)


def _anneal_groups(search: _Search, watch: Watch) -> None:
    """Descend to a first order, then anneal as often as the effort allows."""
    if search.count < 2:
        return
    begun, moves = watch.now(), watch.moves
    _descend(search, watch, 1, ANNEALED_SHARE / 2, passes=FIRST_PASSES)
    first = search.best.copy()
    unit = typical_spread(search.items, search.seek, search.arrangement, search.scratch)
    if unit <= 0.0:
        return
    speed = (watch.moves - moves + search.count) / max(watch.now() - begun, 1e-6)
    left = _moves_left(watch, speed, ANNEALED_SHARE)
    rounds = max(1, round(math.sqrt(left / (RESTARTS * search.count))))
    begin = watch.spent()
    size = _CallSize(watch.timed)
    for number in range(rounds):
        low = begin + (ANNEALED_SHARE - begin) * number / rounds
        high = begin + (ANNEALED_SHARE - begin) * (number + 1) / rounds
        a_item = left / rounds / search.count
        hot = HOT * unit * min(1.0, a_item / FULL_ANNEALING) ** 2
        hot = max(hot, COLD * unit)
        search.start_from(first)
        while watch.goes_on(high):
            done = max(0.0, (watch.spent() - low) / (high - low))
            temperature = hot * (COLD * unit / hot) ** done
            started = watch.now()
            anneal(
                search.items,
                search.seek,
                search.arrangement,
                search.scratch,
                search.best,
                search.costs,
                size.moves,
                temperature,
                LONGEST_BLOCK,
                search.state,
            )
            watch.made(size.moves, float(search.costs[1]))
            size.measured(watch.now() - started)


def _moves_left(watch: Watch, speed: float, share: float) -> float:
    """How many moves fit into the effort up to `share`, at this many a second."""
    spent = watch.spent()
    if watch.timed:
        elapsed = max(watch.seconds, 1e-6)
        return max(0.0, (share - spent) / max(spent, 1e-9) * elapsed * speed)
    assert watch.effort.moves is not None
    return max(0.0, (share - spent) * watch.effort.moves)


def _descend(search: _Search, watch: Watch, longest: int, share: float, passes: int | None = None) -> None:
    """Move blocks to their best slots, in passes over all blocks, until a pass finds nothing better."""
    search.start_from(search.best)
    longest = min(longest, search.count)
    whole = search.count * longest
    size = _CallSize(watch.timed)
    at, since_better, made = 0, 0, 0
    while since_better < whole and (passes is None or made < passes * whole) and watch.goes_on(share):
        moves = min(size.moves, whole)
        started = watch.now()
        better = descend(
            search.items,
            search.seek,
            search.arrangement,
            search.scratch,
            search.costs,
            at,
            moves,
            longest,
            search.state,
        )
        search.keep_if_best()
        at, made = (at + moves) % whole, made + moves
        since_better = 0 if better else since_better + moves
        watch.made(moves, float(search.costs[1]))
        size.measured(watch.now() - started)


def _refine_columns(
    problem: ColumnProblem, grouped: GroupedProblem, order: list[int], seek: CompiledSeek, seed: int, watch: Watch
) -> list[int]:
    """Let the columns leave their groups, where that helps."""
    unread = set(grouped.unread)
    read = [column for column in order if column not in unread]
    number = {column: index for index, column in enumerate(sorted(read))}
    alone = ColumnProblem(
        problem.sizes[sorted(read)],
        tuple(tuple(number[column] for column in reads) for reads in problem.reads),
        problem.weights,
    )
    named = sorted(read)
    search = _Search.over(alone.items(), np.array([number[column] for column in read], np.int32), seek, seed)
    with watch:
        _descend(search, watch, REFINED_BLOCK, 1.0)
    return [named[item] for item in search.best] + list(grouped.unread)

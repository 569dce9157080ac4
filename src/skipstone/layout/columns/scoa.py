"""SCOA, the simulated annealing of the wide-table paper, and the same with its cooling spread over the effort."""

from __future__ import annotations

import numpy as np

from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.randomness import random_state
from skipstone.layout.columns.scoa_kernels import anneal_swaps
from skipstone.layout.columns.search import Effort, FoundOrder, Watch
from skipstone.layout.columns.seek import SeekProfile
from skipstone.layout.columns.seek_kernels import CompiledSeek
from skipstone.layout.columns.sweep_kernels import new_arrangement, rebuild

INITIAL_TEMPERATURE = 1.1
"""t_0 in units of the initial cost: "slightly larger than the seek cost (energy) of S_0" (Appendix C)."""

COOLING_RATE = 0.003
"""The rate that the authors ship with their tool."""

FINAL_TEMPERATURE = 1e-6
"""Where spread cooling ends, in units of the initial temperature: "near zero" (Appendix C)."""

MOVES_A_CALL = 256
CALL_SECONDS = 0.015


def scoa(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """Swap two random columns; keep the swap if it is better, or with probability exp(-difference / temperature).

    Bian et al., "Wide Table Layout Optimization based on Column Ordering and Duplication", SIGMOD 2017, Algorithm 1
    with the incremental cost of section 3.3 (Figure 2 and Algorithm 2), and with the cooling that Appendix C asks
    for: "the temperature can be cooled down to near zero within a given computational time".

        S_0, S   order                           t_0           INITIAL_TEMPERATURE * cost of S_0
        e        costs[0]                        cooling_rate  chosen so that t falls from t_0 to
        C_q      slices of `positions`                         FINAL_TEMPERATURE * t_0 over the effort

    >>> from skipstone.layout.columns.seek import PowerSeek
    >>> reads = ((0, 3), (1, 4), (2, 5))
    >>> problem = ColumnProblem(np.full(6, 1e6), reads, np.ones(3))
    >>> found = scoa(problem, PowerSeek(), Effort(moves=5000), seed=1)
    >>> found.initial_cost > 0.0 == found.final_cost
    True

    Departs from the paper: queries with the same columns are one with their summed weight (the paper keeps the
    heaviest); a sorted array with binary search stands for the balanced tree of C_q; the best order seen is
    returned, not the last.
    """
    return _scoa(problem, profile, effort, seed, spread=True)


def scoa_shipped(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int) -> FoundOrder:
    """SCOA with the fixed cooling rate that its authors ship: cold after some thousand swaps, a descent from then on.

    As `scoa`, with t multiplied by 1 - COOLING_RATE after every swap tried (Algorithm 1).
    """
    return _scoa(problem, profile, effort, seed, spread=False)


def _scoa(problem: ColumnProblem, profile: SeekProfile, effort: Effort, seed: int, *, spread: bool) -> FoundOrder:
    items, seek = problem.items(), profile.compiled()
    count = len(problem.sizes)
    _prepare(seek)
    order = np.arange(count, dtype=np.int32)
    arrangement = new_arrangement(items, order)
    initial_cost = rebuild(items, seek, arrangement)
    positions, start = arrangement.positions.copy(), arrangement.start.copy()
    best, costs, state = order.copy(), np.array([initial_cost, initial_cost]), random_state(seed)
    hot = temperature = INITIAL_TEMPERATURE * initial_cost
    moves = MOVES_A_CALL
    with Watch(effort) as watch:
        while count > 1 and watch.goes_on():
            cooling = 1.0 - COOLING_RATE
            if spread:
                temperature, cooling = hot * FINAL_TEMPERATURE ** min(watch.spent(), 1.0), 1.0
            started = watch.now()
            temperature = anneal_swaps(
                items, seek, order, positions, start, best, costs, moves, temperature, cooling, state
            )
            watch.made(moves, float(costs[1]))
            if watch.timed:
                wanted = moves * CALL_SECONDS / max(watch.now() - started, 1e-6)
                moves = max(1, min(int(wanted), 2 * moves, 65536))
    return FoundOrder(
        order=tuple(best.tolist()),
        algorithm="scoa" if spread else "scoa-shipped",
        seed=seed,
        initial_cost=initial_cost,
        final_cost=order_cost(problem, best, profile),
        moves=watch.moves,
        seconds=watch.seconds,
        stopped=watch.stopped,
        trace=tuple(watch.trace),
    )


def _prepare(seek: CompiledSeek) -> None:
    """Compile the kernels, or load them, before the clock starts."""
    items = ColumnProblem(np.ones(3), ((0, 2), (1, 2)), np.ones(2)).items()
    order = np.arange(3, dtype=np.int32)
    arrangement = new_arrangement(items, order)
    cost = rebuild(items, seek, arrangement)
    positions, start, costs = arrangement.positions, arrangement.start, np.array([cost, cost])
    anneal_swaps(items, seek, order, positions, start, order.copy(), costs, 1, 1.0, 1.0, random_state(0))

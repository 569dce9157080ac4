"""The searches for a column order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.orders import ORDERS
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.randomness import random_state
from skipstone.layout.columns.scoa_kernels import swap, swap_delta
from skipstone.layout.columns.search import Effort, Progress
from skipstone.layout.columns.seek import PowerSeek, SeekProfile
from skipstone.layout.columns.sweep_kernels import choose, new_arrangement, new_scratch, price_block, rebuild
from tests.layout.columns.worlds import PROFILES, plain_cost, problems

SEARCHES = sorted(set(ORDERS) - {"default", "naive"})


def scattered(topics: int = 6, each: int = 8, seed: int = 3) -> ColumnProblem:
    """A table whose topics are scattered over the schema, with queries that read one topic or two."""
    rng = np.random.default_rng(seed)
    shelf = rng.permutation(topics * each)
    reads = set()
    for topic in range(topics):
        columns = shelf[topic * each : (topic + 1) * each]
        for _ in range(5):
            extra = shelf[rng.integers(0, topics * each, 2)]
            chosen = {*rng.choice(columns, 5, replace=False).tolist(), *extra.tolist()}
            reads.add(tuple(sorted(chosen)))
    ordered = tuple(sorted(reads))
    return ColumnProblem(rng.lognormal(8, 2, topics * each), ordered, rng.integers(1, 9, len(ordered)).astype(float))


@settings(deadline=None)
@given(problems(), st.sampled_from(PROFILES), st.data())
def test_a_sweep_prices_every_slot_and_direction_as_the_definitions_do(
    problem: ColumnProblem, profile: SeekProfile, data: st.DataObject
) -> None:
    count = len(problem.sizes)
    order = data.draw(st.permutations(range(count)))
    length = data.draw(st.integers(1, count))
    begin = data.draw(st.integers(0, count - length))
    items, seek = problem.items(), profile.compiled()
    arrangement, scratch = new_arrangement(items, np.array(order, np.int32)), new_scratch(items)
    here = rebuild(items, seek, arrangement)
    assert here == pytest.approx(plain_cost(problem, order, profile))
    price_block(items, seek, arrangement, scratch, begin, length)
    block, rest = order[begin : begin + length], order[:begin] + order[begin + length :]
    for slot in range(count - length + 1):
        for prices, put in ((scratch.forward, block), (scratch.backward, block[::-1])):
            if length == 1 and prices is scratch.backward:
                continue
            expected = plain_cost(problem, rest[:slot] + put + rest[slot:], profile)
            assert here + prices[slot] - scratch.forward[begin] == pytest.approx(expected, abs=1e-6)


@settings(deadline=None)
@given(problems(), st.sampled_from(PROFILES), st.data())
def test_a_swap_is_priced_as_the_definitions_do_and_keeps_its_books(
    problem: ColumnProblem, profile: SeekProfile, data: st.DataObject
) -> None:
    count = len(problem.sizes)
    order = np.array(data.draw(st.permutations(range(count))), np.int32)
    items, seek = problem.items(), profile.compiled()
    arrangement = new_arrangement(items, order)
    cost = rebuild(items, seek, arrangement)
    positions, start = arrangement.positions.copy(), arrangement.start.copy()
    for _ in range(4):
        x, y = sorted(data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True)))
        cost += swap_delta(items, seek, positions, start, x, y)
        swap(items, order, positions, start, x, y)
        assert cost == pytest.approx(plain_cost(problem, order.tolist(), profile), abs=1e-6)
    arrangement.order[:] = order
    rebuild(items, seek, arrangement)
    assert positions.tolist() == arrangement.positions.tolist()


@pytest.mark.parametrize("name", list(ORDERS))
@settings(max_examples=15, deadline=None)
@given(problem=problems(), profile=st.sampled_from(PROFILES))
def test_every_order_holds_every_column_once_at_the_price_it_says(
    name: str, problem: ColumnProblem, profile: SeekProfile
) -> None:
    found = ORDERS[name](problem, profile, Effort(moves=300), 5)
    assert sorted(found.order) == list(range(len(problem.sizes)))
    assert found.algorithm == name
    assert found.final_cost == pytest.approx(plain_cost(problem, found.order, profile))
    if name != "naive":
        assert found.final_cost <= found.initial_cost + 1e-9, "A search never leaves a table worse than it was"


@pytest.mark.parametrize("name", SEARCHES)
def test_a_seed_and_a_number_of_moves_give_one_answer(name: str) -> None:
    problem = scattered()
    one, two = (ORDERS[name](problem, PowerSeek(), Effort(moves=1500), 11) for _ in range(2))
    assert one.order == two.order
    assert one.moves == two.moves


def test_sweep_finds_the_best_of_all_orders_of_a_small_table() -> None:
    rng = np.random.default_rng(8)
    reads = ((0, 3, 5), (1, 4), (0, 2, 4), (2, 5, 6), (1, 3, 6))
    problem = ColumnProblem(rng.lognormal(9, 2, 7), reads, rng.integers(1, 5, 5).astype(float))
    best = min(order_cost(problem, order, PowerSeek()) for order in itertools.permutations(range(7)))
    found = ORDERS["sweep"](problem, PowerSeek(), Effort(moves=3000), 1)
    assert found.final_cost == pytest.approx(best)


def test_sweep_beats_the_others_at_equal_moves() -> None:
    problem = scattered()
    costs = {name: ORDERS[name](problem, PowerSeek(), Effort(moves=3000), 2).final_cost for name in SEARCHES}
    assert min(costs, key=costs.__getitem__) == "sweep", costs


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_that_is_stopped_returns_its_best(name: str) -> None:
    asked = itertools.count()
    found = ORDERS[name](scattered(), PowerSeek(), Effort(seconds=600.0, stop=lambda: next(asked) >= 8), 1)
    assert found.stopped
    assert sorted(found.order) == list(range(48))
    assert found.final_cost <= found.initial_cost


def test_an_interrupt_from_the_keyboard_ends_the_search_with_its_best() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.moves > 500:
            raise KeyboardInterrupt

    found = ORDERS["sweep"](scattered(), PowerSeek(), Effort(seconds=600.0, progress=interrupt), 1)
    assert found.stopped
    assert found.final_cost < found.initial_cost


def test_progress_never_gets_worse_and_ends_at_the_answer() -> None:
    seen: list[Progress] = []
    found = ORDERS["sweep"](scattered(), PowerSeek(), Effort(moves=2000, progress=seen.append), 1)
    costs = [progress.best_cost for progress in found.trace]
    assert costs == sorted(costs, reverse=True)
    assert seen[-1].moves == found.moves
    assert costs[-1] == pytest.approx(found.final_cost)


def test_a_budget_of_time_is_kept() -> None:
    seen: list[Progress] = []
    ORDERS["sweep"](scattered(), PowerSeek(), Effort(seconds=0.3, progress=seen.append), 1)
    assert len(seen) > 2
    assert all(progress.seconds < 0.3 for progress in seen[:-1]), "Nothing begins once the time is over"


def test_effort_that_finds_nothing_is_refused() -> None:
    for seconds, moves in ((0.0, None), (-1.0, None), (float("nan"), None), (None, 0)):
        with pytest.raises(InvalidInput, match="finds nothing; give a number above 0"):
            Effort(seconds=seconds, moves=moves)


def test_naive_puts_the_most_read_columns_in_front() -> None:
    problem = ColumnProblem(np.ones(4), ((1, 2), (2, 3), (3,)), np.array([1.0, 1.0, 5.0]))
    assert ORDERS["naive"](problem, PowerSeek(), Effort(), 0).order == (3, 2, 1, 0)


def test_a_cold_heat_bath_takes_the_best_and_stays_where_it_ties() -> None:
    scratch = new_scratch(ColumnProblem(np.ones(4), ((0, 1, 2, 3),), np.ones(1)).items())
    scratch.forward[:4] = [3.0, 1.0, 1.0, 2.0]
    scratch.backward[:4] = [1.0, 1.0, 1.0, 1.0]
    state = random_state(1)
    assert choose(scratch, 4, True, 2, 0.0, state) == 4
    assert choose(scratch, 4, True, 3, 0.0, state) == 2
    picks = {choose(scratch, 4, True, 3, 1.0, state) for _ in range(400)}
    assert picks == set(range(8)), "A warm one reaches every slot in both directions"


def test_the_swaps_of_scoa_cool_to_a_descent() -> None:
    found = ORDERS["scoa"](scattered(), PowerSeek(), Effort(moves=40_000), 4)
    shipped = ORDERS["scoa-shipped"](scattered(), PowerSeek(), Effort(moves=40_000), 4)
    assert found.final_cost < 0.6 * found.initial_cost
    assert shipped.final_cost < 0.7 * shipped.initial_cost

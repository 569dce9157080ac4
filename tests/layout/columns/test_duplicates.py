"""Columns stored more than once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.layout.columns.copies import CopiedOrder, Pricing
from skipstone.layout.columns.duplicates import FoundDuplicates
from skipstone.layout.columns.duplication import DUPLICATIONS
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.search import Effort, Progress
from skipstone.layout.columns.seek import LinearSeek, ObjectStoreSeek, PowerSeek, SeekProfile, seek_costs
from tests.layout.columns.test_orders import scattered
from tests.layout.columns.worlds import problems

GROWING: tuple[SeekProfile, ...] = (PowerSeek(), LinearSeek(), ObjectStoreSeek(coalesced_bytes=3000.0))


def cost_by_trying_all(problem: ColumnProblem, stored: list[int], profile: SeekProfile) -> float:
    """What the workload costs when each query reads its cheapest combination of copies."""
    start = np.concatenate([[0.0], np.cumsum(problem.sizes[stored])])
    total = 0.0
    for reads, weight in zip(problem.reads, problem.weights, strict=True):
        places = [[p for p, column in enumerate(stored) if column == wanted] for wanted in reads]
        best = np.inf
        for combination in itertools.product(*places):
            read = sorted(combination)
            gaps = np.array([start[b] - start[a + 1] for a, b in itertools.pairwise(read)])
            best = min(best, float(seek_costs(profile, gaps).sum()))
        total += float(weight) * best
    return total


def check_within_headroom(problem: ColumnProblem, found: FoundDuplicates, headroom: float) -> None:
    """Every column is itself once, and the duplicates fit."""
    own = sorted(column for column, original in zip(found.stored, found.original, strict=True) if original)
    assert own == list(range(len(problem.sizes)))
    copies = [column for column, original in zip(found.stored, found.original, strict=True) if not original]
    assert found.duplicate_bytes == pytest.approx(float(problem.sizes[copies].sum()))
    assert found.duplicate_bytes <= headroom * float(problem.sizes.sum()) * (1 + 1e-12)


@settings(deadline=None)
@given(problems(9), st.sampled_from(GROWING), st.data())
def test_new_copies_are_priced_as_what_queries_pay_that_read_them_or_seek_over_them(
    problem: ColumnProblem, profile: SeekProfile, data: st.DataObject
) -> None:
    read = sorted({column for reads in problem.reads for column in reads})
    number = {column: index for index, column in enumerate(read)}
    part = ColumnProblem(
        problem.sizes[read], tuple(tuple(number[c] for c in reads) for reads in problem.reads), problem.weights
    )
    order = data.draw(st.permutations(range(len(read))))
    copied = CopiedOrder.of(part, order, profile.compiled())
    block = data.draw(st.lists(st.integers(0, len(read) - 1), min_size=1, max_size=4, unique=True))
    pricing = Pricing(copied)
    gain, slot = pricing.gain(block)
    totals = pricing.totals[: len(order) + 1].copy()
    assert gain == -totals[slot] == -totals.min()
    for at in range(len(order) + 1):
        stored = [*order[:at], *block, *order[at:]]
        fresh = set(range(at, at + len(block)))
        expected = 0.0
        start = np.concatenate([[0.0], np.cumsum(part.sizes[stored])])
        for reads, weight in zip(part.reads, part.weights, strict=True):
            old = [p for p, column in enumerate(stored) if column in reads and p not in fresh]
            new = [p for p in fresh if stored[p] in reads]
            mixed = [p for p in old if stored[p] not in {stored[n] for n in new}] + new
            costs = []
            for option in (old, mixed):
                gaps = np.array([start[b] - start[a + 1] for a, b in itertools.pairwise(sorted(option))])
                costs.append(float(seek_costs(profile, gaps).sum()))
            expected += float(weight) * min(costs)
        assert copied.cost + totals[at] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", list(DUPLICATIONS))
@settings(max_examples=12, deadline=None)
@given(problem=problems(7), profile=st.sampled_from(GROWING), headroom=st.sampled_from([0.0, 0.01, 0.2, 1.5]))
def test_duplicates_fit_and_cost_what_is_said(
    name: str, problem: ColumnProblem, profile: SeekProfile, headroom: float
) -> None:
    order = list(range(len(problem.sizes)))
    found = DUPLICATIONS[name](problem, order, headroom, profile, Effort(moves=400), 3)
    check_within_headroom(problem, found, headroom)
    assert found.final_cost <= found.initial_cost + 1e-9, "Duplicates never make a workload dearer"
    assert found.final_cost == pytest.approx(cost_by_trying_all(problem, list(found.stored), profile), abs=1e-6)


@pytest.mark.parametrize("name", list(DUPLICATIONS))
def test_a_seed_and_a_number_of_moves_give_one_answer(name: str) -> None:
    problem = scattered()
    order = list(range(48))
    one, two = (DUPLICATIONS[name](problem, order, 0.1, PowerSeek(), Effort(moves=9000), 5) for _ in range(2))
    assert one.stored == two.stored
    assert one.final_cost < one.initial_cost


@pytest.mark.parametrize("name", list(DUPLICATIONS))
def test_a_search_that_is_stopped_returns_its_best(name: str) -> None:
    asked = itertools.count()
    problem = scattered()
    effort = Effort(seconds=600.0, stop=lambda: next(asked) >= 150)
    found = DUPLICATIONS[name](problem, list(range(48)), 0.1, PowerSeek(), effort, 5)
    assert found.stopped
    check_within_headroom(problem, found, 0.1)


@pytest.mark.parametrize("name", list(DUPLICATIONS))
def test_an_interrupt_from_the_keyboard_ends_the_search_with_its_best(name: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.moves > 4000:
            raise KeyboardInterrupt

    problem = scattered()
    effort = Effort(seconds=600.0, progress=interrupt)
    found = DUPLICATIONS[name](problem, list(range(48)), 0.1, PowerSeek(), effort, 5)
    assert found.stopped
    assert found.final_cost < found.initial_cost
    check_within_headroom(problem, found, 0.1)


def test_refill_beats_the_procedure_of_the_paper() -> None:
    problem = scattered()
    order = list(range(48))
    costs = {
        name: search(problem, order, 0.1, PowerSeek(), Effort(moves=30_000), 5).final_cost
        for name, search in DUPLICATIONS.items()
    }
    assert costs["refill"] < costs["insertion"], costs


def test_a_column_larger_than_the_headroom_is_passed_over() -> None:
    problem = ColumnProblem(np.array([1e6, 10.0, 1e6, 1e6]), ((0, 1), (1, 2), (1, 3)), np.ones(3))
    for search in DUPLICATIONS.values():
        found = search(problem, [0, 1, 2, 3], 1e-5, PowerSeek(), Effort(moves=3000), 1)
        check_within_headroom(problem, found, 1e-5)
        assert found.duplicate_bytes in (0.0, 10.0, 20.0, 30.0)


@pytest.mark.parametrize("headroom", [-0.1, float("nan"), float("inf")])
def test_what_is_no_headroom_is_refused(headroom: float) -> None:
    for search in DUPLICATIONS.values():
        with pytest.raises(InvalidInput, match=r"is not a share of the table's bytes; 0\.05 allows 5 percent more"):
            search(scattered(), list(range(48)), headroom, PowerSeek(), Effort(moves=1), 1)

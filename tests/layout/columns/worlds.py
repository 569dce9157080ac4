"""Small wide tables for tests, and the slow, plain statement of the cost model to hold the fast ones against."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.seek import (
    LinearSeek,
    ObjectStoreSeek,
    PiecewiseSeek,
    PowerSeek,
    SeekProfile,
    seek_costs,
)

PROFILES: tuple[SeekProfile, ...] = (
    PowerSeek(),
    LinearSeek(),
    ObjectStoreSeek(coalesced_bytes=3000.0),
    PiecewiseSeek(((0.0, 1.0), (500.0, 2.5), (4000.0, 2.0), (20_000.0, 9.0))),
)


def problems(largest: int = 14) -> st.SearchStrategy[ColumnProblem]:
    """Tables of a few columns, with queries that read one column or all, in common or alone."""

    @st.composite
    def build(draw: st.DrawFn) -> ColumnProblem:
        count = draw(st.integers(2, largest))
        sizes = draw(st.lists(st.sampled_from([1.0, 48.0, 333.3, 4096.0, 1e6, 3.1e7]), min_size=count, max_size=count))
        reads = draw(
            st.lists(
                st.sets(st.integers(0, count - 1), min_size=1).map(lambda chosen: tuple(sorted(chosen))),
                min_size=1,
                max_size=8,
                unique=True,
            )
        )
        weights = draw(st.lists(st.sampled_from([0.5, 1.0, 17.0]), min_size=len(reads), max_size=len(reads)))
        return ColumnProblem(np.array(sizes), tuple(reads), np.array(weights))

    return build()


def plain_cost(problem: ColumnProblem, order: Sequence[int], profile: SeekProfile) -> float:
    """Definitions 1-6 word by word."""
    begin: dict[int, float] = {}
    offset = 0.0
    for column in order:
        begin[column] = offset
        offset += float(problem.sizes[column])
    total = 0.0
    for reads, weight in zip(problem.reads, problem.weights, strict=True):
        ordered = sorted(reads, key=lambda column: begin[column])
        place = {column: position for position, column in enumerate(order)}
        for left, right in itertools.pairwise(ordered):
            if place[right] == place[left] + 1:
                continue
            distance = abs(begin[right] - (begin[left] + float(problem.sizes[left])))
            total += float(weight) * float(seek_costs(profile, np.array([distance]))[0])
    return total

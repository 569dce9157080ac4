"""What every clustering's router must do, whichever it is."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import struct

import numpy as np
import pyarrow as pa
import pytest

from skipstone.layout.clustering.routing import ClusteringProblem
from skipstone.layout.scheme import ClusteringSpec
from tests.layout.clustering.worlds import ALL, bits_of, blocks_of, called, fitted, random_problem, routed
from tests.relayout.worlds import SCHEMA

each = pytest.mark.parametrize("spec", ALL, ids=called)

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]


def unseen_rows() -> pa.Table:
    """Values below, between and above all that the worlds' samples have, of every type, and none at all."""
    values: dict[str, list[object]] = {
        "n": [-(2**31), 3, 2**31 - 1, None],
        "f": [-1e308, 0.75, OTHER_NAN, None],
        "s": ["", "aé", "\U0010ffff" * 70, None],
        "d": [datetime.date(1, 1, 1), datetime.date(1994, 2, 17), datetime.date(9999, 12, 31), None],
        "m": [decimal.Decimal("-9999999.99"), decimal.Decimal("0.5"), decimal.Decimal("9999999.99"), None],
        "Flag": [True, False, True, None],
        "k.v": [-(2**63), 2, 2**63 - 1, None],
        "l": [[9], [], [None], None],
    }
    return pa.table(values, schema=SCHEMA)


@each
def test_the_place_of_a_row_does_not_depend_on_its_batch(spec: ClusteringSpec) -> None:
    table, problem = random_problem(1)
    router = fitted(spec, table.slice(0, 150), problem)
    whole, bits = routed(router, table, problem), bits_of(table, problem)
    chance = np.random.default_rng(0)
    start = 0
    while start < table.num_rows:
        rows = int(chance.integers(1, 60))
        part = table.slice(start, rows)
        routing = router.route(part.combine_chunks().to_batches()[0], bits[start : start + rows])
        assert routing.group.tolist() == whole.group[start : start + rows].tolist()
        assert routing.order.tolist() == whole.order[start : start + rows].tolist()
        start += rows


@each
def test_a_router_that_was_sent_to_another_process_routes_alike(spec: ClusteringSpec) -> None:
    table, problem = random_problem(2)
    router = fitted(spec, table.slice(0, 150), problem)
    sent = pickle.loads(pickle.dumps(router))
    here, there = routed(router, table, problem), routed(sent, table, problem)
    assert (here.group == there.group).all()
    assert (here.order == there.order).all()
    assert (sent.groups, sent.columns, sent.used) == (router.groups, router.columns, router.used)


@each
def test_fitting_twice_gives_the_same(spec: ClusteringSpec) -> None:
    table, problem = random_problem(3)
    first, second = (routed(fitted(spec, table, problem), table, problem) for _ in range(2))
    assert (first.group == second.group).all()
    assert (first.order == second.order).all()


@each
@pytest.mark.parametrize("seed", [4, 5])
def test_every_row_has_one_group_also_rows_that_the_sample_did_not_have(spec: ClusteringSpec, seed: int) -> None:
    table, problem = random_problem(seed)
    router = fitted(spec, table.slice(0, 100), problem)
    for rows in (table, unseen_rows()):
        routing = routed(router, rows, problem)
        assert routing.group.dtype == np.int32
        assert routing.order.dtype == np.uint64
        assert len(routing.group) == len(routing.order) == rows.num_rows
        assert ((routing.group >= 0) & (routing.group < router.groups)).all()


@each
def test_blocks_are_as_large_as_asked(spec: ClusteringSpec) -> None:
    table, problem = random_problem(6, rows=900, block_rows=30)
    block = blocks_of(routed(fitted(spec, table, problem), table, problem), problem)
    assert np.bincount(block).min() >= problem.block_rows


@each
def test_zeros_of_both_signs_and_all_nans_stand_together(spec: ClusteringSpec) -> None:
    table, problem = random_problem(7)
    router = fitted(spec, table, problem)
    row = table.slice(0, 1).to_pylist()[0]
    rows = pa.Table.from_pylist([row | {"f": value} for value in (0.0, -0.0, math.nan, OTHER_NAN)], schema=SCHEMA)
    routing = routed(router, rows, problem)
    places = list(zip(routing.group.tolist(), routing.order.tolist(), strict=True))
    assert places[0] == places[1]
    assert places[2] == places[3]


@each
def test_only_the_columns_that_a_router_names_are_looked_at(spec: ClusteringSpec) -> None:
    table, problem = random_problem(8)
    router = fitted(spec, table, problem)
    assert list(router.columns) == sorted(set(router.columns))
    whole, bits = routed(router, table, problem), bits_of(table, problem)
    batch = table.combine_chunks().to_batches()[0].select(list(router.columns))
    narrow = router.route(batch, bits)
    assert (narrow.group == whole.group).all()
    assert (narrow.order == whole.order).all()


@each
def test_filters_that_a_router_proposes_are_new_and_each_named_once(spec: ClusteringSpec) -> None:
    table, problem = random_problem(9)
    router = fitted(spec, table, problem)
    assert len(set(router.used)) == len(router.used)
    assert set(router.used).isdisjoint(feature.filter for feature in problem.features)


@each
def test_an_empty_sample_teaches_nothing_and_breaks_nothing(spec: ClusteringSpec) -> None:
    table, problem = random_problem(10)
    routing = routed(fitted(spec, table.slice(0, 0), problem), table, problem)
    assert set(routing.group.tolist()) == {0}


@each
def test_neither_features_nor_queries_are_needed(spec: ClusteringSpec) -> None:
    table, _ = random_problem(11)
    problem = ClusteringProblem((), (), rows=table.num_rows, block_rows=20)
    router = fitted(spec, table, problem)
    assert set(routed(router, table, problem).group.tolist()) == {0}
    assert router.used == ()


@each
def test_no_rows_go_nowhere(spec: ClusteringSpec) -> None:
    table, problem = random_problem(12)
    routing = routed(fitted(spec, table, problem), table.slice(0, 0), problem)
    assert (routing.group.tolist(), routing.order.tolist()) == ([], [])

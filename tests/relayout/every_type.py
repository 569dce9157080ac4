"""Worlds for the proof that no layout and nothing that skips changes an answer: every type, every clustering.

A world has rows of edge values of every type that Spark and Parquet share, filters of every kind over them, and one
table for each clustering. Part of each table is laid out in several chunks, part of it is raw.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from skipstone.catalog.values import Change
from skipstone.errors import CannotEvaluate, InvalidInput
from skipstone.lake import Table, open_lake
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.evaluation import Evaluator
from skipstone.predicate.expression import Constant
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    NullTest,
    Operator,
    Predicate,
)
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from skipstone.relayout.executor import LocalExecutor, Silent
from skipstone.relayout.rewriting import Design, rewrite_chunks
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.query import Query
from tests.predicate.strategies import EDGES, Generator

ROWS = 150
LAID_OUT_ROWS = 120
CHUNK_ROWS = 60
BLOCK_ROWS = 6
FEATURES = 8

CLUSTERINGS: Mapping[str, ClusteringSpec] = {
    "none": ClusteringSpec("none"),
    "sort": ClusteringSpec("sort"),
    "sort_by_double": ClusteringSpec("sort", (("column", "double"),)),
    "range": ClusteringSpec("range", (("over", "day:month, text, whole:3"),)),
    "zorder": ClusteringSpec("zorder"),
    "zorder_over": ClusteringSpec("zorder", (("over", "double, text, moment"),)),
    "hilbert": ClusteringSpec("hilbert", (("dimensions", 3),)),
    "ward": ClusteringSpec("ward"),
    "ward_queries": ClusteringSpec("ward-queries"),
    "qdtree": ClusteringSpec("qdtree"),
    "qdtree_mixing": ClusteringSpec("qdtree", (("mixing", 0.5),)),
}
"""A table for each clustering, by the name of the table; beside them comes `groups`, of several layouts."""

GROUPS = "groups"
TABLES = (*CLUSTERINGS, GROUPS)


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Rows with an `id`, what is asked of them, and the features that tables are laid out by."""

    seed: int
    rows: pa.Table
    filters: tuple[Conjunction, ...]
    features: tuple[Conjunction, ...]

    @classmethod
    def of(cls, seed: int, filters: int, fits: Callable[[Conjunction], bool] = lambda _: True) -> World:
        """Draw a world; `fits` says of which filters whoever judges the answers has an opinion."""
        generator = Generator(random.Random(seed))
        rows = generator.table(ROWS).append_column("id", pa.array(range(ROWS), pa.int64()))
        drawn: dict[Conjunction, None] = {}
        refused = 0
        while len(drawn) < filters:
            features = list(drawn)[:FEATURES]
            filter_ = parse_filter(sql(_any_filter(generator, rows, features)), rows.schema)
            asks = bool(filter_.predicates) and all(one.literals for one in filter_)
            if asks and fits(filter_) and can_evaluate(filter_, rows):
                drawn[filter_] = None
            else:
                refused += 1
        assert refused < 2 * filters, "most of what is drawn should be judged"
        return cls(seed, rows, tuple(drawn), tuple(list(drawn)[:FEATURES]))

    def table(self, name: str, directory: Path) -> Table:
        """Write one of the tables."""
        lake = open_lake(directory)
        table = lake.create(name, self.rows.slice(0, LAID_OUT_ROWS), chunk_rows=CHUNK_ROWS, block_rows=BLOCK_ROWS)
        snapshot = table.snapshot()
        names = tuple(snapshot.schema.names)
        chance = random.Random(f"{self.seed} {name}")
        scheme = _of_groups(chance, names, self.features) if name == GROUPS else _whole(names, self.features, name)
        queries = tuple(Query(names, filter_) for filter_ in self.filters[: len(self.filters) // 2])
        tracked = tracked_expressions(snapshot.schema, [query.filter for query in queries])
        design = Design(scheme, queries, block_rows=BLOCK_ROWS, tracked=tracked)
        chunks = rewrite_chunks(
            snapshot, snapshot.chunks, design, table=table.location, executor=LocalExecutor(1), progress=Silent()
        )
        table.catalog.commit(Change("optimize", replaced=chunks), base=snapshot.version)
        table.append(self.rows.slice(LAID_OUT_ROWS), block_rows=BLOCK_ROWS)
        return table

    def expected(self, ids: Sequence[int], columns: Sequence[str]) -> Counter[str]:
        """The rows with these ids, as `bag` gives rows."""
        return bag(self.rows.select(list(columns)).take(pa.array(ids, pa.int64())))


def _any_filter(generator: Generator, rows: pa.Table, features: Sequence[Conjunction]) -> Conjunction:
    """Anything at all; what some row has; a feature and something more; or what is nearly a feature.

    The last two are what blocks are skipped by, or must not be skipped by, for a feature that is implied or is not.
    """
    if len(features) < FEATURES:
        return generator.conjunction() if generator.chance(40) else Conjunction((_had(generator, rows),))
    kind = generator.random.random()
    if kind < 0.25:
        return generator.conjunction()
    if kind < 0.45:
        return Conjunction(tuple(_had(generator, rows) for _ in range(generator.choose((1, 1, 2)))))
    feature = generator.choose(features)
    if kind < 0.65:
        return Conjunction((*feature.predicates, _had(generator, rows)))
    return _near(generator, feature, rows)


def _near(generator: Generator, feature: Conjunction, rows: pa.Table) -> Conjunction:
    """A feature in which one predicate is a little different, be it weaker, stronger, or neither."""
    predicates = list(feature.predicates)
    place = generator.random.randrange(len(predicates))
    literals = list(predicates[place].literals)
    changed = generator.random.randrange(len(literals))
    if len(literals) > 1 and generator.chance(30):
        del literals[changed]
    elif generator.chance(20):
        literals += _had(generator, rows).literals
    else:
        literals[changed] = _changed(generator, literals[changed])
    predicates[place] = Predicate(tuple(literals))
    return Conjunction(tuple(predicates))


def _changed(generator: Generator, literal: Literal) -> Literal:
    """The same question with another constant, another operator, or other values."""
    match literal:
        case Comparison(right=Constant(type=type_)) if type_ in EDGES and generator.chance(60):
            return replace(literal, right=generator.constant(type_))
        case Comparison():
            return replace(literal, operator=generator.choose(list(Operator)))
        case InSet(values=values) if len(values) > 1 and generator.chance(60):
            return replace(literal, values=values[1:])
        case InSet() | Match() | NullTest():
            return replace(literal, negated=not literal.negated)
        case _:
            return literal


def _had(generator: Generator, rows: pa.Table) -> Predicate:
    """Compare a column with a value that it has somewhere, or with several."""
    while True:
        type_ = generator.choose(list(EDGES))
        column = generator.column(type_)
        values = [value for value in rows[column.name].to_pylist() if value is not None]
        if values and generator.chance(20):
            several = tuple(dict.fromkeys(Constant(generator.choose(values), type_) for _ in range(4)))
            return Predicate((InSet(column, several),))
        if values:
            operator = generator.choose([Operator.EQUAL, Operator.EQUAL, *Operator])
            return Predicate((Comparison(operator, column, Constant(generator.choose(values), type_)),))


def can_evaluate(filter_: Conjunction, rows: pa.Table) -> bool:
    """Whether Arrow can tell for all rows; Spark then does not fail on any."""
    try:
        Evaluator(filter_, time_zone="UTC").evaluate(rows)
    except (CannotEvaluate, InvalidInput):
        return False
    return True


def _whole(names: tuple[str, ...], features: tuple[Conjunction, ...], name: str) -> Scheme:
    layout = Layout(names, tuple(range(len(features))), frozenset(names), CLUSTERINGS[name])
    return Scheme((layout,), features)


def _of_groups(chance: random.Random, names: Sequence[str], features: tuple[Conjunction, ...]) -> Scheme:
    """Three layouts that share the columns out, some columns being in two of them for the rows of their features."""
    home = {name: chance.randrange(3) for name in names}
    layouts = []
    for number in range(3):
        masters = [name for name in names if home[name] == number]
        local = tuple(sorted(chance.sample(range(len(features)), 3)))
        replicas = [name for name in names if home[name] != number and chance.random() < 0.2]
        if masters:
            spec = chance.choice(list(CLUSTERINGS.values()))
            columns = {"day", "text", "whole", "double", "moment"} & {*masters, *replicas}
            if spec.parameters and len(columns) < 5:  # its parameters name columns that this layout has not
                spec = ClusteringSpec(spec.name if spec.name != "range" else "qdtree")
            layouts.append(Layout((*masters, *replicas), local, frozenset(masters), spec))
    return Scheme(tuple(layouts), features)


def bag(rows: pa.Table) -> Counter[str]:
    """Rows as a bag; NaN equals NaN, -0.0 equals 0.0, and NULL is itself."""
    columns = [[repr(_plain(value)) for value in column.to_pylist()] for column in rows.columns]
    return Counter(map(" | ".join, zip(*columns, strict=True)))


def _plain(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value

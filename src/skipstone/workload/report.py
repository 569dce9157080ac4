"""What a workload is like: how its filters recur, which columns it uses, and what features come of it; as values.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", PhD thesis, UC Berkeley, 2017, section 3.2.1 and
figure 3.2: laying data out for past queries helps future ones if a few filters serve many queries (commonality) and if
the filters of tomorrow are those of yesterday (stability). Both curves are computed here as the text describes them.

Shares are of weight, so a statement with `count: 50` in a log counts fifty times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from skipstone.predicate.expression import Constant
from skipstone.predicate.literal import Comparison, InSet, Literal, Match, NullTest, Opaque, Operator, Predicate
from skipstone.predicate.printing import sql
from skipstone.workload.choosing import Choice, MiningSettings, choose_settings
from skipstone.workload.mining import Mining, is_minable, mine_features
from skipstone.workload.query import Query
from skipstone.workload.reading import Arrivals, Problem, Template, Workload
from skipstone.workload.subsumption import subsumption

__all__ = [
    "ColumnUse",
    "Curve",
    "FeatureUse",
    "KindUse",
    "TableReport",
    "WorkloadReport",
    "commonality",
    "kind_of",
    "stability",
    "workload_report",
]

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Where curves are given."""

WINDOWS = 5
"""Disjoint stretches of time over which stability is averaged, as for figure 3.2(b)."""

FEWEST_IN_WINDOW = 50
"""A log too short for so many requests in each stretch is cut into fewer."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (x, y), both shares between 0 and 1, with x ascending."""

    points: tuple[tuple[float, float], ...]

    def at(self, share: float) -> float:
        """The height at the last point that is not beyond a share."""
        return max((y for x, y in self.points if x <= share + 1e-12), default=0.0)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """The weight of the requests that read a column, and of those that filter on it."""

    column: str
    read: float
    filtered: float


@dataclass(frozen=True, slots=True)
class KindUse:
    """A kind of predicate: how many different ones there are, and the weight of the requests that have one."""

    kind: str
    different: int
    weight: float


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """A feature as SQL: the weight of the requests it subsumes, what it adds to those before it, and the columns read.

    `additional` is the paper's I(F); `covered` is the share of all requests that this feature or one before it in the
    list subsumes.
    """

    filter: str
    weight: float
    additional: float
    covered: float
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableReport:
    """What a workload asks of one table.

    `requests`, `with_filter` and `minable` are weights: of all, of those with a filter that was understood, and of
    those with a predicate that may become part of a feature (dates and excluded columns do not). `stability` is the
    paper's curve, in which a request is known once any predicate of it has been seen; `stability_of_whole_filters`
    asks that all of them have.
    """

    table: str
    requests: float
    different: int
    with_filter: float
    minable: float
    in_order_of_time: bool
    commonality: Curve
    stability: Curve
    stability_of_whole_filters: Curve
    columns: tuple[ColumnUse, ...]
    kinds: tuple[KindUse, ...]
    unused_conditions: Mapping[str, float]
    settings: MiningSettings
    choice: Choice | None
    features: tuple[FeatureUse, ...]
    predicates: int
    frequent_predicates: int

    @property
    def subsumed(self) -> float:
        """The share of all requests that some feature subsumes."""
        return self.features[-1].covered if self.features else 0.0


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """What was read, what of it could not be understood and why, and what it asks of each table."""

    statements: float
    queries: float
    not_queries: Mapping[str, float]
    problem_count: float
    problems: tuple[Problem, ...]
    other_tables: Mapping[str, float]
    templates: tuple[Template, ...]
    tables: tuple[TableReport, ...] = field(default=())


def workload_report(
    work: Workload,
    settings: MiningSettings | None = None,
    *,
    tables: Sequence[str] | None = None,
    choose: bool = False,
) -> WorkloadReport:
    """Report on a workload, for all tables that it asks anything of or for those named.

    With `choose`, the minimum support and the number of features of each table are chosen by cross-validation.

    >>> import pyarrow as pa
    >>> work = Workload.of(["SELECT a FROM t WHERE b = 1", "SELECT a FROM t", "SELECT 1 +"],
    ...                    {"t": pa.schema({"a": pa.int64(), "b": pa.int64()})})
    >>> report = workload_report(work)
    >>> report.statements, report.problem_count, report.tables[0].with_filter, report.tables[0].subsumed
    (3.0, 1.0, 1.0, 0.5)
    """
    wanted = [name for name in work.tables if work.queries(name)] if tables is None else list(tables)
    settings = settings or MiningSettings()
    unread = work.problem_count + sum(work.not_queries.values())
    return WorkloadReport(
        work.statements,
        work.statements - unread,
        work.not_queries,
        work.problem_count,
        work.problems,
        work.others,
        work.templates,
        tuple(_table_report(work, name, settings, choose=choose) for name in wanted),
    )


def _table_report(work: Workload, table: str, settings: MiningSettings, *, choose: bool) -> TableReport:
    queries = work.queries(table)
    arrivals = work.arrivals(table)
    choice = choose_settings(queries, arrivals, settings) if choose else None
    settings = choice.settings if choice else settings
    excluded = frozenset(settings.exclude)
    mining = mine_features(
        queries,
        min_support=settings.min_support,
        max_features=settings.max_features,
        exclude=settings.exclude,
        exclude_dates=settings.exclude_dates,
    )
    known = list(dict.fromkeys(one for query in queries for one in query.filter))
    minable = {one for one in known if is_minable(one, excluded, settings.exclude_dates)}
    return TableReport(
        table=table,
        requests=sum(query.weight for query in queries),
        different=len(queries),
        with_filter=sum(query.weight for query in queries if query.filter.predicates),
        minable=sum(query.weight for query in queries if not minable.isdisjoint(query.filter.predicates)),
        in_order_of_time=arrivals.timestamp is not None,
        commonality=commonality(queries),
        stability=stability(queries, arrivals),
        stability_of_whole_filters=stability(queries, arrivals, whole_filters=True),
        columns=_columns(queries),
        kinds=_kinds(queries),
        unused_conditions=work.unused_conditions(table),
        settings=settings,
        choice=choice,
        features=_features(mining, queries),
        predicates=mining.predicates,
        frequent_predicates=mining.frequent_predicates,
    )


def commonality(queries: Sequence[Query]) -> Curve:
    """Figure 3.2(a): the most frequent x of the different predicates are used by y of the requests.

    A request uses some predicates if it has at least one of them. Requests without a filter are left out.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.parsing import parse_filter
    >>> schema = pa.schema({"a": pa.int64()})
    >>> filters = ["a = 1", "a = 1", "a = 1", "a = 1", "a = 1", "a = 2", "a = 3", "a = 4"]
    >>> commonality([Query(("a",), parse_filter(text, schema)) for text in filters]).at(0.5)
    0.75
    """
    filtering = [query for query in queries if query.filter.predicates]
    frequency: dict[Predicate, float] = {}
    for query in filtering:
        for predicate in query.filter:
            frequency[predicate] = frequency.get(predicate, 0.0) + query.weight
    ordered = sorted(frequency, key=lambda predicate: (-frequency[predicate], sql(predicate)))
    rank = {predicate: number for number, predicate in enumerate(ordered)}
    first = np.array([min(rank[predicate] for predicate in query.filter) for query in filtering], dtype=np.int64)
    weights = np.array([query.weight for query in filtering])
    return _curve(first, weights, len(ordered))


def stability(queries: Sequence[Query], arrivals: Arrivals, *, whole_filters: bool = False) -> Curve:
    """Figure 3.2(b): the predicates in the first x of the requests are used by y of all; without recurrence, y = x.

    Averaged over disjoint windows of time, each with its own beginning. With `whole_filters`, a request counts only
    once all of its predicates have been seen.

    Departs from the paper: the paper does not say whether one known predicate of a query is enough. As for
    commonality, it is here; `whole_filters` is the stricter reading.
    """
    numbers: dict[Predicate, int] = {}
    predicates = [
        np.array([numbers.setdefault(one, len(numbers)) for one in query.filter], dtype=np.int64) for query in queries
    ]
    filtering = np.array([bool(one.size) for one in predicates], dtype=np.bool_)
    chosen = filtering[arrivals.query] if len(queries) else np.zeros(0, dtype=np.bool_)
    order, weight = arrivals.query[chosen].astype(np.int64), arrivals.weight[chosen]
    count = min(WINDOWS, max(1, order.size // FEWEST_IN_WINDOW))
    windows = [part for part in np.array_split(np.arange(order.size), count) if part.size]
    curves = [_window(order[part], weight[part], predicates, len(numbers), whole_filters) for part in windows]
    heights = np.mean([[y for _, y in curve.points] for curve in curves], axis=0) if curves else np.zeros(len(SHARES))
    return Curve(tuple(zip(SHARES, heights.tolist(), strict=True)))


def _window(order: Ints, weight: Floats, predicates: Sequence[Ints], count: int, whole: bool) -> Curve:
    """The curve of one window: when has a request's filter (or some of it) been seen for the first time?"""
    present, arrived_first = np.unique(order, return_index=True)
    seen = np.full(count, order.size, dtype=np.int64)
    for query, place in zip(present.tolist(), arrived_first.tolist(), strict=True):
        np.minimum.at(seen, predicates[query], place)
    known = np.zeros(len(predicates), dtype=np.int64)
    for query in present.tolist():
        places = seen[predicates[query]]
        known[query] = places.max() if whole else places.min()
    return _curve(known[order], weight, order.size)


def _curve(place: Ints, weight: Floats, count: int) -> Curve:
    """The share of weight whose place is among the first x of all places."""
    total = float(weight.sum())
    if not total:
        return Curve(tuple((share, 0.0) for share in SHARES))
    before = np.concatenate([[0.0], np.cumsum(np.bincount(place, weights=weight, minlength=count))])
    return Curve(tuple((share, float(before[int(share * count + 1e-9)]) / total) for share in SHARES))


def _columns(queries: Sequence[Query]) -> tuple[ColumnUse, ...]:
    read: dict[str, float] = {}
    filtered: dict[str, float] = {}
    for query in queries:
        for name in query.columns:
            read[name] = read.get(name, 0.0) + query.weight
        for name in query.filter.columns:
            filtered[name] = filtered.get(name, 0.0) + query.weight
    names = sorted({*read, *filtered}, key=lambda name: (-read.get(name, 0.0), -filtered.get(name, 0.0), name))
    return tuple(ColumnUse(name, read.get(name, 0.0), filtered.get(name, 0.0)) for name in names)


def _kinds(queries: Sequence[Query]) -> tuple[KindUse, ...]:
    different: dict[str, set[Predicate]] = {}
    weight: dict[str, float] = {}
    for query in queries:
        for predicate in query.filter:
            different.setdefault(kind_of(predicate), set()).add(predicate)
        for kind in {kind_of(predicate) for predicate in query.filter}:
            weight[kind] = weight.get(kind, 0.0) + query.weight
    ordered = sorted(weight, key=lambda kind: (-weight[kind], kind))
    return tuple(KindUse(kind, len(different[kind]), weight[kind]) for kind in ordered)


def kind_of(predicate: Predicate) -> str:
    """Name the kind of a predicate for a person.

    >>> import pyarrow as pa
    >>> from skipstone.predicate.parsing import parse_filter
    >>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    >>> [kind_of(one) for one in parse_filter("a < b AND b >= 2 AND (a = 1 OR b = 5)", schema)]
    ['any of several', 'columns compared', 'range']
    """
    if len(predicate.literals) > 1:
        return "any of several"
    return _kind_of_literal(predicate.literals[0]) if predicate.literals else "never"


_COMPARISONS = {
    Operator.EQUAL: "equality",
    Operator.NULL_SAFE_EQUAL: "equality",
    Operator.NOT_EQUAL: "inequality",
    Operator.NULL_SAFE_NOT_EQUAL: "inequality",
}


def _kind_of_literal(literal: Literal) -> str:
    match literal:
        case Comparison(right=Constant()):
            return _COMPARISONS.get(literal.operator, "range")
        case Comparison():
            return "columns compared"
        case InSet():
            return "inequality" if literal.negated else "list"
        case Match():
            return "pattern"
        case NullTest():
            return "null test"
        case Opaque():
            return "carried as text"


def _features(mining: Mining, queries: Sequence[Query]) -> tuple[FeatureUse, ...]:
    features = [mined.feature for mined in mining.features]
    weights = np.array([query.weight for query in queries])
    if not features:
        return ()
    by_then = np.logical_or.accumulate(subsumption(features, queries), axis=0)
    covered = (by_then @ weights) / weights.sum()
    return tuple(
        FeatureUse(
            sql(mined.feature.filter), mined.feature.weight, mined.additional, float(share), mined.feature.columns
        )
        for mined, share in zip(mining.features, covered.tolist(), strict=True)
    )

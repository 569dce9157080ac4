"""GSOP-R against GSOP and against simpler ways to replicate: figures 5.7(a) and 5.8 of the dissertation.

All schemes are designed on one sample. The curve says what queries that no scheme was made for would read, worked out
on other rows by clustering them and skipping blocks as the reader does; some schemes are then really written and read,
so that the curve can be believed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

import skipstone
from bench.experiment import Experiment
from bench.experiments.gsop import Drawing, Written, asked_queries, reading, sampled, write
from bench.experiments.rivals import SMOKE_BLOCKS, Workload
from bench.experiments.sop import narrowed, read_columns
from bench.quiet_duckdb import connect
from bench.report import Claim, Figure, Report, Series, Table, table_of
from bench.skipping import requests_of
from bench.skipstone_layouts import SkipstoneTable, grouped_blocks_for, rows_of
from bench.tpch.data import DENORM, DENORM_COLUMNS
from bench.tpch.queries import queries
from bench.tpch.templates import GSOPR_TEMPLATES
from skipstone.layout.grouping.column_grouping import alike, column_groups
from skipstone.layout.grouping.cost import in_cells
from skipstone.layout.grouping.estimate import BlockEstimate
from skipstone.layout.grouping.fitted_groups import FITS, fit_groups
from skipstone.layout.grouping.local_features import LocalFeatures
from skipstone.layout.grouping.problem import DesignProblem, LayoutDraft, design_problem, scheme_of, with_queries
from skipstone.layout.grouping.rows_read import by_ward
from skipstone.layout.replication.baselines import full_copies, selective_replication
from skipstone.layout.replication.families import general_features
from skipstone.layout.replication.fitted_rows import FittedRows, scheme_costs
from skipstone.layout.replication.gsop_r import SchemeCosts, condensed, find_gsop_r
from skipstone.layout.replication.quick_rows import QuickRows
from skipstone.layout.replication.served_rows import ServedRows
from skipstone.layout.replication.serving import serve_families
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.mining import mine
from skipstone.workload.query import Feature
from skipstone.workload.query import Query as Asked

BLOCKS = 600
SEARCHED = 20_000
JUDGED = 30_000
"""Rows of the samples that schemes are searched on and judged on."""

BUDGETS = (1.1, 1.2, 1.5, 2.0)
SMOKE_BUDGETS = (1.2, 2.0)
SMOKE_SAMPLE = 3_000
SMOKE_TEMPLATES = GSOPR_TEMPLATES[:4]

PAPER_VECTORS = 200
"""Different vectors that the papers' searches cluster at a time: they ask for thousands of layouts."""

FEATURES, SMOKE_FEATURES = 100, 12
WARD = ClusteringSpec("ward")

GSOP, GSOP_FITTED, PAPER, OURS = "GSOP", "GSOP, clusterings chosen", "GSOP-R", "GSOP-R, ours"
SELECTIVE, COPIES = "GSOP-SE", "GSOP-FC"

TO_WRITE = frozenset({(GSOP, 1.0), (PAPER, 1.2), (OURS, 1.2), (OURS, 1.5)})
"""Schemes that are written, by method and budget."""

Key: TypeAlias = tuple[str, float]

TARGETS = ((1.2, 1 / 2), (1.5, 1 / 3))
"""Cells and row ids of GSOP-R over those of GSOP, by storage: what figure 5.7(a) shows at scale factor 100."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A scheme on paper, with the problem it is for, and what finding it took."""

    method: str
    budget: float
    problem: DesignProblem
    layouts: tuple[LayoutDraft, ...]
    specs: tuple[ClusteringSpec, ...]
    seconds: float

    @property
    def key(self) -> Key:
        """What it is told apart by: method and budget."""
        return self.method, self.budget

    @property
    def storage(self) -> float:
        """Equation 5.2."""
        cells = sum(
            len(one.masters) + self.problem.share(one.features) * (len(one.columns) - len(one.masters))
            for one in self.layouts
        )
        return cells / len(self.problem.columns)


def gsopr_workload(seed: int, smoke: bool) -> Workload:
    """Return the workload of section 5.7.1: 100 training and 10 test queries for each of fourteen templates."""
    train, test = (4, 2) if smoke else (100, 10)
    templates = SMOKE_TEMPLATES if smoke else GSOPR_TEMPLATES
    return Workload(
        queries(templates, train, seed=seed, stream="train"),
        queries(templates, test, seed=seed, stream="test"),
    )


class Drawer:
    """Draws the schemes of all methods for one sample of rows."""

    def __init__(self, problem: DesignProblem, ours: ServedRows) -> None:
        self.problem = condensed(problem)
        self.costs = SchemeCosts(self.problem, QuickRows(self.problem, by_ward, PAPER_VECTORS))
        self.ours_rows = ours
        started = time.perf_counter()
        self.groups = self.grouped(self.problem)
        self.grouping_seconds = time.perf_counter() - started

    def grouped(self, problem: DesignProblem) -> tuple[LayoutDraft, ...]:
        """GSOP by the paper, from columns that are read alike."""
        found = column_groups(
            problem,
            exact=QuickRows(problem, by_ward, PAPER_VECTORS),
            estimate=BlockEstimate(problem),
            local=LocalFeatures(problem),
            prices=in_cells(problem),
            start=alike(problem),
        )
        return found.groups

    def gsop(self) -> Drawn:
        """Groups without replicas, clustered as in the paper."""
        return self._drawn(GSOP, 1.0, self.groups, self.grouping_seconds)

    def gsop_fitted(self) -> Drawn:
        """The same groups, each with the clustering that suits it best."""
        started = time.perf_counter()
        expressions = tracked_expressions(self.problem.sample.schema, [one.filter for one in self.problem.queries])
        fitted = fit_groups(self.problem, self.groups, [one.expression for one in expressions], fits=FITS)
        seconds = time.perf_counter() - started + self.grouping_seconds
        drawn = self._drawn(GSOP_FITTED, 1.0, tuple(one.layout for one in fitted), seconds)
        return replace(drawn, specs=tuple(one.clustering for one in fitted))

    def paper(self, budget: float) -> Drawn:
        """Algorithms 1 and 2."""
        started = time.perf_counter()
        found = find_gsop_r(self.costs, budget)
        return self._drawn(PAPER, budget, found.layouts, time.perf_counter() - started)

    def ours(self, budget: float) -> Drawn:
        """From what every family of queries wants."""
        started = time.perf_counter()
        found = serve_families(self.ours_rows, budget)
        seconds = time.perf_counter() - started
        return Drawn(OURS, budget, found.problem, found.designed.layouts, found.specs, seconds)

    def selective(self, budget: float) -> Drawn:
        """Section 5.3.1."""
        started = time.perf_counter()
        found = selective_replication(self.costs, self.groups, budget)
        return self._drawn(SELECTIVE, budget, found.layouts, time.perf_counter() - started)

    def copies(self, copies: int) -> Drawn:
        """Section 5.3.2."""
        started = time.perf_counter()
        quick = QuickRows(self.problem, by_ward, PAPER_VECTORS // 2)
        problem, layouts = full_copies(self.problem, copies, self.grouped, quick)
        seconds = time.perf_counter() - started
        return Drawn(COPIES, float(copies), problem, layouts, (WARD,) * len(layouts), seconds)

    def _drawn(self, method: str, budget: float, layouts: tuple[LayoutDraft, ...], seconds: float) -> Drawn:
        return Drawn(method, budget, self.problem, layouts, (WARD,) * len(layouts), seconds)


class Judge:
    """Says what the test queries would read of a scheme, on rows that it was not designed on."""

    def __init__(self, rows: pa.Table, test: Sequence[Asked]) -> None:
        self._rows = rows
        self._test = test
        self._counters: dict[int, tuple[DesignProblem, FittedRows]] = {}

    def read(self, drawn: Drawn) -> float:
        """Cells and row ids of an average query."""
        of = id(drawn.problem.features)
        if of not in self._counters:
            problem = drawn.problem
            known = design_problem(
                self._rows,
                problem.features,
                problem.queries,
                problem.columns,
                rows=problem.rows,
                block_rows=problem.block_rows,
            )
            self._counters[of] = known, FittedRows(with_queries(known, self._test))
        known, counter = self._counters[of]
        costs = scheme_costs(known, drawn.layouts, drawn.specs, self._test, in_cells(known), counter)
        return float(costs.mean())


def scheme_to_write(drawn: Drawn, columns: Sequence[str]) -> Scheme:
    """The scheme without the columns that no query reads, which are left out of the table that is written."""
    whole = scheme_of(drawn.problem, drawn.layouts, drawn.specs)
    kept = frozenset(columns)
    layouts = tuple(
        Layout(
            tuple(column for column in layout.columns if column in kept),
            layout.features,
            layout.masters & kept,
            layout.clustering,
        )
        for layout in whole.layouts
        if not kept.isdisjoint(layout.columns)
    )
    return Scheme(layouts, whole.features)


def stored_cells(written: Written) -> float:
    """Count the cells that a scheme really takes."""
    cells = 0
    for blocks in written.snapshot.block_sets:
        for number, layout in enumerate(written.snapshot.scheme(blocks.scheme).layouts):
            here = blocks.layout == number
            for column in layout.columns:
                held = here & (blocks.column_bytes(column) >= 0)
                cells += int(blocks.rows[held].sum())
    return float(cells)


def wrong_answers(table: SkipstoneTable, written: Written, work: Workload, source: Path, some: int) -> int:
    """Read what every so many-th test query asks for; count the answers that are not DuckDB's, as bags of rows."""
    wrong = 0
    connection = connect()
    connection.execute(f"create view {DENORM} as select * from read_parquet('{source}/*.parquet')")
    columns = tuple(table.table.schema.names)
    for query in work.test[:: max(1, len(work.test) // some)]:
        [request] = requests_of(query, DENORM, columns)
        names = ", ".join(request.columns)
        theirs = connection.sql(f"select {names} from {DENORM} where {request.where}")
        scan = table.table.scan(
            request.columns, where=request.where, dialect="duckdb", version=written.snapshot.version
        )
        ours = scan.to_arrow()
        compared = "select count(*) from ((from {0} except all from {1}) union all (from {1} except all from {0}))"
        connection.register("ours", ours.select(list(request.columns)))
        connection.register("theirs", theirs.to_arrow_table())
        [(different,)] = connection.sql(compared.format("ours", "theirs")).fetchall()
        wrong += bool(different)
    connection.close()
    return wrong


def _run(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    work = gsopr_workload(seed, smoke)
    source = narrowed(scale, read_columns(work))
    rows = rows_of(source)
    block_rows = grouped_blocks_for(rows, SMOKE_BLOCKS if smoke else BLOCKS)
    shutil.rmtree(out / "lake", ignore_errors=True)
    table = SkipstoneTable.loaded(skipstone.open(out / "lake"), DENORM, [source], work.train, block_rows)
    train, test = asked_queries(table, work.train), table.asked(work.test)
    filtered = sorted({column for query in (*train, *test) for column in query.filter.columns})
    searched, judged, features = (SMOKE_SAMPLE, SMOKE_SAMPLE, SMOKE_FEATURES) if smoke else (SEARCHED, JUDGED, FEATURES)
    sample = sampled(source, filtered, searched, seed)
    drawer = _drawer(sample, mine(train, max_features=features, exclude_dates=False), train, rows, block_rows, seed)
    drawn = _all_schemes(drawer, SMOKE_BUDGETS if smoke else BUDGETS)
    judge = Judge(sampled(source, filtered, judged, seed + 1), test)
    read = {one.key: judge.read(one) for one in drawn}
    to_write = [one for one in drawn if (one.method, one.budget) in TO_WRITE]
    written = [(one, write(table, _drawing(one, table), train, block_rows)) for one in to_write]
    checked = {one.key: wrong_answers(table, kept, work, source, 2 if smoke else 28) for one, kept in written}
    actual = {one.key: reading(kept.snapshot, test)["cells_and_ids_read"] / len(test) for one, kept in written}
    curve = _curve(drawn, read)
    templates = dict.fromkeys(query.template for query in work.train)
    return Report(
        "gsopr",
        SENTENCE,
        "Dissertation, section 5.7.2, figures 5.7(a) and 5.8",
        scale,
        seed,
        smoke,
        settings=(
            (
                "table",
                f"{rows:,} rows, {len(DENORM_COLUMNS)} columns, of which the queries read {len(_read_by(train))}",
            ),
            ("queries", f"{len(work.train)} for training, {len(test)} for tests: {', '.join(templates)}"),
            ("blocks", f"at least {block_rows:,} rows each, about {BLOCKS} a full column"),
            ("samples", f"about {searched:,} rows to search on, {judged:,} others to judge on"),
        ),
        tables=(curve, _written_table(written, read, test, len(DENORM_COLUMNS) - len(table.table.schema.names), rows)),
        figures=(_figure(drawn, read),),
        claims=_claims(
            drawn, read, written, actual, checked, len(DENORM_COLUMNS) - len(table.table.schema.names), rows
        ),
        notes=(
            "Storage is counted in cells (equation 5.2). Columns that no query reads are stored once by every scheme; "
            "the schemes that are written leave them out.",
            "GSOP, GSOP-R, GSOP-SE and GSOP-FC cluster by Ward, as the papers do; ours and `clusterings chosen` may "
            "take trees and sorted orders. All skip by features and by bounds.",
        ),
    )


def _read_by(asked: Sequence[Asked]) -> frozenset[str]:
    return frozenset(column for query in asked for column in query.columns)


def _drawer(
    sample: pa.Table, features: Sequence[Feature], train: Sequence[Asked], rows: int, block_rows: int, seed: int
) -> Drawer:
    problem = design_problem(sample, features, train, DENORM_COLUMNS, rows=rows, block_rows=block_rows, seed=seed)
    more = tuple(dict.fromkeys([*problem.features, *general_features(train)]))
    wide = design_problem(sample, more, train, DENORM_COLUMNS, rows=rows, block_rows=block_rows, seed=seed)
    return Drawer(problem, ServedRows(wide))


def _all_schemes(drawer: Drawer, budgets: Sequence[float]) -> list[Drawn]:
    methods: tuple[Callable[[float], Drawn], ...] = (drawer.ours, drawer.paper, drawer.selective)
    whole = sorted({int(budget) for budget in budgets} - {1})
    return [
        drawer.gsop(),
        drawer.gsop_fitted(),
        # The largest budget first: what searches remember is then used by the smaller ones, and its time is honest.
        *(method(budget) for method in methods for budget in sorted(budgets, reverse=True)),
        *(drawer.copies(copies) for copies in whole),
    ]


def _drawing(drawn: Drawn, table: SkipstoneTable) -> Drawing:
    scheme = scheme_to_write(drawn, table.table.schema.names)
    return Drawing(f"{drawn.method} at {drawn.budget:g}", scheme, drawn.layouts, drawn.seconds)


def _curve(drawn: Sequence[Drawn], read: dict[Key, float]) -> Table:
    base = read[GSOP, 1.0]
    lines = []
    for one in sorted(drawn, key=lambda one: (one.budget, one.method)):
        cost = read[one.key]
        values = {
            "storage": one.storage,
            "cells_and_ids_read": cost,
            "gain": base / cost,
            "groups": float(len(one.layouts)),
            "seconds": one.seconds,
        }
        lines.append(((f"{one.budget:g}", one.method), values))
    return table_of("curve", "An average test query, by what may be stored", ("budget", "scheme"), lines)


def _written_table(
    written: Sequence[tuple[Drawn, Written]],
    read: dict[Key, float],
    test: Sequence[Asked],
    unread: int,
    rows: int,
) -> Table:
    lines = []
    for drawn, kept in written:
        name = (f"{drawn.budget:g}", drawn.method)
        found = reading(kept.snapshot, test)
        really = {key: value / len(test) for key, value in found.items()}
        really |= {"storage": _really_stored(kept, unread, rows), "layout_seconds": kept.seconds}
        lines.append(((*name, "really"), really))
        lines.append(((*name, "forecast"), {"cells_and_ids_read": read[drawn.key], "storage": drawn.storage}))
    return table_of("written", "Schemes that were written", ("budget", "scheme", "counted"), lines)


def _really_stored(written: Written, unread: int, rows: int) -> float:
    """Cells stored over the cells of the table; the unread columns, which were left out, are stored once."""
    return (stored_cells(written) + unread * rows) / (len(DENORM_COLUMNS) * rows)


def _figure(drawn: Sequence[Drawn], read: dict[Key, float]) -> Figure:
    methods = (PAPER, OURS, SELECTIVE, COPIES)
    start = (1.0, read[GSOP, 1.0])
    series = tuple(
        Series(
            method,
            (start, *sorted((one.storage, read[method, one.budget]) for one in drawn if one.method == method)),
        )
        for method in methods
    )
    fitted = Series(GSOP_FITTED, ((1.0, read[GSOP_FITTED, 1.0]),))
    return Figure(
        "storage",
        "What an average test query reads, by storage",
        "lines",
        "storage",
        "cells and row ids",
        (*series, fitted),
        log_y=True,
        paper="figure 5.8",
    )


def _claims(
    drawn: Sequence[Drawn],
    read: dict[Key, float],
    written: Sequence[tuple[Drawn, Written]],
    actual: dict[Key, float],
    checked: dict[Key, int],
    unread: int,
    rows: int,
) -> tuple[Claim, ...]:
    """The targets, and what was measured for each."""
    budgets = sorted({one.budget for one in drawn if one.method == OURS})
    gsop = min(read[GSOP, 1.0], read[GSOP_FITTED, 1.0])
    found: list[Claim] = []
    for budget, most in TARGETS:
        if budget in budgets:
            found.append(
                Claim(f"ours-{budget:g}", f"ours at {budget:g}x over the better GSOP", read[OURS, budget] / gsop, most)
            )
            found.append(
                Claim(
                    f"paper-{budget:g}",
                    f"the paper's at {budget:g}x over the paper's GSOP",
                    read[PAPER, budget] / read[GSOP, 1.0],
                    most,
                )
            )
    for method in (OURS, PAPER):
        worst = max(read[method, budget] / _best_basic(read, budget) for budget in budgets)
        found.append(Claim(f"curve-{method}", f"{method} over the better basic approach, at worst", worst, at_most=1.0))
    slowest = max(one.seconds for one in drawn if one.method == OURS)
    found.append(Claim("search", "seconds for the slowest search of ours", slowest, at_most=120.0))
    for one, kept in written:
        name = f"{one.method} at {one.budget:g}"
        found.append(
            Claim(f"stored {name}", f"storage of {name} as written", _really_stored(kept, unread, rows), one.budget)
        )
        found.append(Claim(f"wrong {name}", f"answers of {name} that are not DuckDB's", float(checked[one.key]), 0.0))
        forecast = read[one.key]
        found.append(
            Claim(
                f"forecast {name}",
                f"cells and row ids of {name}: really over forecast",
                actual[one.key] / forecast,
                1.25,
                0.75,
            )
        )
    for budget, most in TARGETS:
        if (OURS, budget) in actual:
            ratio = actual[OURS, budget] / actual[GSOP, 1.0]
            found.append(
                Claim(
                    f"really-{budget:g}",
                    f"ours at {budget:g}x over the paper's GSOP, both written and read",
                    ratio,
                    most,
                )
            )
    return tuple(found)


def _best_basic(read: dict[Key, float], budget: float) -> float:
    """What the better of selective and full-copy replication reads with no more storage."""
    return min(cost for (method, used), cost in read.items() if method in (SELECTIVE, COPIES) and used <= budget)


SENTENCE = "What GSOP-R reads, the paper's and ours, by storage; beside GSOP, selective and full-copy replication."
EXPERIMENTS = (Experiment("gsopr", SENTENCE, "figures 5.7, 5.8", scale=1.0, minutes=20, function=_run),)

"""GSOP where the workload can be turned this way and that, and where columns are many: figures 4.7 and 4.12.

Nothing is written here: what queries read is counted on a sample, clustered into as many blocks as the whole would be.
Training queries make the layouts, test queries are counted; those have no weight in any choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.dataset as pd

from bench.experiment import Experiment
from bench.experiments.gsop import (
    GSOP,
    GSOP_HC,
    GSOP_HY,
    ONE_LAYOUT,
    OURS,
    SAMPLED,
    SINGLE,
    SMOKE_SAMPLED,
    SMOKE_SERVED,
    SOP,
    WARD,
    Drawer,
    Drawing,
    sampled,
)
from bench.query import Query
from bench.quiet_duckdb import connect
from bench.report import Claim, Figure, Report, Series, Table, table_of
from bench.skipping import data_files
from bench.skipstone_layouts import rows_of
from bench.workloads import big_data, sdss
from bench.workloads.big_data import Knobs
from skipstone.layout.grouping.baselines import hillclimb, hyrise
from skipstone.layout.grouping.column_grouping import singles
from skipstone.layout.grouping.cost import in_cells
from skipstone.layout.grouping.fitted_groups import fit_groups, fitted_costs
from skipstone.layout.grouping.problem import DesignProblem, design_problem
from skipstone.layout.replication.family_groups import MOST_SERVED
from skipstone.relayout.column_groups import group_features
from skipstone.relayout.tracking import tracked_expressions
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT
from skipstone.workload.query import Query as Asked
from skipstone.workload.requests import FrontEnd

BLOCKS = 600
SMOKE_BLOCKS = 20

MOST_WORSE = 1.05
"""GSOP may read this many times what the better of SOP and columns alone reads: the target of figure 4.7."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One part of figure 4.7: a knob and the settings it is turned to, the others at the paper's defaults."""

    part: str
    knob: str
    title: str
    settings: tuple[Knobs, ...]

    def place(self, knobs: Knobs) -> float:
        """Where a setting stands on the x axis."""
        return float(getattr(knobs, self.knob))


def _turned(part: str, knob: str, title: str, values: Iterable[float]) -> Sweep:
    return Sweep(part, knob, title, tuple(replace(Knobs(), **{knob: value}) for value in values))  # type: ignore[arg-type]


SWEEPS = (
    _turned("a", "columns", "columns in the SELECT list, k", (1, 2, 4, 6, 8, 10)),
    _turned("b", "templates", "column templates, t", (1, 3, 6, 15, 30, 55)),
    _turned("c", "skew", "skewness of filters, z", (0.0, 0.5, 1.1, 1.6, 2.2)),
    _turned("d", "selectivity", "selectivity, s", (0.05, 0.1, 0.2, 0.3, 0.4)),
)
SMOKE_SWEEPS = (_turned("a", "columns", "columns in the SELECT list, k", (2, 8)),)


@dataclass(frozen=True, slots=True)
class Drawings:
    """What was designed for a workload, and the problem it was designed from."""

    problem: DesignProblem
    by_name: dict[str, Drawing]

    def counted(self, name: str, test: Sequence[Asked], *, bounds: bool) -> float:
        """Cells and row ids that a test query reads on average; blocks are skipped by features, or by bounds, too."""
        problem, drawing = self.problem, self.by_name[name]
        filters = [query.filter for query in problem.queries]
        tracked = [one.expression for one in tracked_expressions(problem.sample.schema, filters)] if bounds else []
        fitted = [
            fit_groups(problem, [group], tracked, fits=(layout.clustering,))[0]
            for group, layout in zip(drawing.groups, drawing.scheme.layouts, strict=True)
        ]
        weights = np.array([query.weight for query in test])
        return float(weights @ fitted_costs(problem, fitted, test, in_cells(problem)) / weights.sum())


def asked_by(queries: Sequence[Query], front: FrontEnd) -> tuple[Asked, ...]:
    """Return the one request that each query makes."""
    found = []
    for query in queries:
        [request] = front.read(query.sql).requests
        found.append(Asked(tuple(sorted(request.columns)), request.filter, 1.0, query.template))
    return tuple(found)


def once(queries: Sequence[Asked]) -> tuple[Asked, ...]:
    """Put equal requests together; their weights add up."""
    weights: dict[Asked, float] = {}
    for query in queries:
        weights[query] = weights.get(query, 0.0) + query.weight
    return tuple(replace(query, weight=weight) for query, weight in weights.items())


def drawer_for(source: Path, asked: Sequence[Asked], seed: int, smoke: bool) -> Drawer:
    """Look at a sample of the rows of a dataset, with the features of the training queries."""
    features = group_features(asked, max_features=DEFAULT_MAX_FEATURES, min_support=DEFAULT_MIN_SUPPORT)
    columns = pd.dataset(data_files(source), format="parquet").schema.names
    filtered = sorted({column for query in asked for column in query.filter.columns})
    sample, rows = sampled(source, filtered, SMOKE_SAMPLED if smoke else SAMPLED, seed), rows_of(source)
    block_rows = max(1, rows // (SMOKE_BLOCKS if smoke else BLOCKS))
    problem = design_problem(sample, features, asked, columns, rows=rows, block_rows=block_rows, seed=seed)
    return Drawer(problem, SMOKE_SERVED if smoke else MOST_SERVED)


def drawn(drawer: Drawer, *, rivals: bool = False, in_a_hurry: bool = False) -> Drawings:
    """Design every scheme of a comparison: the paper's, ours, and those of rival groupings where they are wanted.

    The paper's search begins with every column alone; in a hurry, with columns that the same queries read together.
    """
    problem = drawer.problem
    sop = drawer.sop()
    found = [
        sop,
        drawer.drawn(SINGLE, lambda: drawer.drafts(singles(problem)), WARD),
        drawer.drawn(GSOP, lambda: drawer.searched(drawer.ward, from_alike=in_a_hurry), WARD),
        drawer.ours(lambda: sop.groups, ONE_LAYOUT),
        drawer.ours(drawer.refined, OURS),
    ]
    if rivals:
        found += [
            drawer.drawn(GSOP_HC, lambda: drawer.drafts(hillclimb(problem)), WARD),
            drawer.drawn(GSOP_HY, lambda: drawer.drafts(hyrise(problem)), WARD),
        ]
    return Drawings(problem, {one.name: one for one in found})


AS_IN_THE_PAPER = (SOP, SINGLE, GSOP)
"""Schemes whose blocks are skipped by features alone; those of ours have bounds as well."""

BY_FEATURES, BY_BOTH = "features", "features and bounds"


def _run_big_data(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = big_data.visits(scale, seed)
    connection = connect()
    connection.execute(f"create view {big_data.TABLE} as select * from read_parquet('{source}/*.parquet')")
    front = FrontEnd({big_data.TABLE: pd.dataset(data_files(source), format="parquet").schema})
    count = 20 if smoke else big_data.QUERIES_IN_THE_PAPER
    pools: dict[float, tuple[str, ...]] = {}
    known: dict[Knobs, dict[tuple[str, str], float]] = {}

    def measured(knobs: Knobs) -> dict[tuple[str, str], float]:
        if knobs not in known:
            if knobs.selectivity not in pools:
                pools[knobs.selectivity] = big_data.filter_pool(connection, knobs.selectivity, seed=seed)
            train, test = (
                asked_by(big_data.queries(pools[knobs.selectivity], knobs, count, seed=seed, stream=stream), front)
                for stream in ("train", "test")
            )
            made = drawn(drawer_for(source, once(train), seed, smoke))
            known[knobs] = {
                (name, how): made.counted(name, once(test), bounds=how == BY_BOTH)
                for name in made.by_name
                for how in (BY_FEATURES, BY_BOTH)
                if how == BY_BOTH or name in AS_IN_THE_PAPER
            }
        return known[knobs]

    sweeps = SMOKE_SWEEPS if smoke else SWEEPS
    found = {sweep: {sweep.place(knobs): measured(knobs) for knobs in sweep.settings} for sweep in sweeps}
    connection.close()
    return Report(
        "gsop-big-data",
        SENTENCES["gsop-big-data"],
        "Dissertation, section 4.7.4, figure 4.7",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{rows_of(source):,} rows, {len(big_data.COLUMNS)} columns, {len(pools)} pools of filters"),
            ("queries", f"{count} for training and as many for tests in each setting"),
            ("blocks", f"{SMOKE_BLOCKS if smoke else BLOCKS} a layout"),
            ("cost", f"cells and row ids of an average test query, counted on about {SAMPLED:,} rows"),
        ),
        tables=tuple(_sweep_table(sweep, lines) for sweep, lines in found.items()),
        figures=tuple(_sweep_figure(sweep, lines) for sweep, lines in found.items()),
        claims=tuple(claim for sweep, lines in found.items() for claim in _sweep_claims(sweep, lines)),
        notes=("The paper measures seconds, of which over 95 % went into decompression; here cells are counted.",),
    )


Lines = dict[float, dict[tuple[str, str], float]]


def _sweep_table(sweep: Sweep, lines: Lines) -> Table:
    made = [
        ((f"{place:g}", name, how), {"cells_and_ids_read": cells})
        for place, values in lines.items()
        for (name, how), cells in values.items()
    ]
    return table_of(
        f"sweep-{sweep.part}", f"Figure 4.7({sweep.part}): {sweep.title}", (sweep.knob, "scheme", "by"), made
    )


def _sweep_figure(sweep: Sweep, lines: Lines) -> Figure:
    shown = [(name, BY_FEATURES, name) for name in AS_IN_THE_PAPER]
    shown += [(name, BY_BOTH, f"{name}, with bounds") for name in (SOP, SINGLE, ONE_LAYOUT, OURS)]
    series = tuple(
        Series(title, tuple((place, values[name, how]) for place, values in lines.items()))
        for name, how, title in shown
    )
    return Figure(
        f"sweep-{sweep.part}",
        "Cells and row ids that a test query reads",
        "lines",
        sweep.title,
        "cells and row ids",
        series,
        paper=f"figure 4.7({sweep.part})",
    )


def _sweep_claims(sweep: Sweep, lines: Lines) -> tuple[Claim, Claim]:
    def worst(name: str, how: str) -> float:
        return max(values[name, how] / min(values[SOP, how], values[SINGLE, how]) for values in lines.values())

    what = "over the better of SOP and columns alone, at its worst"
    return (
        Claim(f"paper-{sweep.part}", f"{sweep.title}: the paper's GSOP {what}", worst(GSOP, BY_FEATURES), MOST_WORSE),
        Claim(
            f"ours-{sweep.part}", f"{sweep.title}: our GSOP {what}, all with bounds", worst(OURS, BY_BOTH), MOST_WORSE
        ),
    )


def _run_sdss(scale: float, seed: int, out: Path, smoke: bool) -> Report:
    source = sdss.star(scale, seed)
    log = sdss.queries(16 if smoke else sdss.QUERIES_IN_THE_PAPER, seed=seed)
    front = FrontEnd({sdss.TABLE: pd.dataset(data_files(source), format="parquet").schema})
    train, test = (once(asked_by(part, front)) for part in sdss.split(log))
    drawer = drawer_for(source, train, seed, smoke)
    made = drawn(drawer, rivals=not smoke, in_a_hurry=smoke)
    cells = {
        (name, how): made.counted(name, test, bounds=how == BY_BOTH)
        for name in made.by_name
        for how in (BY_FEATURES, BY_BOTH)
    }
    problem = made.problem
    lines = [
        (
            (name, how),
            {
                "cells_and_ids_read": value,
                "groups": float(len(made.by_name[name].groups)),
                "advise_seconds": made.by_name[name].seconds,
            },
        )
        for (name, how), value in cells.items()
    ]
    read = problem.accesses.any(axis=0).sum()
    return Report(
        "gsop-sdss",
        SENTENCES["gsop-sdss"],
        "Dissertation, section 4.7.6, figure 4.12",
        scale,
        seed,
        smoke,
        settings=(
            ("table", f"{problem.rows:,} rows, {len(problem.columns)} columns, of which queries read {read}"),
            ("queries", f"{len(train)} different ones for training, {len(test)} later ones for tests"),
            ("features", f"{len(problem.features)}, {len(problem.vectors):,} distinct vectors in the sample"),
            ("blocks", f"at least {problem.block_rows:,} rows each"),
        ),
        tables=(table_of("schemes", "What an average test query reads", ("scheme", "skipped by"), lines),),
        figures=(
            Figure(
                "cells",
                "Cells and row ids that an average test query reads",
                "bars",
                "scheme",
                "cells and row ids",
                tuple(
                    Series(how, tuple((name, cells[name, how]) for name in made.by_name))
                    for how in (BY_FEATURES, BY_BOTH)
                ),
                paper="figure 4.12 (seconds): SOP over GSOP is 2.7",
            ),
        ),
        claims=(
            Claim("sop", "ours over SOP by the paper's method", cells[OURS, BY_BOTH] / cells[SOP, BY_FEATURES], 1 / 3),
            Claim("sop-bounds", "ours over SOP with bounds", cells[OURS, BY_BOTH] / cells[SOP, BY_BOTH], 1 / 3),
            Claim("paper", "GSOP as in the paper over SOP", cells[GSOP, BY_FEATURES] / cells[SOP, BY_FEATURES], 1 / 3),
            Claim("seconds", "processor seconds to design ours", made.by_name[OURS].seconds, 600.0),
            Claim("paper-seconds", "processor seconds to group as in the paper", made.by_name[GSOP].seconds, 600.0),
        ),
    )


SENTENCES = {
    "gsop-big-data": "Column groups where the workload varies: columns, column templates, skew and selectivity.",
    "gsop-sdss": "Column groups of a table of 450 columns, for a log that likes a few of them.",
}
EXPERIMENTS = (
    Experiment(
        "gsop-big-data",
        SENTENCES["gsop-big-data"],
        "figure 4.7",
        scale=0.01,
        minutes=5,
        function=_run_big_data,
        smoke_scale=0.0002,
    ),
    Experiment(
        "gsop-sdss",
        SENTENCES["gsop-sdss"],
        "figure 4.12",
        scale=0.02,
        minutes=10,
        function=_run_sdss,
        smoke_scale=0.0005,
    ),
)

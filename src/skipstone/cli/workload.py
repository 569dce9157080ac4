"""`skipstone workload`: what a query log asks for, how its filters recur, and which features come of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from skipstone.catalog.schema_files import read_schemas
from skipstone.cli.options import (
    AsJson,
    Excluded,
    MaxFeatures,
    MinSupport,
    SchemaDialect,
    SchemaSource,
    StorageOption,
    storage_options,
)
from skipstone.cli.rendering import cell, grid, print_grid, print_json
from skipstone.errors import ColumnNotFound
from skipstone.workload.choosing import MiningSettings
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT
from skipstone.workload.reading import Workload
from skipstone.workload.report import Curve, TableReport, WorkloadReport, workload_report

__all__ = ["workload"]

workload = typer.Typer(add_completion=False, help="Look at a query log: what it asks for, and the features in it.")

PROBLEMS_SHOWN = 20
TEMPLATES_SHOWN = 10
COLUMNS_SHOWN = 20
REASONS_SHOWN = 10


@workload.callback()
def about() -> None:
    """Look at a query log: what it asks for, and the features in it."""


@workload.command()
def show(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="SQL files, JSON lines, or directories of either.")
    ],
    schema: SchemaSource,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table's name in the queries; else SCHEMA tells.")
    ] = None,
    dialect: SchemaDialect = "spark",
    min_support: MinSupport = DEFAULT_MIN_SUPPORT,
    max_features: MaxFeatures = DEFAULT_MAX_FEATURES,
    exclude: Excluded = None,
    dates: Annotated[
        bool, typer.Option("--dates", help="Mine comparisons of dates and times with constants, too.")
    ] = False,
    choose: Annotated[
        bool, typer.Option("--choose", help="Choose T and K by cross-validation on the log's own past.")
    ] = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Report on a workload and list its features with weights, SQL, relevant columns and cumulative coverage."""
    tables = read_schemas(schema, table=table, dialect=dialect, options=storage_options(storage_option))
    settings = MiningSettings(min_support, max_features, tuple(exclude or ()), exclude_dates=not dates)
    _require_columns(settings.exclude, tables)
    work = Workload.read(files, tables, dialect=dialect)
    report = workload_report(work, settings, choose=choose)
    if as_json:
        print_json(_plain(report))
    else:
        _print_statements(report)
        for one in report.tables:
            _print_table(one)
        if not report.tables:
            typer.echo(f"\nNo statement reads {' or '.join(tables)}, so there is nothing to mine.")


def _require_columns(names: tuple[str, ...], tables: Mapping[str, Any]) -> None:
    known = [name for schema in tables.values() for name in schema.names]
    for name in names:
        if name not in known:
            raise ColumnNotFound.among(name, known, where=f"the schema of {', '.join(tables)} (--exclude)")


def _plain(report: WorkloadReport) -> dict[str, Any]:
    document = dataclasses.asdict(report)
    for plain, table in zip(document["tables"], report.tables, strict=True):
        plain["subsumed"] = table.subsumed
        for name in ("commonality", "stability", "stability_of_whole_filters"):
            plain[name] = plain[name]["points"]
    return document


def _print_statements(report: WorkloadReport) -> None:
    typer.echo(f"{_count(report.statements)} statements: {_count(report.queries)} queries understood")
    for reason, weight in report.not_queries.items():
        typer.echo(f"  {_count(weight)} {reason}")
    if report.problem_count:
        typer.echo(f"  {_count(report.problem_count)} not understood:")
        for problem in report.problems[:PROBLEMS_SHOWN]:
            typer.echo(f"    {problem}")
        if len(report.problems) > PROBLEMS_SHOWN:
            typer.echo(f"    ... and {len(report.problems) - PROBLEMS_SHOWN:,} more; --json lists them")
    if report.other_tables:
        named = ", ".join(f"{name} ({_count(weight)})" for name, weight in report.other_tables.items())
        typer.echo(f"  tables without a schema here: {named}")
    if report.templates:
        typer.echo(f"\nTemplates: {len(report.templates):,}, statements that differ in constants only")
        table = grid(
            "", "statements", "share", "mean ms", "users", "text", numbers=("statements", "share", "mean ms", "users")
        )
        shown = report.templates[:TEMPLATES_SHOWN]
        total = report.queries or 1.0
        print_grid(
            table,
            (
                (
                    one.label,
                    _count(one.weight),
                    _percent(one.weight / total),
                    "" if one.duration_ms is None else f"{one.duration_ms / one.weight:,.0f}",
                    one.users or "",
                    one.text,
                )
                for one in shown
            ),
        )
        if len(report.templates) > len(shown):
            typer.echo(f"... and {len(report.templates) - len(shown):,} more; --json lists them")


def _print_table(one: TableReport) -> None:
    requests = one.requests or 1.0
    typer.echo(
        f"\nTable {one.table}: {_count(one.requests)} requests, {one.different:,} different; "
        f"{_percent(one.with_filter / requests)} have a filter, "
        f"{_percent(one.minable / requests)} one that can become a feature"
    )
    if one.with_filter:
        order = "in order of time" if one.in_order_of_time else "in the order of the lines, for want of times"
        typer.echo(f"\nHow filters recur (dissertation, figure 3.2), {order}")
        print_grid(grid("share of", *(_percent(x, 0) for x in CURVE_SHARES)), _curves(one))
    print_grid(
        grid("column", "read by", "filtered by", numbers=("read by", "filtered by")),
        (
            (use.column, _percent(use.read / requests), _percent(use.filtered / requests))
            for use in one.columns[:COLUMNS_SHOWN]
        ),
    )
    if len(one.columns) > COLUMNS_SHOWN:
        typer.echo(f"... and {len(one.columns) - COLUMNS_SHOWN:,} more columns")
    if one.kinds:
        print_grid(
            grid("predicates", "different", "requests", numbers=("different", "requests")),
            ((use.kind, f"{use.different:,}", _percent(use.weight / requests)) for use in one.kinds),
        )
    for number, (reason, weight) in enumerate(one.unused_conditions.items()):
        if number == REASONS_SHOWN:
            typer.echo(f"... and {len(one.unused_conditions) - REASONS_SHOWN:,} more reasons")
            break
        typer.echo(f"{_count(weight)} requests: {reason}")
    _print_features(one)


CURVE_SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def _curves(one: TableReport) -> Iterator[tuple[str, ...]]:
    named: tuple[tuple[str, Curve], ...] = (
        ("predicates, the most used -> requests that use them", one.commonality),
        ("requests so far -> requests with a predicate seen", one.stability),
        ("requests so far -> requests with all of theirs seen", one.stability_of_whole_filters),
    )
    for name, curve in named:
        yield name, *(_percent(curve.at(x), 0) for x in CURVE_SHARES)


def _print_features(one: TableReport) -> None:
    settings = one.settings
    if one.choice:
        typer.echo(f"\n{one.choice.reason[:1].upper()}{one.choice.reason[1:]}.")
    least = (
        f"{settings.min_support:.1%} of the requests"
        if settings.min_support < 1
        else f"{settings.min_support:g} requests"
    )
    typer.echo(
        f"\n{len(one.features)} features (at most {settings.max_features}, each for {least} or more) out of "
        f"{one.predicates:,} predicates, {one.frequent_predicates:,} of them frequent"
    )
    if one.features:
        print_grid(
            grid("", "requests", "adds", "covered", "filter", "columns", numbers=("", "requests", "adds", "covered")),
            (
                (
                    number,
                    _count(use.weight),
                    _count(use.additional),
                    _percent(use.covered),
                    cell(use.filter, style="bold"),
                    ", ".join(use.columns),
                )
                for number, use in enumerate(one.features, start=1)
            ),
        )
    typer.echo(f"They subsume {_percent(one.subsumed)} of all requests to {one.table}.")


def _count(weight: float) -> str:
    return f"{weight:,.0f}" if weight == int(weight) else f"{weight:,.2f}"


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"

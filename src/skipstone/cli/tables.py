"""The commands that work on tables of a lake: each parses a request, calls one use case, and renders its result."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table as Grid

from skipstone.cli.progress import Bars
from skipstone.errors import InvalidInput
from skipstone.lake import BLOCK_ROWS, CHUNK_ROWS, SAMPLE_ROWS, Lake, Table, open_lake
from skipstone.relayout.advising import Advice
from skipstone.scan.explain import text as explanation
from skipstone.workload.reading import Workload

__all__ = [
    "advise",
    "append",
    "create",
    "explain",
    "export",
    "history",
    "optimize",
    "query",
    "restore",
    "show",
    "vacuum",
]

LakeAt = Annotated[str, typer.Argument(metavar="LAKE", help="The directory of tables: a path or a URI.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
WithSpark = Annotated[
    bool, typer.Option("--spark", help="Move rows with Spark tasks instead of the threads of this process.")
]
StorageOption = Annotated[
    list[str] | None, typer.Option("--storage-option", metavar="NAME=VALUE", help="How to open an object store.")
]
Workloads = Annotated[
    list[Path], typer.Option("--workload", "-w", help="SQL or JSON-lines files, or directories, of queries.")
]
Dialect = Annotated[str, typer.Option(help="The SQL dialect of the workload.")]
Clustering = Annotated[
    str, typer.Option(help="auto, or one of: none, sort, zorder, hilbert, range, ward, ward-queries, qdtree.")
]
BlockRows = Annotated[int, typer.Option(help="Rows of a block, at least.")]


def create(
    lake: LakeAt,
    table: TableName,
    source: Annotated[str, typer.Argument(help="A Parquet file or directory, a CSV file, or a Delta table.")],
    format: Annotated[str | None, typer.Option(help="parquet, csv or delta; else the path tells.")] = None,  # noqa: A002
    chunk_rows: Annotated[int, typer.Option(help="Rows of a chunk, at most about.")] = CHUNK_ROWS,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of the rows of a source; it can be queried at once."""
    with Bars(quiet=as_json) as bars:
        made = _lake(lake, spark, storage_option).create(
            table, source, format=format, chunk_rows=chunk_rows, progress=bars
        )
    _print_commit(made, as_json)


def append(
    lake: LakeAt,
    table: TableName,
    source: Annotated[str, typer.Argument(help="A Parquet file or directory, a CSV file, or a Delta table.")],
    format: Annotated[str | None, typer.Option(help="parquet, csv or delta; else the path tells.")] = None,  # noqa: A002
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of a source to a table, as new chunks."""
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        found.append(source, format=format, progress=bars)
    _print_commit(found, as_json)


def advise(
    lake: LakeAt,
    table: TableName,
    workload: Workloads,
    dialect: Dialect = "spark",
    clustering: Clustering = "auto",
    block_rows: BlockRows = BLOCK_ROWS,
    sample_rows: Annotated[int, typer.Option(help="Rows to look at.")] = SAMPLE_ROWS,
    seed: int = 0,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Say what each layout would read for a workload, and which one pays.

    Nothing is written.
    """
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        advice = _advice(found, workload, dialect, clustering, block_rows, sample_rows, seed, bars)
    if as_json:
        _print_json(_plain_advice(advice))
    else:
        _print_advice(advice)


def optimize(
    lake: LakeAt,
    table: TableName,
    workload: Workloads,
    dialect: Dialect = "spark",
    clustering: Clustering = "auto",
    block_rows: BlockRows = BLOCK_ROWS,
    sample_rows: Annotated[int, typer.Option(help="Rows to look at.")] = SAMPLE_ROWS,
    seed: int = 0,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Lay a table out for a workload, if that pays, in one atomic commit."""
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        advice = _advice(found, workload, dialect, clustering, block_rows, sample_rows, seed, bars)
        done = found.optimize(advice, progress=bars)
    if as_json:
        _print_json({"advice": _plain_advice(advice), "optimized": dataclasses.asdict(done)})
        return
    _print_advice(advice)
    if done.version is None:
        typer.echo("Nothing was written.")
    else:
        typer.echo(
            f"Version {done.version}: {done.chunks:,} chunks, {done.blocks:,} blocks, laid out by {advice.chosen}."
        )


def query(
    lake: LakeAt,
    sql: Annotated[str, typer.Argument(help="A SELECT in Spark's SQL.")],
    limit: Annotated[int, typer.Option(help="Rows to print, at most.")] = 100,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Run a query in Spark, reading only what can matter."""
    opened = _lake(lake, False, storage_option)
    rows: pa.Table = opened.sql(sql).limit(limit).toArrow()
    if as_json:
        _print_json({"rows": rows.to_pylist(), "scans": [dataclasses.asdict(one) for one in opened.last_scan]})
        return
    grid = Grid(*rows.schema.names)
    for row in rows.to_pylist():
        grid.add_row(*("NULL" if value is None else str(value) for value in row.values()))
    Console().print(grid)
    for one in opened.last_scan:
        typer.echo(
            f"{one.table}: read {one.read.blocks:,} of {sum(chunk.blocks for chunk in one.chunks):,} blocks, "
            f"{one.read.rows:,} of {one.plain.rows:,} rows"
        )


def explain(
    lake: LakeAt,
    sql: Annotated[str, typer.Argument(help="A SELECT in Spark's SQL.")],
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Say which blocks a query would read, which it would skip, and why.

    Nothing is read.
    """
    reports = _lake(lake, False, storage_option).explain(sql)
    if as_json:
        _print_json([dataclasses.asdict(one) for one in reports])
    else:
        typer.echo("\n\n".join(explanation(one) for one in reports) or "no table of the lake is mentioned")


def show(
    lake: LakeAt,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="One table; else all are listed.")] = None,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """List the tables of a lake, or describe one."""
    opened = _lake(lake, False, storage_option)
    found = [opened.table(name).describe() for name in ([table] if table else opened.tables())]
    if as_json:
        _print_json([dataclasses.asdict(one) for one in found])
        return
    if not found:
        typer.echo(f"no tables in {opened.location.uri}")
    for one in found:
        size = f"{one.rows:,} rows in {one.chunks:,} chunks, {one.bytes:,} bytes"
        typer.echo(f"{one.name}: version {one.version}, {size}")
        if table:
            for layout in one.layouts:
                typer.echo(
                    f"  {layout.chunks:,} chunks by {layout.clustering}: {layout.blocks:,} blocks, "
                    f"{layout.features} features, {layout.layouts} layouts"
                )
            for name, kind in one.columns:
                typer.echo(f"  {name}  {kind}")


def history(
    lake: LakeAt,
    table: TableName,
    limit: Annotated[int | None, typer.Option(help="The latest so many.")] = None,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """List the commits of a table, latest first."""
    commits = _lake(lake, False, storage_option).table(table).history(limit)
    if as_json:
        _print_json([dataclasses.asdict(one) for one in commits])
        return
    for one in commits:
        metrics = ", ".join(f"{name} {value}" for name, value in one.metrics)
        typer.echo(f"{one.version:>5}  {one.timestamp:%Y-%m-%d %H:%M:%S}  {one.operation:<10} {metrics}")


def restore(
    lake: LakeAt,
    table: TableName,
    version: Annotated[int, typer.Argument(help="A version from the table's history.")],
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a table what it was at a version, as a new commit."""
    found = _lake(lake, False, storage_option).table(table)
    found.restore(version)
    _print_commit(found, as_json)


def vacuum(
    lake: LakeAt,
    table: TableName,
    retain_hours: Annotated[float, typer.Option(help="Keep what snapshots of so many hours use.")] = 168.0,
    delete: Annotated[bool, typer.Option("--delete", help="Delete; without it the files are only listed.")] = False,
    allow_short_retention: Annotated[
        bool, typer.Option("--allow-short-retention", help="Permit fewer than 168 hours; no writer may be at work.")
    ] = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete the files that no snapshot uses any more."""
    found = _lake(lake, False, storage_option).table(table)
    report = found.vacuum(
        timedelta(hours=retain_hours), dry_run=not delete, allow_short_retention=allow_short_retention
    )
    if as_json:
        _print_json(dataclasses.asdict(report))
        return
    for path in report.files:
        typer.echo(path)
    verb = "would be deleted; add --delete to do it" if report.dry_run else "deleted"
    typer.echo(f"{len(report.files):,} files, {report.bytes:,} bytes {verb}")


def export(
    lake: LakeAt,
    table: TableName,
    delta: Annotated[bool, typer.Option("--delta", help="Publish in place as a Delta table.")] = True,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish a table in place, without copying, so that other engines read it."""
    if not delta:
        raise InvalidInput("export publishes as Delta; --delta is the only form there is")
    found = _lake(lake, False, storage_option).table(table)
    published = found.export()
    if as_json:
        _print_json({**dataclasses.asdict(published), "uri": found.location.uri})
    else:
        typer.echo(
            f"{found.location.uri} is a Delta table at version {published.delta_version}: "
            f"{published.files_added:,} files joined, {published.files_removed:,} left"
        )


def _lake(path: str, spark: bool, options: Sequence[str] | None) -> Lake:
    session = None
    if spark:
        from skipstone.spark.session import local_session

        session = local_session()
    return open_lake(path, spark=session, storage_options=_options(options or ()))


def _options(given: Sequence[str]) -> Mapping[str, str]:
    pairs = [one.partition("=") for one in given]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise InvalidInput(f'a storage option has the form NAME=VALUE; this one has no "=": {wrong[0]}')
    return {name: value for name, _, value in pairs}


def _advice(
    table: Table,
    workload: Sequence[Path],
    dialect: str,
    clustering: str,
    block_rows: int,
    sample_rows: int,
    seed: int,
    bars: Bars,
) -> Advice:
    work = Workload.read(workload, {table.name: table.schema}, dialect=dialect)
    return table.advise(
        work, clustering=clustering, block_rows=block_rows, sample_rows=sample_rows, seed=seed, progress=bars
    )


def _plain_advice(advice: Advice) -> dict[str, Any]:
    from skipstone.predicate.printing import sql

    return {
        "table": advice.table,
        "version": advice.version,
        "rows": advice.rows,
        "chosen": advice.chosen,
        "reasons": advice.reasons,
        "lower_bound_rows": advice.lower_bound,
        "rewrite_bytes": advice.rewrite_bytes,
        "candidates": [dataclasses.asdict(one) for one in advice.candidates],
        "features": [
            {"filter": sql(one.filter), "weight": one.weight, "columns": one.columns} for one in advice.features
        ],
        "queries": [dataclasses.asdict(one) for one in advice.forecasts],
    }


def _print_advice(advice: Advice) -> None:
    grid = Grid("layout", "rows read", "cells read", "bytes read")
    for one in advice.candidates:
        name = f"[bold]{one.name}[/bold]" if one.name == advice.chosen else one.name
        grid.add_row(name, *(f"{100 * share:.1f} %" for share in (one.rows, one.cells, one.bytes)))
    grid.add_row("no layout can read less than", f"{100 * advice.lower_bound:.1f} %", "", "")
    console = Console()
    console.print(grid)
    for reason in advice.reasons:
        console.print(f"{advice.chosen}: {reason}")


def _print_commit(table: Table, as_json: bool) -> None:
    commit = table.history(1)[0]
    if as_json:
        _print_json(dataclasses.asdict(commit))
    else:
        metrics = "".join(f", {name} {value}" for name, value in commit.metrics)
        typer.echo(f"{table.name} is at version {commit.version}: {commit.operation}{metrics}")


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2, default=_json)
    sys.stdout.write("\n")


def _json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (frozenset, set)):
        return sorted(value)
    return str(value)

"""The commands that work on tables of a lake: each parses a request, calls one use case, and renders its result."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import pyarrow as pa
import typer

from skipstone.cli.options import (
    AsJson,
    BlockRows,
    Budget,
    Clusterings,
    CutBy,
    Dialect,
    Excluded,
    Headroom,
    LakeAt,
    MaxFeatures,
    MinSupport,
    SampleRows,
    Seed,
    SeekOption,
    SourceAt,
    SourceFormat,
    Statement,
    StorageOption,
    TableName,
    WithColumns,
    WithSpark,
    Workloads,
    chosen_clusterings,
    storage_options,
)
from skipstone.cli.progress import Bars
from skipstone.cli.rendering import cell, grid, print_grid, print_json
from skipstone.errors import InvalidInput, listed
from skipstone.lake import BLOCK_ROWS, CHUNK_ROWS, RAW_BLOCK_ROWS, SAMPLE_ROWS, Lake, Promise, Table, open_lake
from skipstone.layout.columns.seek import seek_profile
from skipstone.predicate.printing import sql as sql_text
from skipstone.relayout.advising import NO_CHANGE, Advice
from skipstone.scan.explain import text as explanation
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT
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

LONGEST_RETENTION = 1_000_000
"""Hours; more than a century is a slip of the hand."""


def create(
    lake: LakeAt,
    table: TableName,
    source: SourceAt,
    format: SourceFormat = None,  # noqa: A002
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows of a chunk, at most about.")] = CHUNK_ROWS,
    block_rows: BlockRows = RAW_BLOCK_ROWS,
    time_zone: Annotated[str, typer.Option(help="The zone of timestamps that a filter gives without one.")] = "UTC",
    cut_by: CutBy = None,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of the rows of a source; it can be queried at once."""
    with Bars(quiet=as_json) as bars:
        made = _lake(lake, spark, storage_option).create(
            table,
            source,
            format=format,
            chunk_rows=chunk_rows,
            block_rows=block_rows,
            time_zone=time_zone,
            cut_by=cut_by,
            progress=bars,
        )
    _print_commit(made, as_json)


def append(
    lake: LakeAt,
    table: TableName,
    source: SourceAt,
    format: SourceFormat = None,  # noqa: A002
    block_rows: Annotated[
        int | None,
        typer.Option(min=1, help=f"Rows of a block, where no layout decides; {RAW_BLOCK_ROWS:,} by default."),
    ] = None,
    cut_by: CutBy = None,
    layout: Annotated[
        bool, typer.Option("--layout", help="Lay the new chunks out as the table was last optimized.")
    ] = False,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of a source to a table, as new chunks."""
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        found.append(source, format=format, block_rows=block_rows, cut_by=cut_by, layout=layout, progress=bars)
    _print_commit(found, as_json)


def advise(
    lake: LakeAt,
    table: TableName,
    workload: Workloads,
    dialect: Dialect = "spark",
    clustering: Clusterings = None,
    block_rows: BlockRows = BLOCK_ROWS,
    min_support: MinSupport = DEFAULT_MIN_SUPPORT,
    max_features: MaxFeatures = DEFAULT_MAX_FEATURES,
    exclude: Excluded = None,
    sample_rows: SampleRows = SAMPLE_ROWS,
    seed: Seed = 0,
    columns: WithColumns = False,
    headroom: Headroom = 0.0,
    seek: SeekOption = None,
    storage: Budget = None,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Say what each layout would read for a workload, and which one pays.

    Nothing is written.
    """
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        advice = found.advise(
            Workload.read(workload, {table: found.schema}, dialect=dialect),
            clustering=chosen_clusterings(clustering),
            block_rows=block_rows,
            min_support=min_support,
            max_features=max_features,
            exclude=tuple(exclude or ()),
            sample_rows=sample_rows,
            seed=seed,
            columns=columns,
            headroom=headroom,
            profile=None if seek is None else seek_profile(seek),
            storage=storage,
            progress=bars,
        )
    if as_json:
        print_json(_plain_advice(advice))
    else:
        _print_advice(advice)


def optimize(
    lake: LakeAt,
    table: TableName,
    workload: Workloads,
    dialect: Dialect = "spark",
    clustering: Clusterings = None,
    block_rows: BlockRows = BLOCK_ROWS,
    min_support: MinSupport = DEFAULT_MIN_SUPPORT,
    max_features: MaxFeatures = DEFAULT_MAX_FEATURES,
    exclude: Excluded = None,
    sample_rows: SampleRows = SAMPLE_ROWS,
    seed: Seed = 0,
    columns: WithColumns = False,
    headroom: Headroom = 0.0,
    seek: SeekOption = None,
    storage: Budget = None,
    keep_features: Annotated[
        bool, typer.Option("--keep-features", help="Store features as columns, for other engines and rewrite.")
    ] = False,
    spark: WithSpark = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Lay a table out for a workload, if that pays, in one atomic commit."""
    found = _lake(lake, spark, storage_option).table(table)
    with Bars(quiet=as_json) as bars:
        advice = found.advise(
            Workload.read(workload, {table: found.schema}, dialect=dialect),
            clustering=chosen_clusterings(clustering),
            block_rows=block_rows,
            min_support=min_support,
            max_features=max_features,
            exclude=tuple(exclude or ()),
            sample_rows=sample_rows,
            seed=seed,
            columns=columns,
            headroom=headroom,
            profile=None if seek is None else seek_profile(seek),
            storage=storage,
            progress=bars,
        )
        done = found.optimize(advice, keep_features=keep_features, progress=bars)
    if as_json:
        print_json({"advice": _plain_advice(advice), "optimized": dataclasses.asdict(done)})
        return
    _print_advice(advice)
    if done.version is None:
        typer.echo("Nothing was written." if advice.design is None else f"Nothing was written: {done.reason}.")
    else:
        typer.echo(f"Version {done.version}: {done.chunks:,} chunks, {done.blocks:,} blocks, {_what_was_done(advice)}.")


def query(
    lake: LakeAt,
    sql: Statement,
    limit: Annotated[int, typer.Option(min=0, help="Rows to print, at most.")] = 100,
    log: Annotated[bool, typer.Option("--log", help="Remember the query in the logs of its tables.")] = False,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Run a query in Spark, reading only what can matter."""
    from skipstone.spark.failures import spark_failures_as_ours

    opened = _lake(lake, True, storage_option)
    opened.log_queries = log
    frame = opened.sql(sql)
    with spark_failures_as_ours("query"):
        rows: pa.Table = frame.limit(limit).toArrow()
    if as_json:
        twice = [name for name, count in Counter(rows.schema.names).items() if count > 1]
        if twice:
            raise InvalidInput(f"the result has several columns of one name: {listed(twice)}; tell them apart with AS")
        print_json({"rows": rows.to_pylist(), "scans": [dataclasses.asdict(one) for one in opened.last_scan]})
        return
    # By position, because two columns of a result may have one name.
    print_grid(grid(*rows.schema.names), zip(*(column.to_pylist() for column in rows.columns), strict=True))
    for one in opened.last_scan:
        typer.echo(
            f"{one.table}: read {one.read.blocks:,} of {sum(chunk.blocks for chunk in one.chunks):,} blocks, "
            f"{one.read.rows:,} of {one.plain.rows:,} rows"
        )


def explain(
    lake: LakeAt,
    sql: Statement,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Say which blocks a query would read, which it would skip, and why.

    Nothing is read.
    """
    reports = _lake(lake, False, storage_option).explain(sql)
    if as_json:
        print_json([dataclasses.asdict(one) for one in reports])
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
        print_json([dataclasses.asdict(one) for one in found])
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
                if layout.seek_cost is not None:
                    cost = f"{layout.seek_cost:.1f} ms of seeks a row group for the workload they were ordered for"
                    typer.echo(f"    columns ordered, {layout.duplicates} duplicates: {cost}")
            if one.promise is not None:
                typer.echo(f"  {_promised(one.promise)}")
            for name, kind in one.columns:
                typer.echo(f"  {name}  {kind}")


def _promised(promise: Promise) -> str:
    """The prediction of the last layout beside what was read since."""
    share = promise.predicted_rows_share
    predicted = "unknown" if share is None else f"{100 * share:.1f} % of rows"
    read = promise.read_rows_share
    since = "no query was logged since" if read is None else f"{promise.logged_queries:,} logged: {100 * read:.1f} %"
    return f"version {promise.version} was expected to read {predicted}; {since}"


def history(
    lake: LakeAt,
    table: TableName,
    limit: Annotated[int | None, typer.Option(min=1, help="The latest so many.")] = None,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """List the commits of a table, latest first."""
    commits = _lake(lake, False, storage_option).table(table).history(limit)
    if as_json:
        print_json([dataclasses.asdict(one) for one in commits])
        return
    for one in commits:
        metrics = ", ".join(f"{name} {value}" for name, value in one.metrics)
        typer.echo(f"{one.version:>5}  {one.timestamp:%Y-%m-%d %H:%M:%S}  {one.operation:<10} {metrics}")


def restore(
    lake: LakeAt,
    table: TableName,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="A version from the table's history.")],
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
    if not 0 <= retain_hours <= LONGEST_RETENTION:
        raise InvalidInput(f"--retain-hours goes from 0 to {LONGEST_RETENTION:,}; it was {retain_hours:g}")
    found = _lake(lake, False, storage_option).table(table)
    report = found.vacuum(
        timedelta(hours=retain_hours), dry_run=not delete, allow_short_retention=allow_short_retention
    )
    if as_json:
        print_json(dataclasses.asdict(report))
        return
    for path in report.files:
        typer.echo(path)
    verb = "would be deleted; add --delete to do it" if report.dry_run else "deleted"
    typer.echo(f"{len(report.files):,} files, {report.bytes:,} bytes {verb}")


def export(
    lake: LakeAt,
    table: TableName,
    version: Annotated[int | None, typer.Option(help="A version from the table's history; else the latest.")] = None,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Publish a table in place, without copying, so that other engines read it.

    What other engines see is a Delta table of the same files; it moves on with the next export.
    """
    found = _lake(lake, False, storage_option).table(table)
    published = found.export(version)
    if as_json:
        print_json({**dataclasses.asdict(published), "uri": found.location.uri})
    else:
        typer.echo(
            f"{found.location.uri} is a Delta table at version {published.delta_version}: "
            f"{published.files_added:,} files joined, {published.files_removed:,} left"
        )


def _lake(path: str, spark: bool, options: Sequence[str] | None) -> Lake:
    session = None
    if spark:
        from skipstone.spark.quiet import quiet_session

        session = quiet_session(verbose=logging.getLogger("skipstone").isEnabledFor(logging.DEBUG))
    return open_lake(path, spark=session, storage_options=storage_options(options))


def _plain_advice(advice: Advice) -> dict[str, Any]:
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
            {"filter": sql_text(one.filter), "weight": one.weight, "columns": one.columns} for one in advice.features
        ],
        "queries": [dataclasses.asdict(one) for one in advice.forecasts],
        "columns": None if advice.columns is None else dataclasses.asdict(advice.columns),
    }


def _print_advice(advice: Advice) -> None:
    costs = ("stored", "to write") if advice.storage is not None else ()
    read = ("rows read", "cells read", "bytes read")
    rows: list[tuple[object, ...]] = [
        (
            cell(one.name, style="bold" if one.name == advice.chosen else ""),
            *((f"{one.storage:.2f} x", _megabytes(one.written_bytes)) if costs else ()),
            *(f"{100 * share:.1f} %" for share in (one.rows, one.cells, one.bytes)),
        )
        for one in advice.candidates
    ]
    rows.append(("no layout can read less than", *("" for _ in costs), f"{100 * advice.lower_bound:.1f} %", "", ""))
    print_grid(grid("layout", *costs, *read, numbers=(*costs, *read)), rows)
    for reason in advice.reasons:
        typer.echo(reason if reason.startswith("columns: ") else f"{advice.chosen}: {reason}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _what_was_done(advice: Advice) -> str:
    rows = [] if advice.chosen == NO_CHANGE else [f"laid out by {advice.chosen}"]
    ordered = ["columns in another order"] if advice.columns is not None and advice.columns.advised else []
    return ", ".join(rows + ordered)


def _print_commit(table: Table, as_json: bool) -> None:
    commit = table.history(1)[0]
    if as_json:
        print_json(dataclasses.asdict(commit))
    else:
        metrics = "".join(f", {name} {value}" for name, value in commit.metrics)
        typer.echo(f"{table.name} is at version {commit.version}: {commit.operation}{metrics}")

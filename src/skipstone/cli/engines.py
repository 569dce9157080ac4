"""The commands for other engines and for the log: a query with the conditions it implies, and what was asked so far."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Annotated

import typer

from skipstone.cli.options import AsJson, LakeAt, Statement, StorageOption, TableName, storage_options
from skipstone.cli.rendering import grid, print_grid, print_json
from skipstone.lake import open_lake

__all__ = ["log", "rewrite"]


class Engine(StrEnum):
    """The engines that a query can be rewritten for."""

    duckdb = "duckdb"
    spark = "spark"
    trino = "trino"


def rewrite(
    lake: LakeAt,
    sql: Statement,
    dialect: Annotated[Engine, typer.Option(help="The engine whose SQL the query is in.")] = Engine.spark,
    time_zone: Annotated[str, typer.Option(help="The time zone of the engine's session.")] = "UTC",
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """Print a query with the conditions that its filter implies, for other engines.

    They are conditions on features. The answer stays the same. Tables need features kept as columns (optimize
    --keep-features) and an export after it.
    """
    found = open_lake(lake, storage_options=storage_options(storage_option)).rewrite(
        sql, dialect=dialect.value, time_zone=time_zone
    )
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    typer.echo(found.sql)
    for one in found.mentions:
        for reason in one.reasons:
            typer.echo(f"{one.alias}: {reason}", err=True)


def log(
    lake: LakeAt,
    table: TableName,
    limit: Annotated[int, typer.Option(min=1, help="The latest so many.")] = 20,
    storage_option: StorageOption = None,
    as_json: AsJson = False,
) -> None:
    """List what was asked of a table, and what it read.

    The latest comes first.
    """
    queries = open_lake(lake, storage_options=storage_options(storage_option)).table(table).log()[: -limit - 1 : -1]
    if as_json:
        print_json([dataclasses.asdict(one) for one in queries])
        return
    if not queries:
        typer.echo(f"no query on {table} was logged; query --log and open(log_queries=True) do that")
        return
    rows = (
        (
            f"{one.asked_at:%Y-%m-%d %H:%M:%S}",
            f"{one.blocks_read:,} of {one.blocks_total:,}",
            f"{one.rows_read:,} of {one.rows_total:,}",
            f"{one.bytes_read:,}",
            "" if one.seconds is None else f"{one.seconds:.3f}",
            one.sql,
        )
        for one in queries
    )
    print_grid(grid("asked at (UTC)", "blocks", "rows", "bytes", "seconds", "statement"), rows)

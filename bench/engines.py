"""Engines that answer queries from files, behind one small Protocol, so that they can take turns in a timed run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import polars
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from bench.quiet_duckdb import connect
from bench.skipping import data_files

Answer = Sequence[tuple[Any, ...]]
"""The rows of a result, collected in this process."""


class Engine(Protocol):
    """Something that holds tables open and answers SQL."""

    @property
    def name(self) -> str:
        """Return the engine's name as reports print it."""

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""

    def close(self) -> None:
        """Let go of tables and memory."""


class DuckDB:
    """DuckDB on Parquet files, with its own skipping by row group statistics."""

    name = "duckdb"

    def __init__(self, tables: Mapping[str, Path], threads: int = 2) -> None:
        self._connection = connect(threads=threads)
        for table, dataset in tables.items():
            files = [str(file) for file in data_files(dataset)]
            self._connection.execute(f"create view {table} as select * from read_parquet({files})")

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""
        rows: Answer = self._connection.sql(sql).fetchall()
        return rows

    def close(self) -> None:
        """Let go of tables and memory."""
        self._connection.close()


class Polars:
    """Polars' lazy scans behind its SQL front end, for the queries that it knows how to read."""

    name = "polars"

    def __init__(self, tables: Mapping[str, Path]) -> None:
        self._context = polars.SQLContext(
            {table: polars.scan_parquet([str(file) for file in data_files(place)]) for table, place in tables.items()}
        )

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""
        rows: Answer = self._context.execute(for_polars(sql)).collect().rows()
        return rows

    def close(self) -> None:
        """Let go of tables and memory."""


class Spark:
    """Spark's own Parquet reader, with filter pushdown as it comes."""

    name = "spark"

    def __init__(self, tables: Mapping[str, Path], session: Any) -> None:
        self._session = session
        self._tables = tuple(tables)
        for table, dataset in tables.items():
            files = [str(file) for file in data_files(dataset)]
            session.read.parquet(*files).createOrReplaceTempView(table)

    def run(self, sql: str) -> Answer:
        """Answer a query and bring the whole result here."""
        table: pa.Table = self._session.sql(sql).toArrow()
        return [tuple(row.values()) for row in table.to_pylist()]

    def close(self) -> None:
        """Drop the views; the session belongs to the caller."""
        for table in self._tables:
            self._session.catalog.dropTempView(table)


def spark_session(threads: int = 2, memory: str = "4g") -> Any:
    """Start, or find, a local Spark session with the settings of all our measurements."""
    from pyspark.sql import SparkSession

    # Workers are found through PATH otherwise, and then lack the packages of the virtual environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(threads),
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{threads}]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def for_polars(sql: str) -> str:
    """Rewrite a query into what Polars' SQL reads: constants computed, dates as casts of text.

    >>> for_polars("select a from t where d < date '1994-01-01' + interval '1' year and e between 0.05 - 0.01 and 1")
    "SELECT a FROM t WHERE d < CAST('1995-01-01' AS DATE) AND e BETWEEN 0.04 AND 1"
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Add, exp.Sub)):
        if node.parent is not None and not node.find(exp.Column):
            node.replace(simplify(node.copy()))
    return tree.sql("postgres")

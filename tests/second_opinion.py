"""DuckDB as the second opinion on what a filter means."""

from __future__ import annotations

import duckdb

__all__ = ["second_opinion"]


def second_opinion() -> duckdb.DuckDBPyConnection:
    """Connect to a DuckDB that evaluates filters as they are written, in UTC.

    Its rewriting of expressions is off: DuckDB 2.0 turns `-x < 'NaN'` into `x > 'NaN'`, because NaN is its own
    negative, and so finds no row; Spark, and DuckDB without that rule, find all that are not NaN.
    """
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET disabled_optimizers = 'expression_rewriter'")
    return connection

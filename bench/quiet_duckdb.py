"""DuckDB connections that print no progress: what an experiment prints is its report."""

from __future__ import annotations

import duckdb

__all__ = ["connect"]


def connect(**settings: object) -> duckdb.DuckDBPyConnection:
    """Open a database of its own in memory, with settings by name.

    >>> connect(threads=2).sql("select current_setting('threads')").fetchall()
    [(2,)]
    """
    connection = duckdb.connect()
    for name, value in {"enable_progress_bar": False, **settings}.items():
        connection.execute(f"set {name} = '{value}'")
    return connection

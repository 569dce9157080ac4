"""Small TPC-H data, generated once for all benchmark tests and kept between runs like any other benchmark data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.engines import spark_session
from bench.tpch.data import connect_to, denormalised, normalised

TINY = 0.01


@pytest.fixture(scope="session")
def tiny_wide() -> Path:
    """Return the wide table at scale factor 0.01: 60,175 rows."""
    return denormalised(TINY)


@pytest.fixture(scope="session")
def tiny_tables() -> Path:
    """Return the eight normalised tables at scale factor 0.01."""
    return normalised(TINY)


@pytest.fixture(scope="session")
def duck(tiny_tables: Path, tiny_wide: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return DuckDB with the eight tables and `denorm`."""
    connection = connect_to(tiny_tables)
    connection.execute(f"create view denorm as select * from read_parquet('{tiny_wide}/*.parquet')")
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def spark_for_bench() -> Any:
    """Return the Spark session of this process, which other tests may share, so nobody stops it here."""
    return spark_session(memory="1g")

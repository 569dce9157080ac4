"""A Spark session for a terminal: what Java and Spark print on standard error goes nowhere.

Whatever goes wrong reaches us as an exception, and is told as one of ours; the page of log that comes with it helps
nobody who did not ask for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from skipstone.spark.failures import spark_failures_as_ours
from skipstone.spark.session import local_session

__all__ = ["quiet_session"]

_LOGGERS_OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_NEVER = 100
"""A level above all levels."""


def quiet_session(*, verbose: bool = False) -> SparkSession:
    """Find or start a local session; `verbose` lets it print."""
    if not verbose:
        for name in _LOGGERS_OF_QUERIES:
            PySparkLogger.getLogger(name).setLevel(_NEVER)
    with spark_failures_as_ours("starting Spark"), nullcontext() if verbose else _children_say_nothing():
        return local_session()


@contextmanager
def _children_say_nothing() -> Iterator[None]:
    """Let processes that are started inside the block print their errors to nobody.

    Java is started once and keeps what it was given, with its Python workers; this process gets its own back.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

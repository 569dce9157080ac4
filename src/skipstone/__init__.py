"""Skipstone lays lakehouse tables out for the queries people really run.

It reads a query workload, finds the filters that queries share, searches for a physical layout, writes it with
Spark, and answers queries by reading only the blocks that can matter.

    import skipstone as ss

    lake = ss.open("s3://bucket/lake", spark=spark)
    table = lake.create("sales", "/data/sales.parquet")
    work = ss.Workload.read("queries.sql", {"sales": table.schema})
    table.optimize(table.advise(work))
    lake.sql("SELECT ... FROM sales WHERE ...")

The names are loaded when they are first used, so that `skipstone --help` need not wait for Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skipstone.errors import SkipstoneError
    from skipstone.lake import Lake, Table
    from skipstone.lake import open_lake as open  # noqa: A004 - `skipstone.open(path)` says what it does
    from skipstone.scan.plan import Skipping
    from skipstone.workload.reading import Workload

__version__ = "0.1.0"

__all__ = ["Lake", "Skipping", "SkipstoneError", "Table", "Workload", "__version__", "open"]

_HOMES = {
    "Lake": ("skipstone.lake", "Lake"),
    "SkipstoneError": ("skipstone.errors", "SkipstoneError"),
    "Skipping": ("skipstone.scan.plan", "Skipping"),
    "Table": ("skipstone.lake", "Table"),
    "Workload": ("skipstone.workload.reading", "Workload"),
    "open": ("skipstone.lake", "open_lake"),
}


def __getattr__(name: str) -> object:
    """Load a name of the public surface from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = globals()[name] = getattr(importlib.import_module(module), attribute)
    return value

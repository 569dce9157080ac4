"""Skipstone lays lakehouse tables out for the queries people really run.

It reads a query workload, finds the filters that queries share, searches for a physical layout, writes it with
Spark, and answers queries by reading only the blocks that can matter.

    import skipstone as ss

    lake = ss.open("s3://bucket/lake", spark=spark)
    table = lake.create("sales", "/data/sales.parquet")
    work = ss.Workload.read("queries.sql", {"sales": table.schema})
    table.optimize(table.advise(work))
    lake.sql("SELECT ... FROM sales WHERE ...")
"""

from skipstone.errors import SkipstoneError
from skipstone.lake import Lake, Table
from skipstone.lake import open_lake as open  # noqa: A004 - `skipstone.open(path)` says what it does
from skipstone.scan.plan import Skipping
from skipstone.workload.reading import Workload

__version__ = "0.1.0"

__all__ = ["Lake", "SkipstoneError", "Skipping", "Table", "Workload", "__version__", "open"]

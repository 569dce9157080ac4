"""Skipstone lays lakehouse tables out for the queries people really run.

It reads a query workload, finds the filters that queries share, searches for a physical layout, writes it with
Spark, and answers queries by reading only the blocks that can matter.

>>> import skipstone
>>> skipstone.__version__.count(".")
2
"""

__version__ = "0.1.0"

__all__ = ["__version__"]

"""Engines agree on every query of the wide table, so that their times are times for the same work."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bench.engines import Answer, DuckDB, Engine, Polars, Spark
from bench.tpch.queries import Schema, queries

WIDE = tuple(Schema.WIDE.templates)


def rounded(rows: Answer) -> list[tuple[Any, ...]]:
    """Return rows with numbers of every type rounded alike; engines differ in the scale of a quotient of decimals."""
    return [tuple(round(float(v), 2) if isinstance(v, int | float | Decimal) else v for v in row) for row in rows]


def check_same_answers(first: Engine, second: Engine, templates: Sequence[str]) -> None:
    compared = 0
    for query in queries(templates, 1, seed=1, scale=0.01):
        answer = rounded(first.run(query.sql))
        assert answer == rounded(second.run(query.sql)), query.template
        compared += len(answer)
    assert compared > len(templates)


def test_duckdb_and_polars_agree_on_every_wide_template(tiny_wide: Path) -> None:
    first, second = DuckDB({"denorm": tiny_wide}), Polars({"denorm": tiny_wide})
    check_same_answers(first, second, WIDE)
    first.close()
    second.close()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_duckdb_and_spark_agree_on_the_templates_of_the_papers(tiny_wide: Path, spark_for_bench: Any) -> None:
    first, second = DuckDB({"denorm": tiny_wide}), Spark({"denorm": tiny_wide}, spark_for_bench)
    check_same_answers(first, second, ("q3", "q5", "q6", "q8", "q10", "q12", "q14", "q19"))
    first.close()
    second.close()
    assert not spark_for_bench.catalog.tableExists("denorm")

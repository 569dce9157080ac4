"""`advise` and `optimize` with a budget of storage, end to end."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from skipstone.lake import open_lake
from tests.cli.running import error_of, json_of, printed
from tests.relayout.test_partial_replicas import rows_in_conflict, statements

OPTIONS = ("--block-rows", 100, "--clustering", "sort", "--storage", 1.2)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "queries.sql").write_text(";\n".join(statements(1)))
    pq.write_table(rows_in_conflict(), home / "t.parquet")
    printed("create", home / "lake", "t", home / "t.parquet")
    return home


def test_what_each_costs_to_store_to_write_and_to_query_is_shown_and_the_best_is_written(home: Path) -> None:
    said = printed("optimize", home / "lake", "t", "-w", home / "queries.sql", *OPTIONS).splitlines()
    assert said[0].split() == ["layout", "stored", "to", "write", *["rows", "read", "cells", "read", "bytes", "read"]]
    names = [line.split("  ")[0].strip() for line in said[2:7]]
    assert names == ["no change", "sort", "gsop", "gsop-r", "no layout can read less than"]
    stored = [
        float(line.strip().removeprefix(name).split()[0]) for name, line in zip(names[:4], said[2:6], strict=True)
    ]
    assert stored[:3] == [1.0, 1.0, 1.0]
    assert 1.0 < stored[3] <= 1.2
    assert said[-1].startswith("Version 2: 1 chunks, ")
    assert said[-1].endswith("laid out by gsop-r.")
    (scan,) = json_of("explain", home / "lake", "SELECT price, note FROM t WHERE kind = 3")
    assert scan["read"]["row_ids"] == 0
    assert scan["read"]["cells"] < scan["plain"]["cells"] / 10
    [layout] = scan["chunks"][0]["path"]
    assert layout["columns"] == ["kind", "price", "note"]
    assert layout["cells"] == 3 * layout["rows_read"] == scan["chunks"][0]["read"]["cells"]
    assert open_lake(home / "lake").table("t").scan().count() == rows_in_conflict().num_rows
    metrics = dict(json_of("history", home / "lake", "t")[0]["metrics"])
    assert metrics["clustering"] == "gsop-r"
    assert 1.0 < metrics["storage"] <= 1.2
    assert metrics["predicted_storage"] == pytest.approx(metrics["storage"], abs=0.01)


def test_without_a_budget_several_layouts_are_not_thought_of(home: Path) -> None:
    advice = json_of("advise", home / "lake", "t", "-w", home / "queries.sql", "--clustering", "none")
    assert [one["name"] for one in advice["candidates"]] == ["no change", "none"]


def test_a_budget_below_the_table_is_an_error(home: Path) -> None:
    code, said = error_of("advise", home / "lake", "t", "-w", home / "queries.sql", "--storage", 0.5)
    assert code == 2
    assert "a storage budget is a multiple of the table's size from 1.0 (no replicas) to 10; it is 0.5" in said

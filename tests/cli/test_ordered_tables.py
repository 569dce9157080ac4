"""`advise --columns` and `optimize --columns`: an order of the columns from the workload that drives the rows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone.lake import open_lake
from tests.cli.running import error_of, json_of, printed


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    chance = random.Random(1)
    rows = {f"c{number}": [chance.randrange(1000) for _ in range(500)] for number in range(40)}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    printed("create", tmp_path / "lake", "wide", tmp_path / "rows.parquet")
    return tmp_path / "lake"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Five topics of four columns; the filter keeps every row, so that rows need no layout."""
    chance = random.Random(2)
    columns = chance.sample(range(40), 20)
    topics = [columns[4 * topic : 4 * topic + 4] for topic in range(5)]
    statements = [
        f"SELECT {', '.join(f'sum(c{column})' for column in topic)} FROM wide WHERE c{topic[0]} >= -{number}"
        for number in range(1, 5)
        for topic in topics
    ]
    path = tmp_path / "queries.sql"
    path.write_text(";\n".join(statements))
    return path


def test_columns_are_ordered_where_rows_stay(lake: Path, workload: Path) -> None:
    said = printed("optimize", lake, "wide", "-w", workload, "--columns", "--headroom", 0.05).splitlines()
    assert said[-2].startswith("columns: by the profile power, an order made for this workload seeks ")
    assert said[-1] == "Version 2: 1 chunks, 1 blocks, columns in another order."
    table = open_lake(lake).table("wide")
    (file,) = table.snapshot().block_sets[0].files
    stored = pq.read_schema(f"{table.location.uri}/{file}").names
    assert [name for name in stored if name in table.schema.names] != table.schema.names
    assert sorted(name for name in stored if not name.startswith("_skipstone_")) == sorted(table.schema.names)
    (layout,) = json_of("show", lake, "wide")[0]["layouts"]
    assert layout["duplicates"] == len(stored) - len(table.schema.names)
    copies, cost = layout["duplicates"], layout["seek_cost"]
    shown = f"    columns ordered, {copies} duplicates: {cost:.1f} ms of seeks a row group "
    assert printed("show", lake, "wide").splitlines()[2].startswith(shown)


def test_advice_as_json_says_what_an_order_saves(lake: Path, workload: Path) -> None:
    advice = json_of("advise", lake, "wide", "-w", workload, "--columns", "--seek", "linear")
    assert advice["columns"]["profile"] == "linear"
    assert advice["columns"]["advised"]
    assert advice["columns"]["then"] < advice["columns"]["now"]
    assert json_of("advise", lake, "wide", "-w", workload)["columns"] is None


def test_an_unknown_profile_is_named_with_those_that_there_are(lake: Path, workload: Path) -> None:
    code, error = error_of("advise", lake, "wide", "-w", workload, "--columns", "--seek", "pwoer")
    assert code == 2
    assert 'no seek profile "pwoer"' in error

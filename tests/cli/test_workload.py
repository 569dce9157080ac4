"""`skipstone workload show`: the whole report of a small log, letter by letter, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import error_of, json_of, printed

LOG = """
SELECT sum(revenue) FROM sales WHERE product = 'shoes';
SELECT sum(revenue) FROM sales WHERE product IN ('shoes', 'shirts') AND revenue > 32;
SET spark.sql.ansi.enabled = true;
SELECT count(*) FROM sales JOIN returns USING (id) WHERE product = 'shirts' AND revenue > 21;
SELECT product FROM sales WHERE
  revenue >;
SELECT id FROM sales WHERE sold >= '2024-01-01';
SELECT count(*) FROM sales WHERE product = 'shoes';
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sql"
    path.write_text(LOG)
    return path


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "sales.ddl"
    path.write_text("id INT, product STRING, revenue INT, sold DATE")
    return path


def test_the_report_of_a_small_log(log: Path, schema: Path) -> None:
    said = printed("workload", "show", log, "--schema", schema, "--min-support", "2")
    assert said == (Path(__file__).parent / "small_log.txt").read_text()


def test_json_has_the_same_and_all_problems_with_their_places(log: Path, schema: Path) -> None:
    report = json_of("workload", "show", log, "--schema", schema, "--min-support", "2")
    assert (report["statements"], report["queries"], report["problem_count"]) == (7, 5, 1)
    assert report["not_queries"] == {"not a query but SET": 1.0}
    assert report["other_tables"] == {"returns": 1.0}
    (problem,) = report["problems"]
    assert (problem["file"], problem["line"], problem["sql"]) == (
        "log.sql",
        7,
        "SELECT product FROM sales WHERE revenue >",
    )
    (table,) = report["tables"]
    assert table["table"] == "sales"
    assert (table["requests"], table["with_filter"], table["minable"], table["subsumed"]) == (5, 5, 4, 0.8)
    assert table["features"] == [
        {
            "filter": "product = 'shoes'",
            "weight": 2.0,
            "additional": 2.0,
            "covered": 0.4,
            "columns": ["product", "revenue"],
        },
        {
            "filter": "product IN ('shirts', 'shoes') AND revenue > 21",
            "weight": 2.0,
            "additional": 2.0,
            "covered": 0.8,
            "columns": ["id", "product", "revenue"],
        },
    ]
    assert table["stability"][-1] == [1.0, 1.0]
    assert table["choice"] is None


def test_the_number_of_features_is_bounded_and_columns_can_be_excluded(log: Path, schema: Path) -> None:
    def filters(*options: str) -> list[str]:
        (table,) = json_of("workload", "show", log, "--schema", schema, *options)["tables"]
        return [feature["filter"] for feature in table["features"]]

    assert len(filters("--max-features", "1")) == 1
    assert all("product" not in text for text in filters("--exclude", "product"))
    assert not any("sold" in text for text in filters())
    assert "sold >= DATE '2024-01-01'" in filters("--dates")
    assert filters("--exclude", "product", "--exclude", "revenue") == []


def test_an_excluded_column_must_be_there(log: Path, schema: Path) -> None:
    assert error_of("workload", "show", log, "--schema", schema, "--exclude", "produkt") == (
        2,
        'ColumnNotFound: no column "produkt" in the schema of sales (--exclude). Did you mean "product"? '
        "It has: id, product, revenue, sold",
    )


def test_a_table_may_have_another_name_than_its_schema(tmp_path: Path, schema: Path) -> None:
    log = tmp_path / "other.sql"
    log.write_text("SELECT id FROM shop.orders WHERE product = 'shoes'")
    assert "No statement reads sales" in printed("workload", "show", log, "--schema", schema)
    assert "Table orders: 1 requests" in printed("workload", "show", log, "--schema", schema, "--table", "orders")


def test_choose_says_what_was_tried_and_what_was_taken(tmp_path: Path, schema: Path) -> None:
    log = tmp_path / "long.jsonl"
    with log.open("w") as file:
        for number in range(100):
            sql = f"SELECT id FROM sales WHERE product = '{'abcd'[number % 4]}' AND revenue > {number}"
            file.write(json.dumps({"sql": sql, "timestamp": 1_700_000_000 + number}) + "\n")
    (table,) = json_of("workload", "show", log, "--schema", schema, "--choose")["tables"]
    assert table["in_order_of_time"]
    assert table["settings"]["max_features"] == table["choice"]["settings"]["max_features"] == 5
    assert "tried on later requests" in table["choice"]["reason"]
    assert "tried on later requests" in " ".join(
        printed("workload", "show", log, "--schema", schema, "--choose").split()
    )


def test_a_log_that_is_too_short_to_choose_by_is_said_to_be_so(log: Path, schema: Path) -> None:
    said = printed("workload", "show", log, "--schema", schema, "--choose")
    assert "Only 4 requests have a condition that can become a feature; 50 are needed to choose by" in said


def test_letters_that_look_like_markup_are_printed_as_they_are(tmp_path: Path, schema: Path) -> None:
    log = tmp_path / "markup.sql"
    log.write_text("SELECT id FROM sales WHERE product = '[bold]x[/bold]'")
    assert "product = '[bold]x[/bold]'" in printed("workload", "show", log, "--schema", schema)


def test_a_log_that_is_not_there_ends_with_2(tmp_path: Path, schema: Path) -> None:
    assert error_of("workload", "show", tmp_path / "none.sql", "--schema", schema) == (
        2,
        f'InvalidInput: no file or directory "{tmp_path}/none.sql" to read a workload from',
    )


def test_a_ddl_file_that_cannot_be_read_is_answered_with_the_place(tmp_path: Path, log: Path) -> None:
    schema = tmp_path / "bad.sql"
    schema.write_text("SET x = 1;\n\n  CREATE TABLE sales (id INT, (((;\n")
    code, error = error_of("workload", "show", log, "--schema", schema)
    assert code == 2
    assert error.startswith("InvalidQuery: cannot read the schema: ")
    assert "(line 3, column 3" in error
    assert error.splitlines()[1] == "    CREATE TABLE sales (id INT, (((;"


def test_the_support_must_be_positive(log: Path, schema: Path) -> None:
    assert error_of("workload", "show", log, "--schema", schema, "--min-support", "0") == (
        2,
        "InvalidInput: the minimum support must be more than 0, it is 0",
    )

"""`skipstone predicate implies`: yes or no with the reason, exit codes for scripts, errors that point at the word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import error_of, json_of, printed, run


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "sales.ddl"
    path.write_text("CREATE TABLE sales (price INT, tax INT, product STRING, sold DATE)")
    return path


def test_yes_comes_with_the_rule_and_code_0(schema: Path) -> None:
    assert printed("predicate", "implies", "price = 1 AND product LIKE 'ab%'", "price < 5", "--schema", schema) == (
        "yes\n  price < 5 follows from price = 1, by the values of price\n"
    )


def test_no_comes_with_the_missing_step_and_code_1(schema: Path) -> None:
    assert run("predicate", "implies", "price < 7", "price < 5 AND tax = 1", "--schema", schema) == (
        1,
        "no\n"
        "  price < 5 does not follow: p allows price = 5\n"
        "  tax = 1 does not follow: no predicate of p speaks of tax\n",
        "",
    )


def test_the_other_way_round_is_another_question(schema: Path) -> None:
    narrow, wide = (
        "sold = date '2024-05-01'",
        "sold >= date '2024-01-01' AND sold < date '2024-01-01' + interval 1 year",
    )
    assert run("predicate", "implies", narrow, wide, "--schema", schema)[0] == 0
    assert run("predicate", "implies", wide, narrow, "--schema", schema)[0] == 1


def test_as_json_the_answer_has_both_filters_in_canonical_form(schema: Path) -> None:
    assert json_of("predicate", "implies", "NOT (tax <= 2)", "2 < tax", "--schema", schema) == {
        "implies": True,
        "p": "tax > 2",
        "q": "tax > 2",
        "steps": ["tax > 2 is a predicate of p itself"],
        "missing": [],
    }
    code, out, _ = run("predicate", "implies", "tax > 2", "tax > 3", "--schema", schema, "--json")
    assert code == 1
    assert json.loads(out)["missing"] == ["tax > 3 does not follow: p allows tax = 3"]


def test_another_dialect_reads_its_own_functions(schema: Path) -> None:
    said = printed(
        "predicate", "implies", "product ILIKE 'a%'", "product ILIKE 'a%'", "--schema", schema, "--dialect", "postgres"
    )
    assert said.startswith("yes")


@pytest.mark.parametrize(
    ("p", "error"),
    [
        ("price = = 1", "InvalidQuery: something is missing at '=' (line 1, column 9)\n  price = = 1\n          ^"),
        (
            "tax = 1 AND\n  prize < 5",
            'ColumnNotFound: no column "prize" in the schema (line 2, column 3). Did you mean "price"? '
            "It has: price, tax, product, sold",
        ),
    ],
)
def test_bad_sql_ends_with_2_and_points_at_the_place(p: str, error: str, schema: Path) -> None:
    assert error_of("predicate", "implies", p, "price < 5", "--schema", schema) == (2, error)


def test_a_long_line_is_shown_around_the_place(schema: Path) -> None:
    long = " OR ".join(f"price = {number}" for number in range(200))
    code, error = error_of("predicate", "implies", f"{long} OR price = = 1 OR {long}", "price < 5", "--schema", schema)
    _, shown, pointer = error.splitlines()
    assert code == 2
    assert len(shown) <= 102
    assert shown[len(pointer) - 1 :].startswith("= 1 OR price = 0 OR")


def test_a_dialect_that_does_not_exist_ends_with_2(schema: Path) -> None:
    assert error_of("predicate", "implies", "price = 1", "tax = 1", "--schema", schema, "--dialect", "postgers") == (
        2,
        'InvalidInput: no SQL dialect "postgers". Did you mean "postgres"?',
    )


def test_a_schema_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    assert error_of("predicate", "implies", "a = 1", "a = 1", "--schema", tmp_path / "none.parquet") == (
        2,
        f"InvalidInput: there is nothing at {tmp_path}/none.parquet to read a schema from",
    )


def test_of_several_tables_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "all.sql"
    path.write_text("CREATE TABLE a (x INT);\nCREATE TABLE shop.b (y INT);")
    assert error_of("predicate", "implies", "y = 1", "y < 2", "--schema", path) == (
        2,
        f"InvalidInput: {path} describes several tables; name one with --table: a, shop.b",
    )
    assert printed("predicate", "implies", "y = 1", "y < 2", "--schema", path, "--table", "b").startswith("yes")
    assert error_of("predicate", "implies", "y = 1", "y < 2", "--schema", path, "--table", "c")[1].startswith(
        f'TableNotFound: no table "c" in {path}.'
    )

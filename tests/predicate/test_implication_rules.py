"""Which implications are found and which are not, as a person would write them; the pairs are in the docs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from skipstone.predicate.expression import Column, Constant
from skipstone.predicate.implication import Premise, conclusion_of, explain_implication, implication_matrix, implies
from skipstone.predicate.literal import ALWAYS, NEVER, Comparison, Conjunction, Opaque, Operator, Predicate
from skipstone.predicate.parsing import parse_filter

SCHEMA = pa.schema(
    [
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("z", pa.int64()),
        ("small", pa.int32()),
        ("f", pa.float64()),
        ("tax", pa.decimal128(15, 2)),
        ("price", pa.decimal128(15, 2)),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("clock", pa.timestamp("us")),
        ("moment", pa.timestamp("us", "UTC")),
        ("gift", pa.bool_()),
        ("place", pa.struct([("city", pa.string())])),
    ]
)

PAGE = Path(__file__).parents[2] / "docs" / "algorithms" / "implication.md"


def rows_below(title: str) -> list[tuple[str, str]]:
    """The pairs of filters in the tables of one section of the page."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = (line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `"))
    return [(p.strip("`"), q.strip("`")) for p, q in cells]


FOUND, NOT_FOUND = rows_below("What is found"), rows_below("What is not found")


def test_the_page_has_dozens_of_rows_of_either_kind() -> None:
    assert len(FOUND) > 75
    assert len(NOT_FOUND) > 20


@pytest.mark.parametrize(("p", "q"), FOUND)
def test_implications_that_are_found(p: str, q: str) -> None:
    left, right = parse_filter(p, SCHEMA), parse_filter(q, SCHEMA)
    assert implies(left, right)
    explained = explain_implication(left, right)
    assert explained.holds
    assert explained.steps
    assert not explained.missing
    assert implication_matrix([left], [right]).tolist() == [[True]]


@pytest.mark.parametrize(("p", "q"), NOT_FOUND)
def test_implications_that_are_not_claimed(p: str, q: str) -> None:
    left, right = parse_filter(p, SCHEMA), parse_filter(q, SCHEMA)
    assert not implies(left, right)
    explained = explain_implication(left, right)
    assert not explained.holds
    assert explained.missing
    assert implication_matrix([left], [right]).tolist() == [[False]]


def test_what_cannot_run_over_the_end_of_its_type_keeps_the_order_of_a_sum() -> None:
    assert implies(parse_filter("x + 1 > 5", SCHEMA), parse_filter("x > 4", SCHEMA)), "runs over to far below 5"
    assert not implies(parse_filter("x + 1 < 5", SCHEMA), parse_filter("x < 4", SCHEMA)), "2**63 - 1 runs over"


def test_never_and_always() -> None:
    p = parse_filter("x > 5", SCHEMA)
    assert implies(NEVER, p)
    assert implies(p, ALWAYS)
    assert implies(ALWAYS, ALWAYS)
    assert implies(NEVER, NEVER)
    assert not implies(ALWAYS, p)
    assert not implies(p, NEVER)
    assert Premise(NEVER).is_impossible


def test_c22_what_may_differ_between_two_evaluations_implies_nothing_and_is_implied_by_nothing() -> None:
    chance = Opaque("rand() < 0.5", frozenset(), deterministic=False)
    alone, certain = Predicate((chance,)), parse_filter("x > 5", SCHEMA)
    assert not implies(alone, alone)
    assert not implies(certain, alone)
    assert not implies(alone, certain)
    both = Conjunction((*certain.predicates, alone))
    assert implies(both, certain), "whatever the chance, x > 5"
    assert not implies(both, both)
    assert implication_matrix([both, alone], [both, alone, certain]).tolist() == [[False, False, True], [False] * 3]


def test_c19_a_bigint_beside_a_double_beyond_what_a_double_tells_apart() -> None:
    x = Column("x", pa.int64())
    double, exact = Constant(float(1 << 53), pa.float64()), Constant(1 << 53, pa.int64())
    as_double = Predicate((Comparison(Operator.EQUAL, x, double),))
    as_whole = Predicate((Comparison(Operator.EQUAL, x, exact),))
    assert not implies(as_double, as_whole), "2**53 + 1 equals 2**53 as a double"
    assert implies(as_double, as_double)


def test_c18_a_decimal_beside_a_double_is_compared_as_a_double() -> None:
    tax = Column("tax", pa.decimal128(15, 2))
    tenth = Predicate((Comparison(Operator.EQUAL, tax, Constant(0.1, pa.float64())),))
    assert implies(tenth, tenth)
    assert not implies(tenth, NEVER), "the DECIMAL 0.10 equals the DOUBLE 0.1 there"
    assert implies(tenth, parse_filter("tax IS NOT NULL", SCHEMA))


def test_c25_columns_that_differ_in_case_or_by_a_dot_are_different() -> None:
    five = Constant(5, pa.int64())
    upper, lower, dotted = (Column(name, pa.int64()) for name in ("X", "x", "a.b"))
    equals = [Predicate((Comparison(Operator.EQUAL, column, five),)) for column in (upper, lower, dotted)]
    assert implication_matrix(equals, equals).tolist() == [[i == j for j in range(3)] for i in range(3)]


def test_o01_a_feature_that_is_null_is_not_implied() -> None:
    assert not implies(parse_filter("x > 5 OR y > 5", SCHEMA), parse_filter("x > 5", SCHEMA))
    assert not implies(parse_filter("NOT (x = 1 AND y = 2)", SCHEMA), parse_filter("x <> 1", SCHEMA))
    assert implies(parse_filter("NOT (x = 1 OR y = 2)", SCHEMA), parse_filter("x <> 1 AND y <> 2", SCHEMA))


@pytest.mark.parametrize(
    ("p", "q", "steps", "missing"),
    [
        ("x > 5", "x > 3", ["x > 3 follows from x > 5, by the values of x"], []),
        ("x > 5 AND y = 1", "x > 5", ["x > 5 is a predicate of p itself"], []),
        ("x < y AND y < 5 AND z = 1", "x < 9", ["x < 9 follows from x < y AND y < 5, by the order of expressions"], []),
        (
            "year(day) = 1994",
            "day < DATE '1996-01-01'",
            ["day < DATE '1996-01-01' follows from year(day) = 1994, by what that says of day"],
            [],
        ),
        (
            "name LIKE 'ab%c'",
            "name LIKE '%b%'",
            ["contains(name, 'b') follows from name LIKE 'ab%c', by its pattern"],
            [],
        ),
        (
            "x = 1 OR y = 2",
            "x = 1 OR y > 1",
            ["x = 1 OR y > 1 follows from x = 1 OR y = 2, whichever of its terms is TRUE"],
            [],
        ),
        ("x > 5 AND x < 3", "y = 1", ["no row satisfies FALSE, so anything follows"], []),
        ("tax >= 0.02", "tax <= 0.05", [], ["tax <= 0.05 does not follow: no predicate of p bounds tax from above"]),
        ("tax <= 0.02", "tax >= 0.00", [], ["tax >= 0.00 does not follow: no predicate of p bounds tax from below"]),
        ("tax BETWEEN 0.02 AND 0.09", "tax <= 0.05", [], ["tax <= 0.05 does not follow: p allows tax = 0.06"]),
        ("tax < 1", "price < 1", [], ["price < 1.00 does not follow: no predicate of p speaks of price"]),
        ("x < 5 OR x IS NULL", "x < 9", [], ["x < 9 does not follow: p allows x IS NULL"]),
        ("x < y", "x < z", [], ["x < z does not follow: no predicate of p tells that x < z"]),
        (
            "x = 1",
            "y = 1 OR name LIKE '%a_'",
            [],
            [
                "name LIKE '%a_' OR y = 1 does not follow: no predicate of p tells that name LIKE '%a_'; "
                "no predicate of p speaks of y"
            ],
        ),
        (
            "x = 1",
            "rand() < 0.5",
            [],
            ["RAND() < 0.5 does not follow: RAND() < 0.5 may differ between two evaluations"],
        ),
        ("x = 1", "y IS NULL OR y IS NOT NULL", ["every row satisfies q"], []),
    ],
)
def test_explanations(p: str, q: str, steps: list[str], missing: list[str]) -> None:
    explained = explain_implication(parse_filter(p, SCHEMA), parse_filter(q, SCHEMA))
    assert list(explained.steps) == steps
    assert list(explained.missing) == missing
    assert explained.holds == (not missing)


def test_a_conclusion_may_be_prepared_once() -> None:
    q = conclusion_of(parse_filter("x > 3", SCHEMA))
    assert Premise(parse_filter("x > 5", SCHEMA)).implies(q)
    assert not Premise(parse_filter("x > 1", SCHEMA)).implies(q)


def test_a_matrix_without_rows_or_columns() -> None:
    p = parse_filter("x > 3", SCHEMA)
    assert implication_matrix([], [p]).shape == (0, 1)
    assert implication_matrix([p], []).shape == (1, 0)
    assert implication_matrix([p, p], [p, ALWAYS]).tolist() == [[True, True], [True, True]]


def test_an_example_is_a_value_that_the_column_can_have() -> None:
    """Between minus infinity and the least FLOAT there are doubles, and no value of a FLOAT column."""
    schema = pa.schema([("single", pa.float32())])
    p = parse_filter("single > float('-infinity') AND single < 1", schema)
    (missing,) = explain_implication(p, parse_filter("single > 0", schema)).missing
    assert missing == "single > 0.0F does not follow: p allows other values of single"

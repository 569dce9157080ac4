"""What parsing, binding and normalising must keep: the rows of a filter, as DuckDB finds them by the text itself."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from skipstone.errors import CannotEvaluate, InvalidInput
from skipstone.predicate.evaluation import evaluate
from skipstone.predicate.literal import Conjunction, Opaque, Predicate
from skipstone.predicate.normalising import conjunction, predicate
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql
from tests.predicate.filter_texts import SCHEMA, Texts, Written, texts
from tests.second_opinion import second_opinion

JUDGED_AT_LEAST = 0.85
"""So many of the filters drawn are understood and run; the rest is left to Spark, and is counted here."""


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = second_opinion()
    connection.execute("SET threads = 1")
    return connection


def parse(text: str) -> Conjunction:
    return parse_filter(text, SCHEMA)


def matches(connection: duckdb.DuckDBPyConnection, conditions: list[str]) -> list[list[bool]]:
    """For each condition the rows for which it is TRUE, all asked at once."""
    listed = ", ".join(f"coalesce(({condition}), false)" for condition in conditions)
    rows = connection.execute(f"SELECT {listed} FROM rows").fetchall()
    return [list(column) for column in zip(*rows, strict=True)]


def ours(filter_: Conjunction, rows: pa.Table) -> list[bool] | None:
    """The rows for which a filter is TRUE, or None where Arrow cannot say."""
    try:
        return [truth is True for truth in evaluate(filter_, rows, time_zone="UTC").to_pylist()]
    except CannotEvaluate:
        return None


def check(connection: duckdb.DuckDBPyConnection, generator: Texts, how_many: int) -> tuple[int, int]:
    """Compare each of several filters; give how many could be compared by evaluating, and by printing for DuckDB."""
    rows = generator.table()
    connection.register("rows", rows)
    written: list[Written] = [generator.condition() for _ in range(how_many)]
    expected = matches(connection, [one.duckdb for one in written])
    filters = [parse(one.spark) for one in written]
    evaluated = printed = 0
    for one, filter_, wanted in zip(written, filters, expected, strict=True):
        found = ours(filter_, rows)
        if found is not None:
            evaluated += 1
            assert found == wanted, f"{one.spark}\n=> {sql(filter_)}"
        try:
            text = sql(filter_, "duckdb")
        except InvalidInput:
            continue
        printed += 1
        assert matches(connection, [text]) == [wanted], f"{one.spark}\n=> {text}"
    return evaluated, printed


@given(texts())
@settings(deadline=None, max_examples=25)
def test_the_canonical_form_has_the_rows_of_the_text(connection: duckdb.DuckDBPyConnection, generator: Texts) -> None:
    check(connection, generator, 4)


def test_hundreds_of_filters_have_the_rows_of_their_text(connection: duckdb.DuckDBPyConnection) -> None:
    counts = [check(connection, Texts(random.Random(seed)), 20) for seed in range(15)]
    evaluated, printed = (sum(column) for column in zip(*counts, strict=True))
    assert evaluated >= JUDGED_AT_LEAST * 300, f"only {evaluated} of 300 were evaluated"
    assert printed >= JUDGED_AT_LEAST * 300, f"only {printed} of 300 were printed for DuckDB"


@pytest.mark.slow
def test_many_filters_have_the_rows_of_their_text(connection: duckdb.DuckDBPyConnection) -> None:
    for seed in range(1_000, 2_000):
        check(connection, Texts(random.Random(seed)), 20)


@given(texts())
@settings(deadline=None, max_examples=100)
def test_the_canonical_text_is_read_back_as_the_same_value(generator: Texts) -> None:
    found = parse(generator.condition().spark)
    if not any(isinstance(one, Opaque) for part in found for one in part.literals):
        assert parse(sql(found)) == found
        assert parse(sql(parse(sql(found)))) == found


@given(texts())
@settings(deadline=None, max_examples=100)
def test_a_canonical_form_is_its_own(generator: Texts) -> None:
    found = parse(generator.condition().spark)
    assert conjunction(found.predicates) == found
    assert conjunction(reversed(found.predicates)) == found
    for part in found:
        assert conjunction([predicate(reversed(part.literals))]) == Conjunction((part,))


@given(texts())
@settings(deadline=None, max_examples=60)
def test_equal_values_have_equal_texts_and_hashes(generator: Texts) -> None:
    one, other = (parse(generator.condition(depth=1).spark) for _ in range(2))
    assert (one == other) == (sql(one) == sql(other))
    if one == other:
        assert hash(one) == hash(other)


@given(texts())
@settings(deadline=None, max_examples=60)
def test_and_and_or_do_not_care_for_order(generator: Texts) -> None:
    p, q = (generator.condition(depth=1).spark for _ in range(2))
    for word in ("AND", "OR"):
        assert parse(f"({p}) {word} ({q})") == parse(f"({q}) {word} ({p})")
        assert parse(f"({p}) {word} ({p})") == parse(p)


@given(texts())
@settings(deadline=None, max_examples=40)
def test_not_partitions_the_known_rows(generator: Texts) -> None:
    """No row satisfies p and NOT p; what satisfies neither is what p does not know."""
    text, rows = generator.condition(depth=1).spark, generator.table()
    parts = [
        ours(parse(one), rows) for one in (text, f"NOT ({text})", f"({text}) IS NOT TRUE", f"({text}) IS NOT FALSE")
    ]
    if None in parts:
        return
    true, false, not_true, not_false = (part for part in parts if part is not None)
    for one, other, neither_one, neither_other in zip(true, false, not_true, not_false, strict=True):
        assert not (one and other)
        assert neither_one == (not one)
        assert neither_other == (not other)


def test_a_predicate_printed_alone_is_one_of_its_conjunction() -> None:
    found = parse("whole > 5 AND (tiny = 1 OR name = 'a')")
    assert [sql(part) for part in found] == ["name = 'a' OR tiny = 1", "whole > 5"]
    assert [type(part) for part in found] == [Predicate, Predicate]

"""The ways in which other systems have given wrong answers because they skipped data, as far as filters go.

Each test is a class of real bugs. A small world of rows is written down; a filter goes the whole way from its text, and
three things must hold: it is TRUE for exactly the rows listed, no block that holds one of them is skipped whatever part
of its statistics is known, and one filter implies another only if its rows are among the other's.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skipstone.errors import CannotEvaluate
from skipstone.predicate.bounds import Bounds, may_match
from skipstone.predicate.evaluation import cannot_evaluate, evaluate, select, value
from skipstone.predicate.expression import Call, Column, Constant, Expression, Scalar, walk
from skipstone.predicate.implication import implies
from skipstone.predicate.literal import Conjunction, Opaque
from skipstone.predicate.parsing import parse_filter

NAN, INF = math.nan, math.inf
KNOWLEDGE = ("everything", "no counts", "no nan count", "no maximum", "no minimum", "short texts", "nothing")
"""How much a reader may know of a block: statistics are lost or cut short, and none of that may lose a row."""


@dataclass(frozen=True)
class Block:
    """Some rows as a block of a table, with honest statistics of every expression, or what is left of them."""

    table: pa.Table
    knowledge: str = "everything"

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows)

    def bounds(self, expression: Expression) -> Bounds | None:
        if self.knowledge == "nothing":
            return None
        try:
            values = value(expression, self.table, time_zone="UTC").to_pylist()
        except CannotEvaluate:
            return None
        known = [one for one in values if one is not None and one == one]
        nulls, nans = values.count(None), sum(one is not None and one != one for one in values)
        minimum, maximum = (min(known), max(known)) if known and _ordered(expression.type) else (None, None)
        if self.knowledge == "short texts" and isinstance(minimum, str) and isinstance(maximum, str):
            minimum, maximum = minimum[:1], _raised(maximum)
        return Bounds(
            minimum=None if self.knowledge == "no minimum" else minimum,
            maximum=None if self.knowledge == "no maximum" else maximum,
            null_count=None if self.knowledge == "no counts" else nulls,
            nan_count=None if self.knowledge in ("no counts", "no nan count") else nans,
        )


def _ordered(type_: pa.DataType) -> bool:
    return not pa.types.is_nested(type_)


def _raised(text: str) -> str | None:
    """Cut a maximum to one letter and raise it, so that it stays above; None where no letter is above."""
    if len(text) <= 1:
        return text
    return chr(ord(text[0]) + 1) if ord(text[0]) < 0xD7FF else None


def check(text: str, table: pa.Table, matching: Sequence[int], *, timezone: str = "UTC") -> Conjunction:
    """The filter is TRUE for exactly these rows, and no block that holds one of them is skipped."""
    filter_ = parse_filter(text, table.schema, timezone=timezone)
    found = evaluate(filter_, table, time_zone="UTC").to_pylist()
    assert [place for place, holds in enumerate(found) if holds] == list(matching), text
    check_blocks(filter_, table, matching)
    return filter_


def check_blocks(filter_: Conjunction, table: pa.Table, matching: Sequence[int]) -> None:
    """No block that holds a matching row is skipped."""
    for start, stop in itertools.combinations(range(table.num_rows + 1), 2):
        if any(start <= place < stop for place in matching):
            for knowledge in KNOWLEDGE:
                block = Block(table.slice(start, stop - start), knowledge)
                assert may_match(filter_, block), f"rows {start} to {stop} skipped, knowing {knowledge}"


def check_skipped(filter_: Conjunction, table: pa.Table, *blocks: Sequence[int]) -> None:
    """These blocks are skipped if all is known: the tests above would say nothing if none ever were."""
    for rows in blocks:
        assert not may_match(filter_, Block(table.take(pa.array(rows)))), f"rows {rows} not skipped"


def check_implications(table: pa.Table, *texts: str) -> None:
    """Where one filter is said to imply another, its rows are among the other's."""
    filters = {text: parse_filter(text, table.schema) for text in texts}
    rows = {
        text: {place for place, holds in enumerate(evaluate(f, table, time_zone="UTC").to_pylist()) if holds}
        for text, f in filters.items()
    }
    for p, q in itertools.product(texts, repeat=2):
        if implies(filters[p], filters[q]):
            assert rows[p] <= rows[q], f"{p}  =>  {q}"
    assert all(implies(filters[text], filters[text]) for text in texts)


class ColumnsOnly(Block):
    """A block whose reader has statistics of columns and of nothing computed from them."""

    def bounds(self, expression: Expression) -> Bounds | None:
        return super().bounds(expression) if isinstance(expression, Column) else None


def floats(*values: float | None) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.float64()), "n": pa.array(range(len(values)), pa.int64())})


def test_c01_nan_taints_no_other_column_and_no_default_bound() -> None:
    table = floats(NAN, 1.0, 2.0, None)
    check("n = 0", table, [0])
    check("x < 0", table, [])
    check("x >= 2", table, [0, 2])

    class Tainted(Block):
        def bounds(self, expression: Expression) -> Bounds | None:
            return Bounds(NAN, NAN, 0) if expression.type == pa.float64() else super().bounds(expression)

    for text in ("x < 0", "x = 1", "x > 100", "x IN (1, 2)"):
        assert may_match(parse_filter(text, table.schema), Tainted(table)), "NaN as a bound says nothing"
    assert not may_match(parse_filter("n > 100", table.schema), Tainted(table))


def test_c02_a_finite_maximum_hides_nan() -> None:
    table = floats(1.0, NAN, 5.0, None)
    for text in ("x > 10", "x >= 10", "NOT (x <= 10)", "NOT (x < 10)", "x = double('NaN')"):
        filter_ = check(text, table, [1])
        check_skipped(filter_, table, [0, 2], [2, 3], [3])
    check("x <= 10", table, [0, 2])


def test_c03_a_negated_range_keeps_nan() -> None:
    table = floats(1.0, NAN, 5.0, None, -3.0)
    filter_ = check("NOT (x BETWEEN 0 AND 10)", table, [1, 4])
    check_skipped(filter_, table, [0, 2, 3])
    check("NOT (x NOT BETWEEN 0 AND 10)", table, [0, 2])


def test_c04_lists_with_nan() -> None:
    table = floats(1.0, NAN, 5.0, None)
    filter_ = check("x IN (double('NaN'), 1)", table, [0, 1])
    check_skipped(filter_, table, [2, 3])
    check("x NOT IN (double('NaN'), 1)", table, [2])
    check("x IN (double('NaN'))", table, [1])


def test_c05_no_proof_that_all_rows_match_rests_on_nan() -> None:
    table = floats(1.0, NAN, 5.0, None)
    check("NOT (x <= 5)", table, [1])
    check_implications(
        table, "x <= 5", "x < 100", "x < double('Infinity')", "x <= double('Infinity')", "x <= double('NaN')",
        "x IS NOT NULL", "x > 5", "x = double('NaN')", "x <> double('NaN')",
    )  # fmt: skip
    schema = table.schema
    assert implies(parse_filter("x IS NOT NULL", schema), parse_filter("x <= double('NaN')", schema))
    assert not implies(parse_filter("x IS NOT NULL", schema), parse_filter("x <= double('Infinity')", schema))


def test_c06_the_two_zeros_are_one_value() -> None:
    table = floats(-0.0, 0.0, 1.0, -1.0, None)
    for zero in ("0.0D", "-0.0D", "0"):
        filter_ = check(f"x = {zero}", table, [0, 1])
        check_skipped(filter_, table, [2], [3])
        check(f"x < {zero}", table, [3])
        check(f"x <= {zero}", table, [0, 1, 3])
        check(f"x > {zero}", table, [2])
        check(f"x IN ({zero}, 7)", table, [0, 1])
    positive, negative = (parse_filter(f"x = {zero}", table.schema) for zero in ("0.0D", "-0.0D"))
    assert positive == negative
    assert hash(positive) == hash(negative), "features are told apart by hash"

    @dataclass(frozen=True)
    class OneSided(Block):
        zero: float = 0.0

        def bounds(self, expression: Expression) -> Bounds | None:
            return Bounds(self.zero, self.zero, 0, 0)

    for zero_ in (0.0, -0.0):
        block = OneSided(table.slice(0, 2), zero=zero_)
        assert may_match(positive, block), "a file whose bound is one zero may hold the other"
        assert may_match(parse_filter("x >= 0.0D", table.schema), block)
        assert may_match(parse_filter("x <= -0.0D", table.schema), block)


def test_c07_is_null_on_a_column_without_statistics() -> None:
    table = pa.table({"added": pa.array([None, None, 3], pa.int64())})
    filter_ = check("added IS NULL", table, [0, 1])
    check_skipped(filter_, table, [2])
    assert check("added <=> NULL", table, [0, 1]) == filter_
    check("NOT (added <=> NULL)", table, [2])
    check("NOT (added <=> 3)", table, [0, 1])


def test_c08_is_not_null_does_not_mean_a_block_without_nulls() -> None:
    table = pa.table({"c": pa.array([1, None, 2, None], pa.int64())})
    filter_ = check("c IS NOT NULL", table, [0, 2])
    check_skipped(filter_, table, [1], [1, 3])


def test_c09_absent_bounds_do_not_mean_that_all_is_null() -> None:
    table = pa.table({"c": ["x" * 5000, "y", None]})
    for text in ("c IS NOT NULL", "c LIKE 'x%'", f"c = '{'x' * 5000}'"):
        filter_ = parse_filter(text, table.schema)

        class NoBounds(Block):
            def bounds(self, expression: Expression) -> Bounds | None:
                return Bounds(null_count=1, nan_count=0)

        assert may_match(filter_, NoBounds(table.slice(0, 2)))
    check("c LIKE 'x%'", table, [0])


def test_c10_unequal_skips_only_blocks_of_one_value() -> None:
    table = pa.table({"c": pa.array([5, 5, 7, None, 4], pa.int64())})
    for text in ("c <> 5", "NOT (c = 5)", "c NOT IN (5)", "c NOT IN (5, 6)"):
        filter_ = check(text, table, [2, 4])
        check_skipped(filter_, table, [0, 1], [0, 3], [3])
    assert may_match(parse_filter("c <> 5", table.schema), Block(table.take(pa.array([2, 4]))))


def test_c11_null_in_a_list_and_not_over_the_unknown() -> None:
    table = pa.table(
        {"a": pa.array([1, 1, 2, None, None, 1], pa.int64()), "b": pa.array([2, None, 3, 2, None, 3], pa.int64())}
    )
    check("a NOT IN (1, NULL)", table, [])
    check("a IN (1, NULL)", table, [0, 1, 5])
    check("NOT (a = 1 AND b = 2)", table, [2, 5])
    check("NOT (a = 1 OR b = 2)", table, [2])
    check("NOT (a <> 1)", table, [0, 1, 5])
    check("(a = 1) IS NOT TRUE", table, [2, 3, 4])
    check("a = NULL OR b = 3", table, [2, 5])
    check_implications(
        table, "a = 1", "NOT (a <> 1)", "(a = 1) IS NOT TRUE", "a <> 1", "a IS NULL", "NOT (a = 1 AND b = 2)",
        "NOT (a = 1 OR b = 2)", "a <> 1 OR b <> 2", "a NOT IN (1, 3)", "a IN (2, 3)",
    )  # fmt: skip
    schema = table.schema
    assert not implies(parse_filter("(a = 1) IS NOT TRUE", schema), parse_filter("NOT (a = 1)", schema))


def test_c12_a_prefix_is_a_range_and_not_a_value_between_the_bounds() -> None:
    table = pa.table({"c": ["a_00", "a_99", "b", "A", None]})
    for text in ("c LIKE 'a%'", "startswith(c, 'a')", "c LIKE 'a\\\\_%'"):
        filter_ = check(text, table, [0, 1])
        check_skipped(filter_, table, [2], [3], [2, 4], [4])
    check("c NOT LIKE 'a%'", table, [2, 3])


def test_c13_cut_texts_and_the_last_letters_of_unicode() -> None:
    long = "z" * 40
    texts = ["\U0010ffff" * 3, "\U0010ffff", "\ud7ff\ud7ff", "\uffff", "😀😀", long, long + "a", "", None]
    table = pa.table({"c": texts})
    for place, text in enumerate(texts[:-1]):
        check(f"c = '{text}'", table, [place])
        below = [other for other, one in enumerate(texts[:-1]) if one.encode() < text.encode()]  # type: ignore[union-attr]
        check(f"c < '{text}'", table, below)
        check(f"c > '{text}'", table, [n for n in range(len(texts) - 1) if n not in (*below, place)])
    check("c LIKE '\U0010ffff%'", table, [0, 1])
    check("c LIKE '\ud7ff%'", table, [2])
    check(f"c LIKE '{long}%'", table, [5, 6])
    check_implications(
        table, "c LIKE '\U0010ffff%'", "c >= '\U0010ffff'", "c LIKE '\ud7ff%'", "c >= '\ud7ff'", "c < '\ue000'",
        f"c LIKE '{long}%'", "c LIKE 'z%'", "c >= 'z'", "c < '{'",
    )  # fmt: skip


def test_c15_microseconds_are_not_cut_to_milliseconds() -> None:
    moments = [datetime.datetime(2024, 1, 1, 0, 0, 0, micro, tzinfo=datetime.UTC) for micro in (456000, 456789, 457000)]
    table = pa.table({"t": pa.array([*moments, None], pa.timestamp("us", "UTC"))})
    filter_ = check("t = TIMESTAMP '2024-01-01 00:00:00.456789'", table, [1])
    check_skipped(filter_, table, [0], [2])
    check("t >= TIMESTAMP '2024-01-01 00:00:00.456789'", table, [1, 2])
    check("t > TIMESTAMP '2024-01-01 00:00:00.456'", table, [1, 2])


def test_c16_zones_before_1900_have_seconds() -> None:
    # Stockholm's own mean time was 1:12:12 ahead of Greenwich; Java's data has Berlin's in its place, 0:53:28.
    moments = [datetime.datetime(1850, 5, 31, 22, 47, second, tzinfo=datetime.UTC) for second in (47, 48, 49)]
    table = pa.table({"t": pa.array([*moments, None], pa.timestamp("us", "UTC"))})
    filter_ = check("t = TIMESTAMP '1850-05-31 22:47:48Z'", table, [1])
    check_skipped(filter_, table, [0], [2])
    check("t < TIMESTAMP '1850-05-31 23:47:48+01:00'", table, [0])
    for text in ("t = TIMESTAMP '1850-06-01 00:00:00+01:12:12'", "t > TIMESTAMP '1850-06-01 00:00:00+01:12:12'"):
        check_blocks(parse_filter(text, table.schema), table, [1] if "=" in text else [2])
    for text in ("year(t) = 1850", "CAST(t AS DATE) = DATE '1850-06-01'"):
        (predicate,) = parse_filter(text, table.schema)
        assert cannot_evaluate(predicate, time_zone="Europe/Stockholm") is not None, "the rules of zones are Spark's"


def test_c17_the_year_1000_is_where_the_proleptic_calendar_puts_it() -> None:
    days = [
        datetime.date(1000, 1, 1),
        datetime.date(1582, 10, 4),
        datetime.date(1582, 10, 15),
        datetime.date(1970, 1, 1),
    ]
    clocks = [datetime.datetime.combine(day, datetime.time()) for day in days]
    table = pa.table({"d": pa.array(days, pa.date32()), "t": pa.array(clocks, pa.timestamp("us"))})
    check("d = DATE '1000-01-01'", table, [0])
    check("t = TIMESTAMP_NTZ '1000-01-01 00:00:00'", table, [0])
    filter_ = check("d < DATE '1582-10-10'", table, [0, 1])
    check_skipped(filter_, table, [2, 3])
    check("year(d) = 1000", table, [0])
    check("d BETWEEN DATE '1582-10-05' AND DATE '1582-10-14'", table, [])


def test_c18_decimals_are_compared_by_value_and_not_by_digits() -> None:
    D = decimal.Decimal  # noqa: N806
    table = pa.table(
        {
            "m": pa.array([D("1.10"), D("11.00"), D("-0.01"), None], pa.decimal128(9, 2)),
            "w": pa.array([D("1.1000"), D("1.1000"), D("-0.0100"), D("0")], pa.decimal128(18, 4)),
        }
    )
    check("m = 1.1", table, [0])
    check("m = 1.1000", table, [0])
    check("m = w", table, [0, 2])
    check("m > 1.0999", table, [0, 1])
    check("m < 0.0001", table, [2])
    filter_ = check("m = 1.105", table, [])
    assert not may_match(filter_, Block(table))
    check("m > 1", table, [0, 1])
    check_implications(table, "m = 1.1", "m = 1.10", "m > 1.0999", "m >= 1.0999", "m >= 1.1", "m < 1.105", "m > 1")


@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        (pa.int32(), pa.int64(), [1, 2**31 - 1, None]),
        (pa.float32(), pa.float64(), [1.0, 0.5, None]),
        (pa.decimal128(9, 2), pa.decimal128(18, 4), [decimal.Decimal("1.00"), decimal.Decimal("2.50"), None]),
        (pa.date32(), pa.timestamp("us"), [datetime.date(1970, 1, 1), datetime.date(1850, 1, 1), None]),
    ],
)
def test_c19_old_files_answer_in_the_new_type(old: pa.DataType, new: pa.DataType, values: list[Scalar]) -> None:
    written = pa.table({"c": pa.array(values, old)})
    widened = pa.table({"c": written["c"].cast(new)})
    first = "TIMESTAMP_NTZ '1970-01-01'" if pa.types.is_date(old) else "1"
    for text, expected in ((f"c = {first}", [True, False, None]), (f"c IN ({first})", [True, False, None])):
        filter_ = parse_filter(text, widened.schema)
        assert evaluate(filter_, widened).to_pylist() == expected
        assert evaluate(filter_, written).to_pylist() == expected


def test_c20_functions_that_do_not_keep_the_order_are_not_asked_of_the_bounds() -> None:
    table = pa.table(
        {
            "n": pa.array([-8, -3, 0, 2, 9, 10, None], pa.int64()),
            "c": ["10", "9", "-8", "2", "ab", "ba", None],
            "d": pa.array([datetime.date(1993, 12, 1), datetime.date(1994, 1, 1)] * 3 + [None], pa.date32()),
        }
    )

    for text, matching in (
        ("n % 8 = 2", [3, 5]),
        ("n % 8 = 0", [0, 2]),
        ("abs(n) = 3", [1]),
        ("abs(n) > 8", [4, 5]),
        ("-n > 2", [0, 1]),
        ("n * -1 > 2", [0, 1]),
        ("month(d) = 1", [1, 3, 5]),
        ("month(d) > 6", [0, 2, 4]),
        ("substring(c, 2, 1) = 'a'", [5]),
        ("length(c) = 1", [1, 3]),
        ("year(d) >= 1994", [1, 3, 5]),
    ):
        filter_ = check(text, table, matching)
        for start, stop in itertools.combinations(range(table.num_rows + 1), 2):
            if any(start <= place < stop for place in matching):
                assert may_match(filter_, ColumnsOnly(table.slice(start, stop - start))), text
    for text in ("sin(n) > 0.5", "hash(n) = 5", "date_format(d, 'MM') = '01'", "CAST(c AS INT) > 9"):
        filter_ = parse_filter(text, table.schema)
        assert may_match(filter_, ColumnsOnly(table)), text


def test_c21_a_function_of_a_column_is_not_the_column() -> None:
    table = pa.table({"c": ["xay", "a", "b", None]})
    filter_ = check("substring(c, 2, 1) = 'a'", table, [0])
    plain = parse_filter("c = 'a'", table.schema)
    assert not implies(filter_, plain)
    assert not implies(plain, filter_)
    for text in ("my_udf(c) = 'a'", "regexp_extract(c, 'a', 0) = 'a'", "upper(c) = 'a'", "trim(c) = 'a'"):
        wrapped = parse_filter(text, table.schema)
        assert not implies(plain, wrapped)
        assert not implies(wrapped, plain)
        for place in range(3):
            witness = ColumnsOnly(table.slice(place, 1))
            assert may_match(wrapped, witness), f"{text}: the bounds of c say nothing of it"


@pytest.mark.parametrize(
    "text",
    ["rand() < 0.5", "c = uuid()", "t < current_timestamp()", "t < now()", "c = current_user()", "d < current_date()"],
)
def test_c22_what_differs_from_run_to_run_is_never_used(text: str) -> None:
    schema = pa.schema([("c", pa.string()), ("t", pa.timestamp("us", "UTC")), ("d", pa.date32())])
    filter_ = parse_filter(text, schema)
    assert not filter_.is_deterministic
    (predicate,) = filter_
    assert cannot_evaluate(predicate, time_zone="UTC") is not None
    assert not implies(filter_, filter_), "two runs are two conditions"
    rows = pa.Table.from_pylist([{"c": "a", "t": None, "d": None}], schema)
    assert may_match(filter_, Block(rows))
    assert select(filter_, rows).residual == (predicate,)


def test_c24_columns_are_compared_row_by_row() -> None:
    table = pa.table({"part": pa.array([1, 1, 2, 2], pa.int64()), "val": pa.array([1, 2, None, 2], pa.int64())})
    check("part != val", table, [1])
    check("part = val", table, [0, 3])
    check("part <=> val", table, [0, 3])
    check("part < val OR val IS NULL", table, [1, 2])


def test_c25_names_with_dots_and_names_that_differ_in_case() -> None:
    struct = pa.struct([("b", pa.int64())])
    table = pa.table(
        {"a": pa.array([{"b": 1}, None], struct), "a.b": pa.array([2, 3], pa.int64()), "Value": pa.array([4, 5])}
    )
    check("a.b = 1", table, [0])
    check("`a.b` = 3", table, [1])
    check("a.b IS NULL", table, [1])
    assert check("value = 4", table, [0]) == check("`Value` = 4", table, [0])
    both = pa.table({"Value": [1, 2], "value": [3, 4]})
    exact = parse_filter("value = 4", both.schema, case_sensitive=True)
    assert evaluate(exact, both).to_pylist() == [False, True]


def test_c26_bounds_of_bytes_say_nothing_of_folded_texts() -> None:
    table = pa.table({"c": ["Anna", "BERT", "zoe", None]})
    check("lower(c) = 'bert'", table, [1])
    check("c ILIKE 'b%'", table, [1])
    check("c = 'bert'", table, [])
    plain, folded = (parse_filter(text, table.schema) for text in ("c = 'bert'", "lower(c) = 'bert'"))
    assert not implies(folded, plain)
    for text in ("c COLLATE UTF8_LCASE = 'bert'", "collate(c, 'UTF8_LCASE') = 'bert'"):
        collated = parse_filter(text, table.schema)
        assert may_match(collated, Block(table.slice(1, 1)))
        assert not implies(collated, plain)
        assert not implies(plain, collated) or _is_opaque(collated)


def _is_opaque(filter_: Conjunction) -> bool:
    return all(isinstance(literal, Opaque) for predicate in filter_ for literal in predicate.literals)


def test_c28_a_block_of_nulls_has_no_bounds() -> None:
    table = pa.table({"c": pa.array([None], pa.int64())})
    check("c IS NULL", table, [0])
    for text in ("c = 1", "c <> 1", "c IS NOT NULL", "c IN (1, 2)"):
        check_skipped(parse_filter(text, table.schema), table, [0])
    check("c IS NULL OR c = 1", table, [0])


def test_c31_infinities_are_values() -> None:
    table = floats(INF, -INF, 1.0, None, NAN)
    check("x = double('Infinity')", table, [0])
    check("x > 1e300", table, [0, 4])
    check("x < -1e300", table, [1])
    check("x <= double('Infinity')", table, [0, 1, 2])
    filter_ = check("x > double('Infinity')", table, [4])
    check_skipped(filter_, table, [0, 1, 2, 3])


def test_c34_a_text_is_not_compared_with_a_number_as_text() -> None:
    table = pa.table({"s": ["10", "2", "9", None], "n": pa.array([10, 2, 9, None], pa.int64())})
    check("n > '9'", table, [0])
    check("n = '10'", table, [0])
    for text in ("s = 10", "s > 9", "s < 3"):
        filter_ = parse_filter(text, table.schema)
        assert not implies(filter_, parse_filter("s > '9'", table.schema))
        for place in range(3):
            assert may_match(filter_, Block(table.slice(place, 1))) or not _number_matches(text, table, place)
        selection = select(filter_, table)
        kept = selection.mask.to_pylist()
        assert all(kept[place] for place in range(3) if _number_matches(text, table, place)), text


def _number_matches(text: str, table: pa.Table, place: int) -> bool:
    """What Spark says: the text is cast to the number's type."""
    row = pa.table({"s": table["n"].slice(place, 1)})
    return bool(evaluate(parse_filter(text, row.schema), row).to_pylist()[0])


DOMAIN_FILTERS = (
    "a = 1", "a <> 1", "a < 1", "a <= 1", "a > 1", "a IN (1, 2)", "a NOT IN (1, 2)", "a IS NULL", "a IS NOT NULL",
    "a <=> 1", "NOT (a <=> 1)", "NOT (a = 1)", "a = 1 OR b = 1", "a = 1 AND b = 1", "NOT (a = 1 AND b = 1)",
    "NOT (a = 1 OR b = 1)", "a = b", "a <> b", "a < b", "a <=> b", "a < b AND b < 2", "a = b AND b = 1",
    "a BETWEEN 0 AND 1", "NOT (a BETWEEN 0 AND 1)", "a = 1 AND a = 2", "a = double('NaN')", "a <= double('NaN')",
    "(a = 1) IS NOT TRUE", "a < 1 OR a IS NULL", "a >= 1 OR b IS NULL", "-a < 0", "abs(a) = 1",
)  # fmt: skip


def test_o01_implication_holds_in_every_row_of_a_small_domain() -> None:
    domain = [0.0, -0.0, 1.0, 2.0, NAN, None]
    pairs = list(itertools.product(domain, repeat=2))
    table = pa.table(
        {"a": pa.array([a for a, _ in pairs], pa.float64()), "b": pa.array([b for _, b in pairs], pa.float64())}
    )
    check_implications(table, *DOMAIN_FILTERS)
    for text in DOMAIN_FILTERS:
        filter_ = parse_filter(text, table.schema)
        truths = evaluate(filter_, table)
        for place in range(table.num_rows):
            for knowledge in KNOWLEDGE:
                holds = truths[place].as_py() is True
                assert may_match(filter_, Block(table.slice(place, 1), knowledge)) or not holds, (text, pairs[place])


def test_o01_the_bit_of_a_block_is_zero_only_if_no_row_makes_the_feature_true() -> None:
    table = floats(1.0, None, NAN)
    feature = parse_filter("NOT (x <= 1)", table.schema)
    assert pc.any(evaluate(feature, table.slice(1, 1))).as_py() is not True
    assert select(feature, table.slice(1, 1)).mask.to_pylist() == [False], "NULL is not TRUE"
    assert select(feature, table).mask.to_pylist() == [False, False, True]


def test_o03_the_same_text_means_other_moments_in_other_zones() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    text = "t >= TIMESTAMP '2024-06-01 00:00:00'"
    utc, stockholm = (parse_filter(text, schema, timezone=zone) for zone in ("UTC", "Europe/Stockholm"))
    assert utc != stockholm
    assert implies(utc, stockholm)
    assert not implies(stockholm, utc)
    (year,) = parse_filter("year(t) = 2024", schema)
    rows = pa.table({"t": pa.array([datetime.datetime(2023, 12, 31, 23, 30, tzinfo=datetime.UTC)], schema[0].type)})
    assert evaluate(year, rows, time_zone="UTC").to_pylist() == [False]
    assert evaluate(year, rows, time_zone="+01:00").to_pylist() == [True]
    assert select(year, rows).residual == (year,), "without a zone nothing is said"


def test_the_statistics_of_these_tests_are_honest() -> None:
    """The small world above must itself be right, else its tests prove nothing."""
    table = floats(1.0, NAN, None, -2.0)
    x = Column("x", pa.float64())
    assert Block(table).bounds(x) == Bounds(-2.0, 1.0, 1, 1)
    doubled = Call("mul", (x, Constant(2.0, pa.float64())), pa.float64())
    assert Block(table).bounds(doubled) == Bounds(-4.0, 2.0, 1, 1)
    assert all(isinstance(part, Expression) for part in walk(doubled))
    texts = Block(pa.table({"c": ["bc", "az"]}), "short texts").bounds(Column("c", pa.string()))
    assert texts == Bounds("a", "c", 0, 0)

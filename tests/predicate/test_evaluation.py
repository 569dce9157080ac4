"""What Spark means by a value, and when we say that Arrow cannot tell."""

from __future__ import annotations

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest

from skipstone.errors import CannotEvaluate, ColumnNotFound, InvalidInput
from skipstone.predicate.arrow.java_patterns import like_parts, rlike_as_re2
from skipstone.predicate.evaluation import Evaluator, Rows, cannot_evaluate, evaluate, select, value
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Expression, Field, Scalar
from skipstone.predicate.literal import (
    ALWAYS,
    NEVER,
    Comparison,
    Conjunction,
    InSet,
    Literal,
    Match,
    MatchKind,
    NullTest,
    Opaque,
    Operator,
    Predicate,
)

NAN = math.nan
LONG, INT, DOUBLE, TEXT = pa.int64(), pa.int32(), pa.float64(), pa.string()
UTC = datetime.UTC


def column(type_: pa.DataType, name: str = "c") -> Column:
    return Column(name, type_)


def only(literal: Literal) -> Predicate:
    return Predicate((literal,))


def compared(operator: str, value_: Scalar, type_: pa.DataType, held: pa.DataType | None = None) -> Predicate:
    """`c operator value`."""
    return only(Comparison(Operator(operator), column(held or type_), Constant(value_, type_)))


def rows(values: object, type_: pa.DataType | None = None) -> pa.Table:
    return pa.table({"c": values if isinstance(values, pa.Array) else pa.array(values, type_)})


def truth(filter_: Predicate | Conjunction, given: Rows, time_zone: str | None = None) -> list[Scalar]:
    answer: list[Scalar] = evaluate(filter_, given, time_zone=time_zone).to_pylist()
    return answer


def computed(expression: Expression, given: Rows, time_zone: str | None = None) -> list[Scalar]:
    answer: list[Scalar] = value(expression, given, time_zone=time_zone).to_pylist()
    return answer


class TestFloats:
    values = rows([1.0, NAN, -0.0, math.inf, None])

    @pytest.mark.parametrize(
        ("operator", "constant", "expected"),
        [
            ("=", NAN, [False, True, False, False, None]),
            ("<>", NAN, [True, False, True, True, None]),
            ("<", NAN, [True, False, True, True, None]),
            ("<=", NAN, [True, True, True, True, None]),
            (">", NAN, [False, False, False, False, None]),
            (">=", NAN, [False, True, False, False, None]),
            ("<=>", NAN, [False, True, False, False, False]),
            ("IS DISTINCT FROM", NAN, [True, False, True, True, True]),
            (">", 0.5, [True, True, False, True, None]),
            ("<=", 0.5, [False, False, True, False, None]),
            (">", math.inf, [False, True, False, False, None]),
            ("=", 0.0, [False, False, True, False, None]),
            ("<", 0.0, [False, False, False, False, None]),
        ],
    )
    def test_nan_is_the_greatest_value_and_equals_itself(
        self, operator: str, constant: float, expected: list[bool | None]
    ) -> None:
        assert truth(compared(operator, constant, DOUBLE), self.values) == expected

    @pytest.mark.parametrize("operator", list(Operator))
    def test_columns_with_nan_compare_as_spark_orders_them(self, operator: Operator) -> None:
        values = [1.0, NAN, None]
        pairs = [(a, b) for a in values for b in values]
        table = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
        literal = Comparison(operator, column(DOUBLE, "a"), column(DOUBLE, "b"))
        assert truth(only(literal), table) == [_spark_compares(operator, a, b) for a, b in pairs]

    def test_a_list_finds_nan_and_both_zeros(self) -> None:
        in_list = InSet(column(DOUBLE), (Constant(0.0, DOUBLE), Constant(NAN, DOUBLE)))
        assert truth(only(in_list), self.values) == [False, True, True, False, None]
        not_in_list = InSet(column(DOUBLE), in_list.values, negated=True)
        assert truth(only(not_in_list), self.values) == [True, False, False, True, None]

    @pytest.mark.parametrize("type_", [pa.float32(), DOUBLE])
    def test_nan_is_one_value_whatever_its_bits(self, type_: pa.DataType) -> None:
        """The opposite of NaN has another sign bit, and a division another payload."""
        single = np.array([0x7FC00000, 0xFFC00000, 0x7FC00005], np.uint32).view(np.float32)
        double = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 5], np.uint64).view(np.float64)
        values = rows(pa.array(double if type_ == DOUBLE else single))
        listed = tuple(Constant(one, type_) for one in (NAN, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0))
        assert truth(only(InSet(column(type_), listed)), values) == [True, True, True]
        assert truth(only(InSet(column(type_), listed, negated=True)), values) == [False, False, False]
        assert truth(compared("=", NAN, type_), values) == [True, True, True]
        both = pa.table({"c": values["c"], "d": values["c"].take(pa.array([1, 2, 0]))})
        assert truth(only(Comparison(Operator.NULL_SAFE_EQUAL, column(type_), column(type_, "d"))), both) == [True] * 3

    def test_a_float_column_and_a_double_constant_meet_as_doubles(self) -> None:
        values = rows([np.float32(0.1), np.float32(0.5)], pa.float32())
        assert truth(compared("=", 0.1, DOUBLE, pa.float32()), values) == [False, False]
        assert truth(compared("=", 0.5, DOUBLE, pa.float32()), values) == [False, True]
        assert truth(compared(">", 0.1, DOUBLE, pa.float32()), values) == [True, True]

    def test_a_bigint_and_a_double_meet_as_doubles_though_that_loses_digits(self) -> None:
        values = rows([2**53, 2**53 + 1])
        assert truth(compared("=", 2.0**53, DOUBLE, LONG), values) == [True, True]


def _spark_compares(operator: Operator, a: float | None, b: float | None) -> bool | None:
    if a is None or b is None:
        equal = a is None and b is None
        return {Operator.NULL_SAFE_EQUAL: equal, Operator.NULL_SAFE_NOT_EQUAL: not equal}.get(operator)
    left, right = ((math.isnan(x), 0.0 if math.isnan(x) else x) for x in (a, b))
    return {
        "=": left == right,
        "<=>": left == right,
        "<>": left != right,
        "IS DISTINCT FROM": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator.value]


class TestNulls:
    def test_a_list_with_null_never_says_no(self) -> None:
        listed = (Constant(1, LONG), Constant(None, LONG))
        values = rows([1, 2, None])
        assert truth(only(InSet(column(LONG), listed)), values) == [True, None, None]
        assert truth(only(InSet(column(LONG), listed, negated=True)), values) == [False, None, None]

    def test_an_empty_list_holds_nothing(self) -> None:
        assert truth(only(InSet(column(LONG), ())), rows([1, None])) == [False, False]

    @pytest.mark.parametrize("size", [2, 30])
    def test_short_and_long_lists_agree(self, size: int) -> None:
        for type_ in (LONG, TEXT):
            convert = (lambda n: n) if type_ is LONG else str
            listed = tuple(Constant(convert(n), type_) for n in range(size))
            values = rows([convert(0), convert(size - 1), convert(size), None], type_)
            assert truth(only(InSet(column(type_), listed)), values) == [True, True, False, None]

    def test_comparing_with_a_null_constant_says_nothing_unless_it_is_null_safe(self) -> None:
        values = rows([1, None])
        assert truth(compared("=", None, LONG), values) == [None, None]
        assert truth(compared("<>", None, LONG), values) == [None, None]
        assert truth(compared("<=>", None, LONG), values) == [False, True]

    def test_the_empty_filters(self) -> None:
        assert truth(ALWAYS, rows([1, None])) == [True, True]
        assert truth(NEVER, rows([1, None])) == [False, False]

    def test_a_column_of_arrows_null_type_is_null_in_every_type(self) -> None:
        values = rows(pa.nulls(2))
        assert truth(compared("=", "a", TEXT), values) == [None, None]
        assert truth(only(NullTest(column(TEXT))), values) == [True, True]

    def test_nulls_inside_a_dictionary_are_nulls(self) -> None:
        encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
        assert truth(only(NullTest(column(TEXT))), rows(encoded)) == [False, True, True]
        assert truth(compared("=", "a", TEXT), rows(encoded)) == [True, None, None]


class TestTexts:
    def test_texts_are_ordered_by_bytes(self) -> None:
        values = rows(["\ud7ff", "\uffff", "\U0010ffff", "Z", "a"])
        assert truth(compared("<", "\U0010ffff", TEXT), values) == [True, True, False, True, True]
        assert truth(compared("<", "a", TEXT), values) == [False, False, False, True, False]

    @pytest.mark.parametrize(
        ("pattern", "matching"),
        [
            ("a%", ["a", "a\nb", "a%", "ab"]),
            ("a_", ["a%", "ab"]),
            ("a_b", ["a\nb"]),
            ("%\n%", ["a\nb"]),
            (r"a\%", ["a%"]),
            (r"\_", ["_"]),
            (r"\\", ["\\"]),
            ("_", ["a", "_", "\\", "😀"]),
            ("", [""]),
            ("%", ["a", "a\nb", "a%", "ab", "_", "\\", "", "😀"]),
            ("%b", ["a\nb", "ab"]),
        ],
    )
    def test_like_reads_escapes_line_ends_and_code_points(self, pattern: str, matching: list[str]) -> None:
        texts = ["a", "a\nb", "a%", "ab", "_", "\\", "", "😀"]
        found = truth(only(Match(MatchKind.LIKE, column(TEXT), pattern)), rows([*texts, None], TEXT))
        assert [text for text, holds in zip(texts, found, strict=False) if holds] == matching
        assert found[-1] is None
        refused = truth(only(Match(MatchKind.LIKE, column(TEXT), pattern, negated=True)), rows(texts, TEXT))
        assert [text for text, holds in zip(texts, refused, strict=True) if not holds] == matching

    def test_a_backslash_before_another_letter_is_an_error_in_spark(self) -> None:
        assert "backslash" in str(cannot_evaluate(only(Match(MatchKind.LIKE, column(TEXT), r"a\b"))))
        assert "backslash" in str(cannot_evaluate(only(Match(MatchKind.LIKE, column(TEXT), "a\\"))))

    def test_a_simple_pattern_is_a_comparison_of_bytes(self) -> None:
        assert like_parts(r"100\%%") is not None
        assert like_parts("a%b") is None
        assert like_parts("%_%") is None

    def test_a_slice_is_judged_by_its_own_letters(self) -> None:
        texts = rows(["abc", "d", "é", "ÅÄ"])
        for start, stop in ((0, 2), (2, 4), (3, 4), (1, 3)):
            sliced = texts.slice(start, stop - start)
            assert computed(Call("length", (column(TEXT),), INT), sliced) == [3, 1, 1, 2][start:stop]
            assert computed(Call("lower", (column(TEXT),), TEXT), sliced) == ["abc", "d", "é", "åä"][start:stop]

    def test_letter_case_is_folded_only_where_java_agrees(self) -> None:
        ilike = only(Match(MatchKind.ILIKE, column(TEXT), "SMÖR%"))
        assert truth(ilike, rows(["smörgås", "Smör", "smor", None])) == [True, True, False, None]
        with pytest.raises(CannotEvaluate, match="letter"):
            evaluate(ilike, rows(["İstanbul"]))
        assert cannot_evaluate(only(Match(MatchKind.ILIKE, column(TEXT), "straße%"))) is not None
        lower = Call("lower", (column(TEXT),), TEXT)
        assert computed(lower, rows(["ÅÄÖ", "ДА"])) == ["åäö", "да"]
        with pytest.raises(CannotEvaluate):
            value(lower, rows(["ΟΔΟΣ"]))

    @pytest.mark.parametrize(
        "pattern",
        ["(?i)a", r"\bword", "a++", "(a)\\1", "(?=a)", "[a&&b]", "a$|b", r"\p{L}", "[[:alpha:]]", "a{1,5000}"],
    )
    def test_regular_expressions_outside_of_the_common_core_are_refused(self, pattern: str) -> None:
        assert cannot_evaluate(only(Match(MatchKind.RLIKE, column(TEXT), pattern))) is not None

    def test_a_dollar_also_finds_the_place_before_a_last_line_end(self) -> None:
        found = truth(only(Match(MatchKind.RLIKE, column(TEXT), "a$")), rows(["a", "a\n", "a\r\n", "a\nb", "a\n\n"]))
        assert found == [True, True, True, False, False]
        with pytest.raises(CannotEvaluate, match="carriage return"):
            rlike_as_re2("[^a]$")

    def test_dots_and_white_space_are_javas(self) -> None:
        texts = rows(["a\nb", "a\rb", "a\u2028b", "a\x0bb", "a b", "acb"])
        assert truth(only(Match(MatchKind.RLIKE, column(TEXT), "a.b")), texts) == [
            False,
            False,
            False,
            True,
            True,
            True,
        ]
        assert truth(only(Match(MatchKind.RLIKE, column(TEXT), r"a\sb")), texts) == [
            True,
            True,
            False,
            True,
            True,
            False,
        ]

    def test_bytes_that_are_not_utf8_are_refused_by_what_reads_letters(self) -> None:
        broken = pa.Array.from_buffers(TEXT, 1, [None, pa.py_buffer(np.array([0, 1], "i4")), pa.py_buffer(b"\xff")])
        with pytest.raises(CannotEvaluate, match="UTF-8"):
            evaluate(only(Match(MatchKind.LIKE, column(TEXT), "a_c")), rows(broken))
        assert truth(compared("=", "a", TEXT), rows(broken)) == [False]

    @pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), TEXT)])
    def test_every_encoding_of_text_answers_alike(self, type_: pa.DataType) -> None:
        values = rows(pa.array(["alpha", "beta", None]).cast(type_))
        for filter_, expected in (
            (compared("=", "beta", TEXT), [False, True, None]),
            (compared("<", "b", TEXT), [True, False, None]),
            (only(Match(MatchKind.PREFIX, column(TEXT), "al")), [True, False, None]),
            (only(Match(MatchKind.LIKE, column(TEXT), "%e_a")), [False, True, None]),
            (only(InSet(column(type_), tuple(Constant(t, TEXT) for t in "abcdefg"))), [False, False, None]),
        ):
            assert truth(filter_, values) == expected

    @pytest.mark.parametrize(
        ("position", "length", "expected"),
        [(1, 2, "ab"), (0, 2, "ab"), (2, 9, "bcd"), (-2, 1, "c"), (-2, 9, "cd"), (-9, 6, "a"), (5, 1, ""), (1, -1, "")],
    )
    def test_substring_counts_from_one_and_from_the_end(self, position: int, length: int, expected: str) -> None:
        call = Call("substring", (column(TEXT), Constant(position, INT), Constant(length, INT)), TEXT)
        assert computed(call, rows(["abcd", None])) == [expected, None]

    def test_a_length_past_the_end_counts_from_the_end(self) -> None:
        call = Call("substring", (column(TEXT), Constant(-2, INT), Constant(5, INT)), TEXT)
        assert computed(call, rows(["abcdefgh", "a"])) == ["gh", "a"]

    def test_trimming_takes_spaces_only(self) -> None:
        texts = rows(["  a ", "\ta\n", "\u00a0a", "   ", None])
        assert computed(Call("trim", (column(TEXT),), TEXT), texts) == ["a", "\ta\n", "\u00a0a", "", None]
        assert computed(Call("ltrim", (column(TEXT),), TEXT), texts) == ["a ", "\ta\n", "\u00a0a", "", None]

    def test_joining_with_null_is_null(self) -> None:
        table = pa.table({"c": ["a", "b", None], "d": ["x", None, "z"]})
        assert computed(Call("concat", (column(TEXT), column(TEXT, "d")), TEXT), table) == ["ax", None, None]

    def test_replacing_and_reversing_go_by_letters(self) -> None:
        texts = rows(["aaa", "é😀", None])
        replaced = Call("replace", (column(TEXT), Constant("aa", TEXT), Constant("b", TEXT)), TEXT)
        assert computed(replaced, texts) == ["ba", "é😀", None]
        unchanged = Call("replace", (column(TEXT), Constant("", TEXT), Constant("b", TEXT)), TEXT)
        assert computed(unchanged, texts) == ["aaa", "é😀", None]
        assert computed(Call("reverse", (column(TEXT),), TEXT), texts) == ["aaa", "😀é", None]

    def test_length_counts_code_points(self) -> None:
        assert computed(Call("length", (column(TEXT),), INT), rows(["", "é", "😀x", None])) == [0, 1, 2, None]


class TestNumbers:
    def test_an_overflow_is_never_answered(self) -> None:
        total = Call("add", (column(INT), Constant(1, INT)), INT)
        filter_ = only(Comparison(Operator.LESS, total, Constant(0, INT)))
        assert truth(filter_, rows([-2, 5, None], INT)) == [True, False, None]
        with pytest.raises(CannotEvaluate, match="overflow"):
            evaluate(filter_, rows([1, 2**31 - 1], INT))

    @pytest.mark.parametrize("name", ["neg", "abs"])
    def test_the_least_integer_has_no_opposite(self, name: str) -> None:
        call = Call(name, (column(INT),), INT)
        assert computed(call, rows([-5, None], INT)) == [5, None]
        with pytest.raises(CannotEvaluate, match="overflow"):
            value(call, rows([-(2**31)], INT))

    @pytest.mark.parametrize("name", ["sub", "mul"])
    def test_no_operator_wraps(self, name: str) -> None:
        with pytest.raises(CannotEvaluate, match="overflow"):
            value(Call(name, (column(LONG), Constant(3, LONG)), LONG), rows([-(2**63) + 1]))

    def test_a_type_that_spark_would_not_give_is_refused(self) -> None:
        total = Call("add", (column(INT), column(INT)), LONG)
        assert "int32 in Spark" in str(cannot_evaluate(only(NullTest(total))))

    @pytest.mark.parametrize("name", ["div", "mod"])
    def test_dividing_by_zero_is_never_answered(self, name: str) -> None:
        type_ = DOUBLE if name == "div" else LONG
        call = Call(name, (column(LONG), column(LONG, "d")), type_)
        with pytest.raises(CannotEvaluate, match="zero"):
            value(call, pa.table({"c": [1, 2], "d": [1, 0]}))

    def test_a_remainder_has_the_sign_of_the_dividend(self) -> None:
        call = Call("mod", (column(LONG), Constant(3, LONG)), LONG)
        assert computed(call, rows([7, -7, -(2**63), None])) == [1, -1, -2, None]
        assert computed(Call("pmod", call.arguments, LONG), rows([7, -7, None])) == [1, 2, None]

    def test_decimals_of_other_scales_are_compared_by_value(self) -> None:
        held, given = pa.decimal128(9, 2), pa.decimal128(18, 4)
        values = rows([decimal.Decimal("1.10"), decimal.Decimal("1.11"), None], held)
        assert truth(compared("=", decimal.Decimal("1.1000"), given, held), values) == [True, False, None]
        assert truth(compared(">", decimal.Decimal("1.1001"), given, held), values) == [False, True, None]
        assert truth(compared("<", 2, INT, held), values) == [True, True, None]

    def test_decimals_become_doubles_with_one_rounding(self) -> None:
        held = pa.decimal128(38, 10)
        values = rows([decimal.Decimal("0.1"), decimal.Decimal("0.3"), None], held)
        assert truth(compared("=", 0.3, DOUBLE, held), values) == [False, True, None]
        with pytest.raises(CannotEvaluate):
            evaluate(compared("=", 0.3, DOUBLE, held), rows([decimal.Decimal("12345678901234567890")], held))

    def test_every_decimal_of_fifteen_digits_becomes_the_nearest_double(self) -> None:
        held = pa.decimal128(15, 4)
        values = [decimal.Decimal(unit).scaleb(-4) for unit in range(-(10**14), 10**14, 99_999_999_977)]
        assert computed(Cast(column(held), DOUBLE), rows(values, held)) == [float(one) for one in values]

    def test_arithmetic_of_decimals_is_exact(self) -> None:
        price, tax = pa.decimal128(9, 2), pa.decimal128(4, 3)
        table = pa.table(
            {"p": pa.array([decimal.Decimal("10.05")], price), "t": pa.array([decimal.Decimal("0.125")], tax)}
        )
        product = Call("mul", (column(price, "p"), column(tax, "t")), pa.decimal128(14, 5))
        assert computed(product, table) == [decimal.Decimal("1.25625")]
        assert cannot_evaluate(only(NullTest(Call("div", product.arguments, pa.decimal128(18, 7))))) is not None

    def test_unsigned_and_narrower_file_types_are_widened(self) -> None:
        assert truth(compared(">", -1, LONG), rows([2**32 - 1, 0], pa.uint32())) == [True, True]
        assert truth(compared(">", 3_000_000_000, LONG), rows([1, None], INT)) == [False, None]
        assert truth(compared("=", 0.5, DOUBLE), rows([0.5], pa.float32())) == [True]
        assert truth(compared("=", 2**63, pa.uint64()), rows([2**63, 1], pa.uint64())) == [True, False]

    def test_a_file_type_that_is_wider_than_the_schema_is_refused_where_it_does_not_fit(self) -> None:
        assert truth(compared("=", 1, INT), rows([1, None], LONG)) == [True, None]
        with pytest.raises(CannotEvaluate):
            evaluate(compared("=", 1, INT), rows([2**40], LONG))
        with pytest.raises(CannotEvaluate):
            evaluate(compared("=", 1, INT), rows(["1"]))
        with pytest.raises(CannotEvaluate):
            evaluate(compared("=", 0.5, pa.float32()), rows([0.5]))

    @pytest.mark.parametrize(
        ("text", "answer"), [("10", True), ("-7", False), ("007", False), (" 10", None), ("1e1", None), ("ten", None)]
    )
    def test_only_plain_text_is_cast_to_a_number(self, text: str, answer: bool | None) -> None:
        filter_ = only(Comparison(Operator.EQUAL, Cast(column(TEXT), INT), Constant(10, INT)))
        if answer is None:
            with pytest.raises(CannotEvaluate, match="not plainly"):
                evaluate(filter_, rows([text]))
        else:
            assert truth(filter_, rows([text])) == [answer]

    @pytest.mark.parametrize("text", ["0000-01-01", "2023-02-29", "1994-1-1", "1994"])
    def test_only_plain_text_of_a_day_that_exists_is_cast_to_a_date(self, text: str) -> None:
        cast = Cast(column(TEXT), pa.date32())
        assert computed(cast, rows(["0001-01-01", "2024-02-29", None])) == [
            datetime.date(1, 1, 1),
            datetime.date(2024, 2, 29),
            None,
        ]
        with pytest.raises(CannotEvaluate):
            value(cast, rows([text]))

    def test_casts_that_print_or_round_differently_are_refused(self) -> None:
        for held, target in ((DOUBLE, TEXT), (DOUBLE, pa.decimal128(9, 2)), (pa.timestamp("us"), TEXT)):
            assert "differ" in str(cannot_evaluate(only(NullTest(Cast(column(held), target)))))

    def test_a_float_beyond_the_range_of_an_integer_is_not_cast(self) -> None:
        cast = Cast(column(DOUBLE), INT)
        assert computed(cast, rows([1.9, -1.9, None])) == [1, -1, None]
        for outlier in (NAN, math.inf, 2.0**31):
            with pytest.raises(CannotEvaluate):
                value(cast, rows([outlier]))


class TestTime:
    moment = datetime.datetime(1850, 6, 1, 11, 59, 59, 456789, tzinfo=UTC)
    zoned = pa.timestamp("us", "UTC")

    @pytest.mark.parametrize(
        "type_", [pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Stockholm"), pa.timestamp("us", "UTC")]
    )
    def test_a_moment_is_the_same_in_every_zone_and_unit(self, type_: pa.DataType) -> None:
        values = rows(pa.array([self.moment, None], self.zoned).cast(type_))
        assert truth(compared("=", self.moment, self.zoned), values) == [True, None]
        assert truth(compared("=", self.moment, self.zoned, type_), values) == [True, None]

    def test_a_file_in_nanoseconds_is_read_downwards_to_the_microseconds_of_the_schema(self) -> None:
        values = rows(pa.array([-1, 999, 1000, None], pa.timestamp("ns", "UTC")))
        before = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
        assert truth(compared("=", before, self.zoned), values) == [True, False, False, None]

    def test_nanoseconds_of_the_schema_are_compared_exactly_and_beyond_their_range(self) -> None:
        held = pa.timestamp("ns")
        values = rows(pa.array([0, 1, None], held))
        epoch = datetime.datetime(1970, 1, 1)
        assert truth(compared(">", epoch, pa.timestamp("us"), held), values) == [False, True, None]
        assert truth(compared(">", datetime.datetime(1000, 1, 1), pa.timestamp("us"), held), values) == [
            True,
            True,
            None,
        ]

    def test_milliseconds_meet_microseconds_exactly(self) -> None:
        held = pa.timestamp("ms")
        values = rows(pa.array([1, None], held))
        later = datetime.datetime(1970, 1, 1, 0, 0, 0, 1001)
        assert truth(compared("<", later, pa.timestamp("us"), held), values) == [True, None]
        assert truth(compared("=", later, pa.timestamp("us"), held), values) == [False, None]

    def test_parts_of_a_moment_need_a_zone_without_rules(self) -> None:
        year = Call("year", (column(self.zoned),), INT)
        late = rows(pa.array([datetime.datetime(1999, 12, 31, 23, 30, tzinfo=UTC)], self.zoned))
        assert computed(year, late, "UTC") == [1999]
        assert computed(year, late, "+01:00") == [2000]
        for zone in (None, "Europe/Stockholm"):
            assert "time zone" in str(cannot_evaluate(only(NullTest(year)), time_zone=zone))

    def test_the_parts_of_a_wall_clock_and_of_a_date_need_no_zone(self) -> None:
        assert computed(Call("year", (column(pa.date32()),), INT), rows([datetime.date(1000, 1, 1), None])) == [
            1000,
            None,
        ]
        clock = rows(pa.array([datetime.datetime(2024, 2, 29, 12, 30)], pa.timestamp("us")))
        assert computed(Call("hour", (column(pa.timestamp("us")),), INT), clock) == [12]

    def test_years_that_arrow_counts_wrong_are_refused(self) -> None:
        far = rows(pa.array([2**30], INT).cast(pa.date32()))
        with pytest.raises(CannotEvaluate, match="years 1 to 9999"):
            value(Call("year", (column(pa.date32()),), INT), far)

    def test_weeks_begin_on_monday_and_days_of_the_week_are_counted_from_sunday(self) -> None:
        sunday = rows([datetime.date(2024, 3, 3)])
        arguments = (column(pa.date32()), Constant("week", TEXT))
        assert computed(Call("trunc", arguments, pa.date32()), sunday) == [datetime.date(2024, 2, 26)]
        assert computed(Call("dayofweek", (column(pa.date32()),), INT), sunday) == [1]

    def test_a_date_meets_a_moment_only_where_the_zone_is_known(self) -> None:
        literal = Comparison(Operator.LESS_EQUAL, column(pa.date32()), Constant(self.moment, self.zoned))
        day = rows([datetime.date(1850, 6, 1)])
        assert cannot_evaluate(only(literal)) is not None
        assert truth(only(literal), day, "UTC") == [True]
        assert truth(only(literal), day, "-12:00") == [False]


class TestNested:
    def test_a_field_of_a_null_struct_is_null(self) -> None:
        type_ = pa.struct([("a.b", LONG)])
        struct = pa.StructArray.from_arrays([pa.array([1, 2, 3])], names=["a.b"], mask=pa.array([False, True, False]))
        assert computed(Field(column(type_), "a.b", LONG), rows(struct)) == [1, None, 3]

    def test_a_key_that_a_map_does_not_have_is_null(self) -> None:
        type_ = pa.map_(TEXT, LONG)
        maps = rows(pa.array([[("k", 1)], [("j", 2)], [], None, [("k", None)]], type_))
        element = Element(column(type_), Constant("k", TEXT), LONG)
        assert computed(element, maps) == [1, None, None, None, None]
        assert computed(element, maps.slice(1, 2)) == [None, None]

    def test_of_a_key_that_a_map_has_twice_the_first_counts(self) -> None:
        type_ = pa.map_(TEXT, LONG)
        twice = rows(pa.array([[("k", 1), ("k", 2)]], type_))
        assert computed(Element(column(type_), Constant("k", TEXT), LONG), twice) == [1]

    def test_a_position_that_a_list_does_not_have_is_refused(self) -> None:
        type_ = pa.list_(LONG)
        element = Element(column(type_), Constant(1, INT), LONG)
        assert computed(element, rows([[1, 2], None, [3, None]], type_)) == [2, None, None]
        with pytest.raises(CannotEvaluate, match="no position 1"):
            value(element, rows([[1]], type_))
        assert cannot_evaluate(only(NullTest(Element(column(type_), Constant(-1, INT), LONG)))) is not None

    def test_whole_structs_are_compared_by_spark(self) -> None:
        type_ = pa.struct([("f", LONG)])
        literal = Comparison(Operator.EQUAL, column(type_, "a"), column(type_, "b"))
        assert "compared by Spark" in str(cannot_evaluate(only(literal)))


class TestSelecting:
    guarded = Conjunction(
        (
            only(
                Comparison(
                    Operator.GREATER,
                    Call("div", (Constant(1.0, DOUBLE), column(DOUBLE)), DOUBLE),
                    Constant(0.4, DOUBLE),
                )
            ),
            compared("<>", 0.0, DOUBLE),
        )
    )
    unknown = only(Opaque("my_udf(c)", frozenset({"c"})))

    def test_a_row_on_which_spark_would_fail_may_be_left_out_by_another_predicate(self) -> None:
        selection = select(self.guarded, rows([0.0, 1.0, 4.0, None]))
        assert selection.mask.to_pylist() == [False, True, False, False]
        assert selection.residual == ()

    def test_what_fails_on_these_rows_is_handed_back_and_its_rows_are_kept(self) -> None:
        failing = Conjunction(self.guarded.predicates[:1])
        selection = select(failing, rows([0.0, 1.0, 4.0]))
        assert selection.mask.to_pylist() == [True, True, True]
        assert selection.residual == failing.predicates

    def test_what_can_never_be_evaluated_is_handed_back(self) -> None:
        filter_ = Conjunction((self.unknown, compared(">", 1.0, DOUBLE)))
        selection = select(filter_, rows([1.0, 2.0, None]))
        assert selection.mask.to_pylist() == [False, True, False]
        assert selection.residual == (self.unknown,) == Evaluator(filter_).residual
        with pytest.raises(CannotEvaluate, match="my_udf"):
            evaluate(filter_, rows([1.0]))

    def test_an_or_with_something_unknown_is_unknown_as_a_whole(self) -> None:
        either = Predicate((*self.unknown.literals, *compared(">", 1.0, DOUBLE).literals))
        assert select(either, rows([1.0])).residual == (either,)

    def test_a_costly_predicate_sees_the_survivors_only(self) -> None:
        count = 1000
        table = pa.table({"c": pa.array(range(count)), "t": ["\u0130" if n > 5 else f"A{n}" for n in range(count)]})
        few = compared("<=", 4, LONG)
        folding = only(Match(MatchKind.ILIKE, Column("t", TEXT), "a_"))
        selection = select(Conjunction((folding, few)), table)
        assert selection.residual == ()
        assert [n for n, kept in enumerate(selection.mask.to_pylist()) if kept] == [0, 1, 2, 3, 4]

    def test_a_table_hands_back_what_failed_in_any_of_its_chunks(self) -> None:
        failing = Conjunction(self.guarded.predicates[:1])
        table = pa.concat_tables([rows([1.0, 4.0]), rows([0.0, 4.0])])
        selection = select(failing, table)
        assert selection.mask.to_pylist() == [True, False, True, True]
        assert selection.residual == failing.predicates

    def test_a_table_without_chunks_has_no_rows_and_keeps_the_residual(self) -> None:
        selection = select(self.unknown, pa.table({"c": pa.chunked_array([], DOUBLE)}))
        assert len(selection.mask) == 0
        assert selection.residual == (self.unknown,)

    def test_a_column_that_is_not_there_is_a_mistake_and_not_a_null(self) -> None:
        with pytest.raises(ColumnNotFound, match='no column "c" in these rows'):
            select(compared("=", 1, LONG), pa.table({"d": [1]}))

    def test_a_name_that_two_columns_have_is_refused(self) -> None:
        table = pa.table([pa.array([1]), pa.array([2])], names=["c", "c"])
        with pytest.raises(InvalidInput, match="2 columns named"):
            select(compared("=", 1, LONG), table)

    def test_an_evaluator_names_the_columns_it_reads(self) -> None:
        filter_ = Conjunction((only(Opaque("f(z)", frozenset({"z"}))), compared("=", 1, LONG)))
        assert Evaluator(filter_).columns == ("c",)

    def test_a_batch_hands_back_what_a_table_does(self) -> None:
        (batch,) = rows([1.0, 2.0]).to_batches()
        selection = select(Conjunction((self.unknown, compared(">", 1.0, DOUBLE))), batch)
        assert selection.residual == (self.unknown,)
        assert selection.mask.to_pylist() == [False, True]


class TestDictionaries:
    """A predicate over one dictionary is judged on its values, which must not be seen from outside."""

    encoded = pa.array(["a", None, "b", "a", "a", "b", None, "a", "b", "b", "a", "a"]).dictionary_encode()

    def test_rows_get_the_answer_of_their_value_and_null_its_own(self) -> None:
        plain = [None if text is None else text == "a" for text in self.encoded.to_pylist()]
        assert truth(compared("=", "a", TEXT), rows(self.encoded)) == plain
        assert truth(compared("=", "a", TEXT), rows(self.encoded.slice(5))) == plain[5:]
        nulls = [text is None for text in self.encoded.to_pylist()]
        assert truth(only(NullTest(column(TEXT))), rows(self.encoded)) == nulls
        assert truth(compared("<=>", None, TEXT), rows(self.encoded)) == nulls

    def test_a_dictionary_may_hold_null_itself(self) -> None:
        encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * 4, pa.int8()), pa.array(["a", None]))
        assert truth(compared("=", "a", TEXT), rows(encoded)) == [True, None, None] * 4
        assert truth(only(NullTest(column(TEXT))), rows(encoded)) == [False, True, True] * 4

    def test_a_value_that_no_row_uses_cannot_make_it_fail(self) -> None:
        encoded = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0, 0, 0, 0, 0, 0]), pa.array(["7", "not a number"]))
        number = Comparison(Operator.EQUAL, Cast(column(TEXT), INT), Constant(7, INT))
        assert truth(only(number), rows(encoded)) == [True] * 8

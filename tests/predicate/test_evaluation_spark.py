"""Our answers are Spark's own: hundreds of random predicates as columns of one query over rows of edge values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skipstone.errors import CannotEvaluate, InvalidInput
from skipstone.predicate.arrow.letter_case import PLAIN_CASE_RANGES
from skipstone.predicate.evaluation import Evaluator, value
from skipstone.predicate.expression import Cast, Column
from skipstone.predicate.literal import Match, MatchKind, Predicate
from skipstone.predicate.printing import sql
from tests.predicate.strategies import Generator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 40


def spark_answers(spark: SparkSession, rows: pa.Table, texts: Sequence[str]) -> list[list[bool | None]]:
    """Evaluate many conditions in one query."""
    named = [f"{text} AS c{number}" for number, text in enumerate(texts)]
    answer = spark.createDataFrame(rows).coalesce(1).selectExpr(*named).toArrow()
    return [column.to_pylist() for column in answer.columns]


def check(spark: SparkSession, seed: int, count: int) -> None:
    """Compare as many random predicates as asked for, where we claim an answer; Spark must not fail on one of them."""
    generator = Generator(random.Random(seed))
    rows = generator.table(ROWS)
    ours: dict[str, list[bool | None]] = {}
    drawn = 0
    while len(ours) < count:
        drawn += 1
        literal = Predicate((generator.literal(),))
        try:
            ours[sql(literal)] = Evaluator(literal, time_zone="UTC").evaluate(rows).to_pylist()
        except (CannotEvaluate, InvalidInput):
            continue
    assert drawn < 3 * count, "most of what is drawn should be evaluated by us"
    theirs = spark_answers(spark, rows, list(ours))
    wrong = {text: (mine, other) for (text, mine), other in zip(ours.items(), theirs, strict=True) if mine != other}
    assert not wrong, explained(wrong)


def explained(wrong: dict[str, tuple[list[bool | None], list[bool | None]]]) -> str:
    lines = [f"{len(wrong)} conditions differ"]
    for text, (mine, other) in list(wrong.items())[:10]:
        places = [place for place, (a, b) in enumerate(zip(mine, other, strict=True)) if a is not b]
        lines.append(f"{text[:300]}\n  rows {places}: ours {mine[places[0]]}, Spark {other[places[0]]}")
    return "\n".join(lines)


def test_hundreds_of_literals_have_the_truth_values_that_spark_gives_them(spark: SparkSession) -> None:
    check(spark, seed=1, count=400)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_thousands_of_literals_have_the_truth_values_that_spark_gives_them(spark: SparkSession, seed: int) -> None:
    check(spark, seed=seed, count=500)


LINES = (
    "", "a", "ab", "abc", "b", "a\n", "a\r", "a\r\n", "b\u0085", "b\u2028", "a\nb", "a\rb",
    "\n", "\r\n", "\n\n", " \x0b", "é", "😀", "a1_ b-c.d", "A", "aaab", "0", "٣", "a\u00a0b", "\\", "[a]", "x" * 300,
)  # fmt: skip
PIECES = (
    "a", "b", "ab", ".", "^", "$", "|", "(a|b)", "(?:a.)", "[a-c]", "[^a]", r"\d", r"\D", r"\w",
    r"\W", r"\s", r"\S", "*", "+", "?", "{2}", "{1,3}", "*?", r"\.", r"\\", r"\n", r"[\r\n]",
    r"[\w.-]", "é", "😀", "(", ")", "[", "(?i)", r"\b",
)  # fmt: skip


def test_every_regular_expression_that_we_translate_finds_in_re2_what_it_finds_in_java(spark: SparkSession) -> None:
    chance = random.Random(7)
    drawn = {"".join(chance.choice(PIECES) for _ in range(chance.randint(1, 6))) for _ in range(3_000)}
    rows = pa.table({"c": pa.array(LINES)})
    ours: dict[str, list[bool | None]] = {}
    for pattern in sorted(drawn):
        literal = Predicate((Match(MatchKind.RLIKE, Column("c", pa.string()), pattern),))
        try:
            ours[sql(literal)] = Evaluator(literal).evaluate(rows).to_pylist()
        except CannotEvaluate:
            continue
    assert len(ours) > 400, f"only {len(ours)} of {len(drawn)} patterns are translated"
    theirs = spark_answers(spark, rows, list(ours))
    wrong = {text: (mine, other) for (text, mine), other in zip(ours.items(), theirs, strict=True) if mine != other}
    assert not wrong, explained(wrong)


TEXTS = (
    *("0", "-0", "007", "-7", "127", "128", "-32768", "2147483647", "9223372036854775807", "999999999999999999"),
    *("1.5", "-0.0", "0.1", "123456789.123456789", "1e5", "+1", " 1", "1 ", "0x1f", "", "NaN", "Infinity", "1.", ".5"),
    *("1994-01-01", "0001-01-01", "9999-12-31", "2024-02-29", "2023-02-29", "0000-01-01", "1994-1-1", "1994"),
    *("1994-01-01 00:00:00", "1994-01-01T12:30:15.5", "1994-01-01 12:30:15.456789", "1994-01-01 24:00:00"),
)  # fmt: skip


def test_every_text_that_we_convert_spark_converts_to_the_same_value(spark: SparkSession) -> None:
    targets = ("int8", "int16", "int32", "int64", "float64", "date32", "timestamp[us]")
    compared = 0
    for text in TEXTS:
        rows = pa.table({"c": [text]})
        for name in targets:
            target = pa.type_for_alias(name)
            cast = Cast(Column("c", pa.string()), target)
            try:
                mine = value(cast, rows)
            except CannotEvaluate:
                continue
            (theirs,) = spark.createDataFrame(rows).selectExpr(sql(cast)).toArrow().columns
            compared += 1
            assert mine.combine_chunks().equals(theirs.combine_chunks().cast(target)), (text, name)
    assert compared > 40


def test_every_letter_called_plain_folds_in_arrow_as_it_does_in_spark(spark: SparkSession) -> None:
    letters = [chr(code) for first, last in PLAIN_CASE_RANGES for code in range(first, last + 1)]
    # A letter alone, and between others: the case of some letters depends on where they stand.
    texts = pa.table({"c": letters + [f"a{letter}b" for letter in letters] + [f"ab{letter}" for letter in letters]})
    folded = spark.createDataFrame(texts).selectExpr("c", "lower(c) AS small", "upper(c) AS capital").toArrow()
    for fold, name in ((pc.utf8_lower, "small"), (pc.utf8_upper, "capital")):
        mine = fold(folded["c"])
        differing = [
            f"{text!r}: ours {one!r}, Spark {other!r}"
            for text, one, other in zip(
                folded["c"].to_pylist(), mine.to_pylist(), folded[name].to_pylist(), strict=True
            )
            if one != other
        ]
        assert not differing, "\n".join(differing[:20])

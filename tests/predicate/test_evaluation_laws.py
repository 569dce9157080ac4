"""Laws of evaluation that need no other engine: it partitions, it does not depend on how the rows are stored."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given, settings

from skipstone.errors import CannotEvaluate
from skipstone.predicate.evaluation import Evaluator, Rows, cannot_evaluate, evaluate, select
from skipstone.predicate.expression import Scalar
from skipstone.predicate.literal import Comparison, Conjunction, InSet, Literal, Match, NullTest, Opaque, Predicate
from tests.predicate.strategies import Generator, generators


def negation(literal: Literal) -> Literal:
    """Write NOT (literal) as a literal."""
    match literal:
        case Comparison(operator=operator, left=left, right=right):
            return Comparison(operator.negated, left, right)
        case InSet(expression=expression, values=values, negated=negated):
            return InSet(expression, values, not negated)
        case Match(kind=kind, expression=expression, pattern=pattern, negated=negated):
            return Match(kind, expression, pattern, not negated)
        case NullTest(expression=expression, negated=negated):
            return NullTest(expression, not negated)
        case Opaque():
            raise AssertionError("opaque literals are not generated")


def truth(filter_: Predicate | Conjunction, rows: Rows) -> list[Scalar]:
    try:
        answer: list[Scalar] = evaluate(filter_, rows, time_zone="UTC").to_pylist()
    except CannotEvaluate:
        assume(False)
    return answer


@given(generators())
@settings(deadline=None)
def test_a_literal_its_negation_and_its_being_null_partition_the_rows(generator: Generator) -> None:
    """Ternary logic partitioning: every row is in exactly one of p, NOT p, p IS NULL."""
    literal, rows = generator.literal(), generator.table()
    holds, fails = truth(Predicate((literal,)), rows), truth(Predicate((negation(literal),)), rows)
    opposite = {True: False, False: True, None: None}
    assert [opposite[one] for one in holds] == fails  # type: ignore[index]


@given(generators())
@settings(deadline=None)
def test_selecting_finds_as_many_rows_as_judging_each_row_by_itself(generator: Generator) -> None:
    """NoREC: the optimised WHERE keeps the rows for which the plain expression is TRUE."""
    filter_, rows = generator.conjunction(), generator.table()
    selection = select(filter_, rows, time_zone="UTC")
    assert selection.mask.null_count == 0
    evaluated = Conjunction(tuple(p for p in filter_ if p not in selection.residual))
    one_by_one: list[Scalar] = []
    for place in range(rows.num_rows):
        row = rows.slice(place, 1)
        try:
            one_by_one.append(evaluate(evaluated, row, time_zone="UTC").to_pylist()[0] is True)
        except CannotEvaluate:
            # A row on which Spark would fail, left out by another predicate: it must be left out indeed.
            others = [p for p in evaluated if _is_false_or_null(p, row)]
            one_by_one.append(not others)
    assert selection.mask.to_pylist() == one_by_one


def _is_false_or_null(predicate: Predicate, row: pa.Table) -> bool:
    try:
        return evaluate(predicate, row, time_zone="UTC").to_pylist()[0] is not True
    except CannotEvaluate:
        return False


@given(generators())
@settings(deadline=None)
def test_a_conjunction_is_the_kleene_and_of_its_predicates_and_they_the_or_of_their_literals(
    generator: Generator,
) -> None:
    filter_, rows = generator.conjunction(), generator.table()
    expected = pa.array([True] * rows.num_rows, pa.bool_())
    for predicate in filter_:
        any_of = pa.array([False] * rows.num_rows, pa.bool_())
        for literal in predicate.literals:
            any_of = pc.or_kleene(any_of, pa.array(truth(Predicate((literal,)), rows), pa.bool_()))
        expected = pc.and_kleene(expected, any_of)
    assert truth(filter_, rows) == expected.to_pylist()


@given(generators())
@settings(deadline=None)
def test_the_answer_does_not_depend_on_chunks_slices_or_encodings(generator: Generator) -> None:
    filter_, rows = generator.predicate(), generator.table(9)
    expected = truth(filter_, rows)
    chunked = pa.concat_tables([rows.slice(0, 2), rows.slice(2, 0), rows.slice(2, 5), rows.slice(7)])
    assert truth(filter_, chunked) == expected
    (batch,) = rows.combine_chunks().to_batches()
    assert truth(filter_, batch.slice(3, 4)) == expected[3:7]
    assert truth(filter_, _encoded(rows)) == expected


def _encoded(rows: pa.Table) -> pa.Table:
    """Store texts in dictionaries and views, numbers in dictionaries, timestamps of another zone."""
    stored = {}
    for name in rows.column_names:
        column = rows.column(name).combine_chunks()
        if name in ("text", "whole", "day"):
            column = column.dictionary_encode()
        elif name == "other_text":
            column = column.cast(pa.string_view())
        elif name == "raw":
            column = column.cast(pa.large_binary())
        elif name == "moment":
            column = column.cast(pa.timestamp("us", "Europe/Stockholm"))
        stored[name] = column
    return pa.table(stored)


@given(generators())
@settings(deadline=None)
def test_an_evaluator_can_be_sent_to_another_process(generator: Generator) -> None:
    filter_, rows = generator.conjunction(), generator.table()
    evaluator = Evaluator(filter_, time_zone="UTC")
    copy = pickle.loads(pickle.dumps(evaluator))
    assert copy.select(rows) == evaluator.select(rows)
    assert copy.columns == evaluator.columns


@given(generators())
@settings(deadline=None)
def test_no_rows_give_no_answers(generator: Generator) -> None:
    predicate, rows = generator.predicate(), generator.table(0)
    assert truth(predicate, rows) == []
    assert truth(predicate, pa.RecordBatch.from_pylist([], rows.schema)) == []
    if cannot_evaluate(predicate, time_zone="UTC") is None:
        assert select(predicate, rows, time_zone="UTC").residual == ()

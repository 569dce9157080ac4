"""Why one filter implies another, or what is missing: the answer of `implies` in sentences."""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skipstone.predicate.datatypes import FLOAT
from skipstone.predicate.expression import Call, Cast, Column, Constant, Element, Field, Scalar
from skipstone.predicate.implication_premise import Denial, Filter, Premise, conclusion_of
from skipstone.predicate.implication_terms import Condition, Subject, Term, term_of
from skipstone.predicate.intervals import Family, ValueSet, double_of_rank
from skipstone.predicate.literal import (
    Comparison,
    Conjunction,
    Literal,
    Operator,
    Predicate,
)
from skipstone.predicate.printing import sql

__all__ = ["Implication", "explain_implication"]


@dataclass(frozen=True, slots=True)
class Implication:
    """Whether p implies q, with a sentence for each predicate of q that follows, and one for each that does not."""

    holds: bool
    steps: tuple[str, ...]
    missing: tuple[str, ...]


def explain_implication(p: Filter, q: Filter) -> Implication:
    """Say which predicates of p each predicate of q follows from, and by what; or what p leaves open.

    >>> from skipstone.predicate.parsing import parse_filter
    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("tax", pa.decimal128(4, 2))])
    >>> p = parse_filter("a < b AND b < 5 AND tax >= 0.02", schema)
    >>> for step in explain_implication(p, parse_filter("a < 9", schema)).steps:
    ...     print(step)
    a < 9 follows from a < b AND b < 5, by the order of expressions
    >>> for sentence in explain_implication(p, parse_filter("tax BETWEEN 0.01 AND 0.05", schema)).missing:
    ...     print(sentence)
    tax <= 0.05 does not follow: no predicate of p bounds tax from above
    """
    premise = Premise(p)
    if premise.is_impossible:
        core = " AND ".join(map(sql, _core(_predicates(p), None)))
        return Implication(True, (f"no row satisfies {core}, so anything follows",), ())
    denials = conclusion_of(q).denials
    steps: list[str] = [] if denials else ["every row satisfies q"]
    missing: list[str] = []
    for denial in denials:
        if premise.refutes(denial):
            steps.append(_step(_predicates(p), denial))
        else:
            missing.append(f"{_shown(denial.predicate)} does not follow: {_gap(premise, denial)}")
    return Implication(not missing, tuple(steps), tuple(missing))


def _predicates(p: Filter) -> tuple[Predicate, ...]:
    return (p,) if isinstance(p, Predicate) else p.predicates


def _shown(predicate: Predicate) -> str:
    return sql(predicate) if predicate.literals else "FALSE"


def _step(predicates: tuple[Predicate, ...], denial: Denial) -> str:
    if denial.is_impossible:
        return f"{_shown(denial.predicate)} is TRUE for every row"
    if denial.predicate in predicates:
        return f"{_shown(denial.predicate)} is a predicate of p itself"
    core = _core(predicates, denial)
    return f"{_shown(denial.predicate)} follows from {' AND '.join(map(_shown, core))}, {_means(core, denial)}"


def _core(predicates: tuple[Predicate, ...], denial: Denial | None) -> tuple[Predicate, ...]:
    """Leave out, one after the other, the predicates that a contradiction (or a refutation) does not need."""
    kept = predicates
    for predicate in predicates:
        fewer = tuple(one for one in kept if one is not predicate)
        premise = Premise(Conjunction(fewer))
        if premise.is_impossible if denial is None else premise.refutes(denial):
            kept = fewer
    return kept


def _means(core: tuple[Predicate, ...], denial: Denial) -> str:
    """Name what the refutation rests on, from the plainest to the least plain."""
    premise = Premise(Conjunction(core))
    for condition in denial.conditions:
        held = premise.knowledge[condition.subject]
        if not held.meets(condition.values):
            of = condition.subject.of
            if not _is_expression(of):
                return "which is the same condition"
            spoken = {term.if_true[0].subject.of for one in core for term in _terms(one) if term.if_true}
            if of in spoken:
                return f"by the values of {_named(condition.subject)}"
            if not any(part.has_orders for part in premise.parts_with([condition.subject])):
                return f"by what that says of {_named(condition.subject)}"
    parts = premise.parts_with(denial.subjects)
    if denial.has_orders or any(part.has_orders for part in parts):
        return "by the order of expressions"
    if any(part.clauses for part in parts):
        return "whichever of its terms is TRUE"
    return "by its pattern"


def _terms(predicate: Predicate) -> Iterable[Term]:
    return (term_of(literal) for literal in predicate.literals)


def _gap(premise: Premise, denial: Denial) -> str:
    """What p leaves open, told for each literal of a predicate of q."""
    if not denial.predicate.literals:
        return "some row may satisfy p"
    return "; ".join(dict.fromkeys(_literal_gap(premise, literal) for literal in denial.predicate.literals))


def _literal_gap(premise: Premise, literal: Literal) -> str:
    term = term_of(literal)
    if not term.if_untrue:
        return f"{sql(literal)} may differ between two evaluations"
    condition = term.if_untrue[0]
    subject = condition.subject
    if not _is_expression(subject.of):
        return f"no predicate of p tells that {sql(literal)}"
    named = _named(subject)
    if subject not in premise.knowledge.sets and not premise.parts_with([subject]):
        return f"no predicate of p speaks of {named}"
    return _value_gap(named, subject, premise.knowledge[subject], condition)


def _value_gap(named: str, subject: Subject, held: ValueSet, condition: Condition) -> str:
    left = held & condition.values
    wanted = subject.domain.complement(condition.values)
    if left.cuts and wanted.cuts:
        if held.cuts[-1] == subject.domain.top and wanted.cuts[-1] != subject.domain.top:
            return f"no predicate of p bounds {named} from above"
        if held.cuts[0] == subject.domain.bottom and wanted.cuts[0] != subject.domain.bottom:
            return f"no predicate of p bounds {named} from below"
    if left.cuts:
        return f"p allows {_example(subject, left)}"
    return f"p allows {named} IS NULL"


def _example(subject: Subject, values: ValueSet) -> str:
    """A value from a set, told as a comparison; where the value cannot be written, that there is one."""
    of, domain = subject.of, subject.domain
    assert isinstance(of, Column | Field | Element | Constant | Cast | Call)
    key = values.cuts[0] if values.cuts[0] != domain.bottom else domain.last(values.cuts[1])
    value = None if key is None else _value(key, subject, of.type)
    if value is None:
        return f"other values of {_named(subject)}"
    return sql(Comparison(Operator.EQUAL, of, Constant(value, of.type)))


def _value(key: Any, subject: Subject, type_: pa.DataType) -> Scalar:
    """The value that a key stands for; None where Python has no such value."""
    domain = subject.domain
    microseconds = datetime.timedelta(microseconds=1)
    try:
        match domain.family:
            case Family.BOOLEAN:
                return bool(key)
            case Family.NUMBER if pa.types.is_integer(type_):
                return int(key)
            case Family.NUMBER:
                return decimal.Decimal((key < 0, tuple(map(int, str(abs(key)))), -type_.scale))
            case Family.FLOAT:
                value = double_of_rank(key)
                # A single float goes by the ranks of doubles, most of which it cannot be.
                return value if type_ != FLOAT or _is_single(value) else None
            case Family.DATE:
                return datetime.date.fromordinal(key + datetime.date(1970, 1, 1).toordinal())
            case Family.LOCAL | Family.INSTANT:
                zone = None if domain.family is Family.LOCAL else datetime.UTC
                return datetime.datetime(1970, 1, 1, tzinfo=zone) + int(key) // domain.unit * microseconds
            case Family.DURATION:
                return int(key) // domain.unit * microseconds
            case Family.TEXT:
                return str(key, "utf-8")
            case Family.BINARY:
                return bytes(key)
            case Family.UNORDERED:
                return None
    except (OverflowError, UnicodeDecodeError, ValueError):
        return None


def _is_single(value: float) -> bool:
    try:
        return value != value or struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def _is_expression(of: object) -> bool:
    return isinstance(of, Column | Field | Element | Constant | Cast | Call)


def _named(subject: Subject) -> str:
    of = subject.of
    assert isinstance(of, Column | Field | Element | Constant | Cast | Call)
    return sql(of)

"""What a statement asks of the tables we know: the one front end of the workload reader and of live queries.

A statement is parsed, its names are resolved (`resolving`), its conditions are pushed to the tables they hold for
(`pushdown`), and each condition is bound to the table's schema. A condition that cannot be bound is left out with a
reason; a statement that cannot be understood reads its tables in full.

Workloads repeat a few shapes with other constants, so a shape is taken through all of this once, to a plan. Another
statement of the shape puts its own constants into the plan's conditions and binds those: the same trees, bound by the
same code, as if it had been parsed. Only constants that the parser copies into a comparison without looking at them are
exchanged (`templates.free_constants`); any other that differs makes another plan.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from skipstone.errors import ColumnNotFound, SkipstoneError
from skipstone.predicate.binding import bind
from skipstone.predicate.literal import Conjunction, Predicate
from skipstone.predicate.normalising import conjunction
from skipstone.predicate.opaque import depends_on_more_than_the_row
from skipstone.predicate.parsing import NO_WORDS, dialect_named, what_was_found
from skipstone.workload.conditions import has_unfilled_template, shortened
from skipstone.workload.pushdown import Reference, references
from skipstone.workload.query import Request
from skipstone.workload.resolving import KnownTables, drop_hints, number_mentions, resolve
from skipstone.workload.selects import has_steps, loses_the_order_of_steps
from skipstone.workload.templates import Shape, free_constants, looks_like_date, shape, template_text

__all__ = ["FrontEnd", "Statement", "requests"]

PLANS_KEPT = 5_000
"""Plans that a front end remembers; a plan holds a few trees."""

ANSWERS_KEPT = 20_000
"""Bound conditions and finished statements that a plan remembers."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Statement:
    """What was understood of one statement.

    `problem` says why it could not be read as a query, with `line` and `column` in its own text where they are known;
    `is_query` is False for what is understood and asks for no rows (SET, CREATE TABLE t (...), DELETE). `others` are
    the tables it reads that we have no schema for, `template` is its text with `?` for constants.
    """

    requests: tuple[Request, ...] = ()
    problem: str = ""
    line: int | None = None
    column: int | None = None
    is_query: bool = True
    others: tuple[str, ...] = ()
    template: str = ""


def requests(sql: str, tables: Mapping[str, pa.Schema], *, dialect: str = "spark", timezone: str = "UTC") -> Statement:
    """Read one statement; use a `FrontEnd` to read many.

    >>> schema = pa.schema([("sold", pa.date32()), ("price", pa.int64()), ("note", pa.string())])
    >>> statement = requests("SELECT sum(price) FROM sales WHERE sold >= '2024-05-01'", {"sales": schema})
    >>> from skipstone.predicate.printing import sql
    >>> [(request.table, request.columns, sql(request.filter)) for request in statement.requests]
    [('sales', ('price', 'sold'), "sold >= DATE '2024-05-01'")]
    """
    return FrontEnd(tables, dialect=dialect, timezone=timezone).read_afresh(sql)


class FrontEnd:
    """Reads the statements of one dialect over tables of known schemas.

    >>> front = FrontEnd({"t": pa.schema([("a", pa.int64())])})
    >>> front.read("SELECT * FROM t WHERE a = 1").requests == front.read_afresh("SELECT * FROM t WHERE a = 1").requests
    True
    """

    def __init__(self, tables: Mapping[str, pa.Schema], *, dialect: str = "spark", timezone: str = "UTC") -> None:
        self._known = KnownTables.of(tables)
        self._dialect = dialect
        self._parser = dialect_named(dialect)
        self._timezone = timezone
        self._families: _Bounded[tuple[str, ...], _Family] = _Bounded(PLANS_KEPT)

    def read(self, sql: str) -> Statement:
        """Read a statement, by a plan that was made for its shape before where there is one."""
        cut = shape(sql)
        family = self._families.get(cut.key)
        if family is None:
            plan = self._plan(sql)
            self._families.put(cut.key, _Family.of(cut, plan))
            return plan.statement(None)
        plan_, constants = family.plan_for(cut)
        if plan_ is None:
            plan_ = self._plan(sql)
            family.learn(cut, plan_)
            return plan_.statement(None)
        # Where nothing is free the plan was made for just these constants, some of which may not have been cut out.
        return plan_.statement(constants if family.free else None)

    def read_afresh(self, sql: str) -> Statement:
        """Read a statement with nothing remembered of others; the same answer, slower."""
        return self._plan(sql).statement(None)

    def _plan(self, sql: str) -> _Plan:
        """Understand one text as far as its constants allow; nothing that SQL text can do to a parser gets out."""
        try:
            tree, problem = self._parse(sql)
        except Exception as failure:
            return _Plan(_problem(failure, sql))
        if problem is not None:
            return _Plan(problem)
        drop_hints(tree)
        free = free_constants(tree)
        number_mentions(tree)
        # Which tables are read is known even where nothing else is.
        mentioned = _mentioned(tree, self._known)
        template, others = self._template(sql), _others(tree, self._known)
        query = _query_of(tree)
        if query is None and isinstance(tree, (exp.Condition, exp.Alias)):
            return _Plan(Statement(problem="no statement, only an expression", line=1, column=1, template=template))
        if query is None:
            return _Plan(Statement(is_query=False, problem=_what_it_is(tree), template=template))
        if has_steps(sql) and loses_the_order_of_steps(query):
            reason = "the order of the statement's steps is not looked into"
            full = tuple(_full_read(self._known, number, reason) for number in mentioned)
            return _Plan(Statement(full, others=others, template=template))
        try:
            found = references(resolve(query, self._known, self._dialect), self._known, self._dialect)
            planned = tuple(_PlannedRequest.of(reference, self._bound, free) for reference in found)
        except Exception as failure:
            found_problem = _problem(failure, sql)
            if isinstance(failure, ColumnNotFound):
                found_problem = _placed(found_problem, tree, failure.name)
            full = tuple(_full_read(self._known, number, found_problem.problem) for number in mentioned)
            return _Plan(
                Statement(full, found_problem.problem, found_problem.line, found_problem.column, True, others, template)
            )
        return _Plan(Statement(others=others, template=template), planned, free)

    def _parse(self, sql: str) -> tuple[exp.Expr, Statement | None]:
        trees = [tree for tree in sqlglot.parse(sql, read=self._parser) if tree is not None]
        if not trees:
            return exp.Null(), Statement(problem="no statement, only comments or nothing", is_query=False)
        if len(trees) > 1:
            return exp.Null(), Statement(problem=f"{len(trees)} statements where one was expected")
        return trees[0], None

    def _template(self, sql: str) -> str:
        try:
            return template_text(sql, self._parser)
        except SqlglotError:
            return " ".join(sql.split())

    def _bound(self, condition: exp.Expr, schema: pa.Schema) -> _Bound:
        """Bind one condition; what depends on more than the row is left out."""
        if has_unfilled_template(condition):
            return _Bound((), f"a condition on a parameter is not used, its value is not known: {shortened(condition)}")
        try:
            whole = bind(
                cast("exp.Expression", condition),
                schema,
                dialect=self._dialect,
                case_sensitive=True,
                timezone=self._timezone,
            )
        except SkipstoneError as failure:
            return _Bound((), f"a condition is not used, {str(failure).splitlines()[0]}: {shortened(condition)}")
        except Exception as failure:
            return _Bound((), f"a condition is not used, {type(failure).__name__}: {shortened(condition)}")
        kept = tuple(predicate for predicate in whole if predicate.is_deterministic)
        if len(kept) < len(whole):
            if depends_on_more_than_the_row(condition):
                return _Bound(
                    kept, f"a condition whose value is not the row's alone is not used: {shortened(condition)}"
                )
            return _Bound(kept, f"a condition that has no certain meaning in Spark is not used: {shortened(condition)}")
        return _Bound(kept)


@dataclass(frozen=True, slots=True)
class _Bound:
    predicates: tuple[Predicate, ...]
    unknown: str = ""


@dataclass(slots=True)
class _PlannedCondition:
    """One condition over one table, and which of its literals (in the order sqlglot finds them) are free.

    `free` pairs the position of a literal in the tree with the place of the constant in the statement's text.
    """

    tree: exp.Expr
    schema: pa.Schema
    bound: Callable[[exp.Expr, pa.Schema], _Bound]
    free: tuple[tuple[int, int], ...]
    answers: _Bounded[tuple[str, ...], _Bound] = field(default_factory=lambda: _Bounded(ANSWERS_KEPT))

    def with_constants(self, constants: Mapping[int, str] | None) -> _Bound:
        """Bind the condition with other constants, or with its own where none are given."""
        key = () if constants is None else tuple(constants[place] for _, place in self.free)
        answer = self.answers.get(key)
        if answer is None:
            tree = self.tree.copy()
            if constants is not None:
                literals = list(tree.find_all(exp.Literal))
                for position, place in self.free:
                    literals[position].set("this", _value(constants[place]))
            answer = self.bound(tree, self.schema)
            self.answers.put(key, answer)
        return answer


@dataclass(frozen=True, slots=True)
class _PlannedRequest:
    """A request whose conditions are not bound yet."""

    table: str
    alias: str
    columns: tuple[str, ...]
    conditions: tuple[_PlannedCondition, ...]
    unknown: tuple[str, ...]
    mention: int | None

    @classmethod
    def of(
        cls, reference: Reference, bound: Callable[[exp.Expr, pa.Schema], _Bound], free: Mapping[int, bool]
    ) -> _PlannedRequest:
        """Give the conditions of a reference the column names of its schema."""
        conditions, unknown = [], list(reference.unknown)
        for condition in reference.conditions:
            named = _with_schema_names(condition, reference)
            if named is None:
                unknown.append(f"a column's name is not unique but for its case: {shortened(condition)}")
                continue
            literals = enumerate(named.find_all(exp.Literal))
            starts = ((position, literal.meta.get("start")) for position, literal in literals)
            places = tuple((position, start) for position, start in starts if start is not None and start in free)
            conditions.append(_PlannedCondition(named, _used(reference.table.schema, named), bound, places))
        return cls(
            reference.table.name,
            reference.alias,
            tuple(sorted(reference.columns)),
            tuple(conditions),
            tuple(dict.fromkeys(unknown)),
            reference.mention,
        )

    def request(self, constants: Mapping[int, str] | None) -> Request:
        """Bind the conditions and put them together."""
        parts = [condition.with_constants(constants) for condition in self.conditions]
        reasons = dict.fromkeys((*self.unknown, *(part.unknown for part in parts if part.unknown)))
        filter_ = _conjoined(tuple(part.predicates for part in parts))
        return Request(self.table, self.columns, filter_, self.alias, tuple(reasons), self.mention)


@functools.lru_cache(maxsize=ANSWERS_KEPT)
def _conjoined(parts: tuple[tuple[Predicate, ...], ...]) -> Conjunction:
    return conjunction(predicate for part in parts for predicate in part)


@dataclass(slots=True)
class _Plan:
    """All that can be known of a statement before its free constants are: `free` are their places in the text."""

    frame: Statement
    requests: tuple[_PlannedRequest, ...] = ()
    free: Mapping[int, bool] = field(default_factory=dict)
    answers: _Bounded[tuple[str, ...] | None, Statement] = field(default_factory=lambda: _Bounded(ANSWERS_KEPT))

    def statement(self, constants: tuple[str, ...] | None) -> Statement:
        """The statement with these free constants in the order of the text, or with its own."""
        if not self.requests:
            return self.frame
        answer = self.answers.get(constants)
        if answer is None:
            placed = None if constants is None else dict(zip(self.free, constants, strict=True))
            frame = self.frame
            answer = Statement(
                tuple(planned.request(placed) for planned in self.requests),
                is_query=frame.is_query,
                others=frame.others,
                template=frame.template,
            )
            self.answers.put(constants, answer)
        return answer


@dataclass(slots=True)
class _Family:
    """The plans of one shape: which constants are free is the same for all, the others tell the plans apart."""

    free: tuple[int, ...]
    dates: frozenset[int]
    fixed: tuple[int, ...]
    plans: _Bounded[tuple[str, ...], _Plan]

    @classmethod
    def of(cls, cut: Shape, plan: _Plan) -> _Family:
        """Begin a family with its first member."""
        free, dates = _free_numbers(cut, plan)
        fixed = tuple(number for number in range(len(cut.constants)) if number not in free)
        family = cls(free, dates, fixed, _Bounded(PLANS_KEPT))
        family.learn(cut, plan)
        return family

    def plan_for(self, cut: Shape) -> tuple[_Plan | None, tuple[str, ...]]:
        """The plan that another statement of the shape can use, with the constants to use in it."""
        constants = cut.constants
        if any(not looks_like_date(constants[number]) for number in self.dates):
            return None, ()
        plan = self.plans.get(tuple([constants[number] for number in self.fixed]))
        return plan, tuple([constants[number] for number in self.free])

    def learn(self, cut: Shape, plan: _Plan) -> None:
        """Keep a plan, if the same of its constants are free as in the rest of the family."""
        if _free_numbers(cut, plan) == (self.free, self.dates):
            self.plans.put(tuple(cut.constants[number] for number in self.fixed), plan)


def _free_numbers(cut: Shape, plan: _Plan) -> tuple[tuple[int, ...], frozenset[int]]:
    """Which of the pieces that look like constants are free literals to the parser, and which of those are dates.

    A literal that is free but was cut otherwise (a text with quotes inside) is no piece; then the plan must not be used
    for other statements as if it were, so nothing is free.
    """
    starts = {start: number for number, start in enumerate(cut.starts)}
    numbers = tuple(starts[start] for start in plan.free if start in starts)
    if len(numbers) != len(plan.free):
        return (), frozenset()
    dates = frozenset(starts[start] for start, is_date in plan.free.items() if is_date)
    if any(not looks_like_date(cut.constants[number]) for number in dates):
        return (), frozenset()
    return numbers, dates


class _Bounded(Generic[_Key, _Value]):
    """A dictionary that forgets everything when it has grown to its limit; cheaper than keeping track of use."""

    __slots__ = ("_limit", "_values")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        return self._values.get(key)

    def put(self, key: _Key, value: _Value) -> None:
        if len(self._values) >= self._limit:
            self._values.clear()
        self._values[key] = value


def _value(constant: str) -> str:
    return constant[1:-1] if constant[0] == "'" else constant


# Statements ------------------------------------------------------------------------------------------------------


def _query_of(tree: exp.Expr) -> exp.Expr | None:
    """The query whose rows a statement asks for: itself, or what INSERT and CREATE TABLE AS take their rows from."""
    if isinstance(tree, exp.Query):
        return tree
    if isinstance(tree, exp.Pivot):  # DuckDB's statement
        return exp.select("*").from_(exp.Subquery(this=tree))
    if isinstance(tree, (exp.Insert, exp.Create, exp.Cache)):
        query = tree.args.get("expression")
        if isinstance(query, exp.Query):
            with_ = tree.args.get("with_")
            if with_ is not None and query.args.get("with_") is None:
                query.set("with_", with_.pop())
            query.pop()
            return query
    return None


def _what_it_is(tree: exp.Expr) -> str:
    word = tree.name.upper() if isinstance(tree, exp.Command) and tree.name else tree.key.upper()
    return f"not a query but {word}"


def _mentioned(tree: exp.Expr, known: KnownTables) -> list[int]:
    found = (known.find(_parts(table)) for table in tree.find_all(exp.Table))
    return list(dict.fromkeys(number for number in found if number is not None))


def _others(tree: exp.Expr, known: KnownTables) -> tuple[str, ...]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = {
        ".".join(_parts(table))
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and known.find(_parts(table)) is None
    }
    return tuple(sorted(names - ctes))


def _parts(table: exp.Table) -> tuple[str, ...]:
    return tuple(part.name.lower() for part in table.parts)


def _full_read(known: KnownTables, number: int, reason: str) -> Request:
    table = known.tables[number]
    return Request(table.name, tuple(sorted(table.schema.names)), unknown=(reason,))


def _with_schema_names(condition: exp.Expr, reference: Reference) -> exp.Expr | None:
    """Give columns the one name that the schema has for them, without a table; None where there are two."""
    renamed = condition.copy()
    root = exp.Paren(this=renamed)  # so that a condition that is a column itself can be replaced
    for column in list(root.find_all(exp.Column)):
        names = reference.table.columns.get(column.name, ())
        if len(names) != 1:
            return None
        column.replace(exp.Column(this=exp.to_identifier(names[0], quoted=True)))
    result: exp.Expr = root.this
    return result


def _used(schema: pa.Schema, condition: exp.Expr) -> pa.Schema:
    """The part of a schema that a condition needs: binding to it costs the same however wide the table is."""
    names = {column.name for column in condition.find_all(exp.Column)}
    return pa.schema([column for column in schema if column.name in names])


def _placed(problem: Statement, tree: exp.Expr, name: str) -> Statement:
    """Point at the first place where a statement names what it has none of."""
    for identifier in tree.find_all(exp.Identifier):
        meta = identifier.meta
        if identifier.name.lower() == name.lower() and "line" in meta:
            begins = meta["col"] - (meta["end"] - meta["start"])
            return dataclasses.replace(problem, line=meta["line"], column=max(begins, 1))
    return problem


def _problem(failure: Exception, sql: str) -> Statement:
    """Say in one line why a text could not be read, and where."""
    if isinstance(failure, ParseError) and failure.errors:
        first = failure.errors[0]
        return Statement(problem=what_was_found(first), line=first.get("line"), column=first.get("col"))
    if isinstance(failure, TokenError):
        return Statement(problem=NO_WORDS)
    if isinstance(failure, RecursionError):
        return Statement(problem=f"nested too deeply to be read ({len(sql):,} characters)")
    lines: Iterable[str] = (line.strip() for line in str(failure).splitlines())
    reason = next((line for line in lines if line), type(failure).__name__)
    if not isinstance(failure, (SkipstoneError, SqlglotError)):
        reason = f"the parser failed ({type(failure).__name__}: {reason})"
    return Statement(problem=reason)

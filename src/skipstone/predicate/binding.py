"""From a parsed condition to a canonical conjunction: names found, constants typed, NOT resolved.

`bind` is the only door from sqlglot's trees to our values. It walks the condition once, from above, and carries along
whether a NOT stands over the part in hand. So NOT is resolved, under three-valued logic, before anything is simplified:
each leaf gives the formula of the rows that make it TRUE, or of those that make it FALSE, and all later steps may treat
FALSE and NULL alike. What is not understood becomes an `Opaque` literal with a canonical text, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skipstone.errors import InvalidQuery
from skipstone.predicate.comparing import between_expressions, require_one_type, with_constant
from skipstone.predicate.datatypes import BOOLEAN, DATE, STRING, integer_range, logical
from skipstone.predicate.expression import Constant, Expression
from skipstone.predicate.formula import ALWAYS_TRUE, NEVER_TRUE, Formula, all_of, any_of, not_true
from skipstone.predicate.literal import Comparison, Conjunction, InSet, MatchKind, NullTest, Operator
from skipstone.predicate.names import Names
from skipstone.predicate.normalising import canonical
from skipstone.predicate.opaque import opaque
from skipstone.predicate.patterns import backslash_escapes, like, matching
from skipstone.predicate.value_sets import order_key
from skipstone.predicate.values import NotUnderstood, Values

__all__ = ["bind"]


def bind(
    expression: exp.Expression,
    schema: pa.Schema,
    *,
    dialect: str = "spark",
    case_sensitive: bool = False,
    timezone: str = "UTC",
) -> Conjunction:
    """Bind a parsed condition to a schema and bring it into canonical form.

    >>> import sqlglot
    >>> from skipstone.predicate.printing import sql
    >>> schema = pa.schema([("Price", pa.decimal128(9, 2))])
    >>> print(sql(bind(sqlglot.parse_one("price = 0.055 OR price BETWEEN 1 AND 2.5"), schema)))
    Price >= 1.00 AND Price <= 2.50
    """
    binder = _Binder(Names(schema, case_sensitive=case_sensitive), dialect, timezone)
    try:
        return canonical(binder.condition(expression, negated=False))
    except RecursionError as problem:
        raise InvalidQuery("the condition is nested too deeply to be bound") from problem


_COMPARISONS: Final[dict[type[exp.Expression], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_EQUAL,
    exp.NullSafeEQ: Operator.NULL_SAFE_EQUAL,
    exp.NullSafeNEQ: Operator.NULL_SAFE_NOT_EQUAL,
}


class _Binder:
    def __init__(self, names: Names, dialect: str, timezone: str) -> None:
        self.names = names
        self.values = Values(names, dialect, timezone)
        self.default_escape = "\\" if backslash_escapes(dialect) else None
        self.dialect = dialect
        self.timezone = timezone

    def condition(self, node: exp.Expression, negated: bool) -> Formula:
        """The rows for which a condition is TRUE or, `negated`, for which it is FALSE."""
        operator = _COMPARISONS.get(type(node))
        try:
            if operator is not None:
                return self.comparison(operator, node, negated)
            handler = _HANDLERS.get(type(node))
            return handler(self, node, negated) if handler is not None else self.boolean_value(node, negated)
        except NotUnderstood:
            return opaque(node, self.names, negated=negated)

    def junction(self, node: exp.Expression, negated: bool) -> Formula:
        # Left-deep chains of thousands of ORs are common in generated SQL, so no recursion along them.
        parts = [self.condition(part, negated) for part in _chain(node)]
        return any_of(parts) if isinstance(node, exp.Or) != negated else all_of(parts)

    def comparison(self, operator: Operator, node: exp.Expression, negated: bool) -> Formula:
        listed = _listed_by_quantifier(operator, node.expression)
        if listed is not None:
            # x = ANY (ARRAY[p, q]) -> x IN (p, q); x <> ALL (ARRAY[p, q]) -> x NOT IN (p, q)
            as_list = exp.In(this=node.this, expressions=listed)
            return self.membership(as_list, negated != (operator is Operator.NOT_EQUAL))
        if isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple):
            return self.tuples(operator, node, negated)
        left, right = self.values.value(node.this), self.values.value(node.expression)
        return self.compared(operator.negated if negated else operator, left, right)

    def compared(self, operator: Operator, left: Expression, right: Expression) -> Formula:
        if isinstance(left, Constant) and not isinstance(right, Constant):
            left, right, operator = right, left, operator.flipped
        if isinstance(right, Constant):
            return with_constant(operator, left, right, self.timezone)
        return between_expressions(operator, left, right, self.timezone)

    def tuples(self, operator: Operator, node: exp.Expression, negated: bool) -> Formula:
        """(a, b) = (1, 2) -> a <=> 1 AND b <=> 2: Spark compares structs, and NULL equals NULL inside of them."""
        lefts, rights = node.this.expressions, node.expression.expressions
        if operator not in (Operator.EQUAL, Operator.NOT_EQUAL) or len(lefts) != len(rights) or not self.values.spark:
            raise NotUnderstood
        if operator.negated is Operator.EQUAL:
            negated = not negated
        single = Operator.NULL_SAFE_NOT_EQUAL if negated else Operator.NULL_SAFE_EQUAL
        parts = [
            self.compared(single, self.values.value(a), self.values.value(b))
            for a, b in zip(lefts, rights, strict=True)
        ]
        return any_of(parts) if negated else all_of(parts)

    def negation(self, node: exp.Expression, negated: bool) -> Formula:
        return self.condition(node.this, not negated)

    def parenthesis(self, node: exp.Expression, negated: bool) -> Formula:
        return self.condition(node.this, negated)

    def truth(self, node: exp.Boolean, negated: bool) -> Formula:
        return ALWAYS_TRUE if bool(node.this) != negated else NEVER_TRUE

    def null(self, node: exp.Null, negated: bool) -> Formula:
        return NEVER_TRUE

    def between(self, node: exp.Between, negated: bool) -> Formula:
        if node.args.get("symmetric"):
            raise NotUnderstood
        value = self.values.value(node.this)
        low, high = self.values.value(node.args["low"]), self.values.value(node.args["high"])
        if negated:
            return any_of([self.compared(Operator.LESS, value, low), self.compared(Operator.GREATER, value, high)])
        return all_of(
            [self.compared(Operator.GREATER_EQUAL, value, low), self.compared(Operator.LESS_EQUAL, value, high)]
        )

    def membership(self, node: exp.In, negated: bool) -> Formula:
        unnested = node.args.get("unnest")
        if isinstance(unnested, exp.Unnest) and not node.expressions and len(unnested.expressions) == 1:
            # x IN UNNEST([p, q]) -> x IN (p, q)
            node = exp.In(this=node.this, expressions=_elements(unnested.expressions[0]) or [])
        if not node.expressions or any(node.args.get(key) for key in ("query", "unnest", "field")):
            raise NotUnderstood
        if isinstance(node.this, exp.Tuple):
            parts = [
                self.tuples(Operator.EQUAL, exp.EQ(this=node.this, expression=each), negated)
                if isinstance(each, exp.Tuple)
                else self._refuse()
                for each in node.expressions
            ]
            return all_of(parts) if negated else any_of(parts)
        value = self.values.value(node.this)
        operator = Operator.NOT_EQUAL if negated else Operator.EQUAL
        given = [self.values.value(each) for each in node.expressions]
        members = _members(value, given)
        if members is not None:
            return with_members(value, members, negated)
        require_one_type(value, given)
        parts = [self.compared(operator, value, each) for each in given]
        return self._gathered(value, parts, negated)

    def _refuse(self) -> Formula:
        raise NotUnderstood

    def _gathered(self, value: Expression, parts: list[Formula], negated: bool) -> Formula:
        """Put equalities on one value into one IN, which normalising would do one by one."""
        wanted = Operator.NOT_EQUAL if negated else Operator.EQUAL
        found: dict[object, Constant] = {}
        rest: list[Formula] = []
        for part in parts:
            if (
                isinstance(part, Comparison)
                and part.operator is wanted
                and part.left is value
                and isinstance(part.right, Constant)
                and (not found or part.right.type == next(iter(found.values())).type)
            ):
                found[order_key(part.right)] = part.right
            else:
                rest.append(part)
        if len(found) > 1:
            rest.append(InSet(value, tuple(found[key] for key in sorted(found)), negated))  # type: ignore[type-var]
        else:
            rest.extend(Comparison(wanted, value, constant) for constant in found.values())
        return all_of(rest) if negated else any_of(rest)

    def is_(self, node: exp.Is, negated: bool) -> Formula:
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return self.null_test(node.this, negated)
        if not isinstance(wanted, exp.Boolean):
            raise NotUnderstood
        found = self.condition(node.this, negated=not wanted.this)
        return not_true(found) if negated else found

    def null_test(self, tested: exp.Expression, negated: bool) -> Formula:
        value = self.values.value(tested)
        if isinstance(value, Constant):
            return ALWAYS_TRUE if value.is_null != negated else NEVER_TRUE
        return NullTest(value, negated)

    def escaped(self, node: exp.Escape, negated: bool) -> Formula:
        escape = self.values.value(node.expression)
        if not isinstance(node.this, (exp.Like, exp.ILike)) or not isinstance(escape, Constant):
            raise NotUnderstood
        return self.like(node.this, negated, escape=escape.value if isinstance(escape.value, str) else None)

    def like(self, node: exp.Expression, negated: bool, escape: str | None = None) -> Formula:
        kind = MatchKind.ILIKE if isinstance(node, exp.ILike) else MatchKind.LIKE
        each_negated = negated != bool(node.args.get("negate"))
        if isinstance(node.expression, (exp.Any, exp.All)):
            if node.args.get("negate") and not self.values.spark and self.dialect not in ("postgres", "redshift"):
                raise NotUnderstood  # elsewhere x NOT LIKE ANY (p, q) may mean NOT (x LIKE ANY (p, q))
            # x NOT LIKE ANY (p, q) -> x NOT LIKE p OR x NOT LIKE q; it is not the negation of x LIKE ANY (p, q)
            listed = node.expression.this
            patterns = listed.expressions if isinstance(listed, (exp.Tuple, exp.Array)) else [listed.unnest()]
            parts = [self._like_one(kind, node.this, each, escape, each_negated) for each in patterns]
            return any_of(parts) if isinstance(node.expression, exp.Any) != negated else all_of(parts)
        return self._like_one(kind, node.this, node.expression, escape, each_negated)

    def _like_one(
        self, kind: MatchKind, text: exp.Expression, pattern: exp.Expression, escape: str | None, negated: bool
    ) -> Formula:
        value, written = self.values.value(text), self.values.value(pattern)
        if not isinstance(written, Constant) or logical(value.type) != STRING or isinstance(value, Constant):
            raise NotUnderstood
        if written.is_null:
            return NEVER_TRUE
        if not isinstance(written.value, str):
            raise NotUnderstood
        found = like(kind, value, written.value, escape if escape is not None else self.default_escape, negated)
        if found is None:
            raise NotUnderstood
        return found

    def match(self, node: exp.Expression, negated: bool) -> Formula:
        kind = _MATCHES[type(node)]
        if kind is MatchKind.RLIKE and self.dialect not in ("spark", "databricks", "hive", "spark2"):
            raise NotUnderstood  # another engine's regular expressions
        extra = [value for key, value in node.args.items() if key not in ("this", "expression") and value]
        value, written = self.values.value(node.this), self.values.value(node.expression)
        if extra or not isinstance(written, Constant) or isinstance(value, Constant) or logical(value.type) != STRING:
            raise NotUnderstood
        if written.is_null:
            return NEVER_TRUE
        if not isinstance(written.value, str):
            raise NotUnderstood
        return matching(kind, value, written.value, negated)

    def is_nan(self, node: exp.IsNan, negated: bool) -> Formula:
        """isnan(x) is FALSE, not NULL, where x is NULL."""
        value = self.values.value(node.this)
        if isinstance(value, Constant) or not pa.types.is_floating(value.type):
            raise NotUnderstood
        nan = Constant(float("nan"), value.type)
        found = with_constant(Operator.EQUAL, value, nan, self.timezone)
        return not_true(found) if negated else found

    def coalesced(self, node: exp.Coalesce, negated: bool) -> Formula:
        """COALESCE(P, FALSE) is TRUE where P is and FALSE elsewhere; COALESCE(P, TRUE) the other way round."""
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Boolean):
            return self.boolean_value(node, negated)
        if_null = bool(node.expressions[0].this)
        found = self.condition(node.this, negated=if_null)
        return found if negated == if_null else not_true(found)

    def boolean_value(self, node: exp.Expression, negated: bool) -> Formula:
        if isinstance(node, exp.Anonymous):
            found = self.anonymous(node, negated)
            if found is not None:
                return found
        value = self.values.value(node)
        if logical(value.type) != BOOLEAN:
            raise NotUnderstood
        return self.compared(Operator.EQUAL, value, Constant(not negated, BOOLEAN))

    def anonymous(self, node: exp.Anonymous, negated: bool) -> Formula | None:
        """The functions that answer yes or no and that sqlglot leaves by name."""
        name, arguments = str(node.this).lower(), node.expressions
        if name in ("isnull", "isnotnull") and len(arguments) == 1:
            return self.null_test(arguments[0], negated != (name == "isnotnull"))
        if name in ("regexp", "rlike") and len(arguments) == 2:
            return self.match(exp.RegexpLike(this=arguments[0], expression=arguments[1]), negated)
        return None


def _elements(node: exp.Expression) -> list[exp.Expression] | None:
    """The elements of an array that is written out; None for any other."""
    inside = node.unnest()
    return list(inside.expressions) if isinstance(inside, exp.Array) else None


def _listed_by_quantifier(operator: Operator, node: exp.Expression) -> list[exp.Expression] | None:
    """The elements of the array in `= ANY (ARRAY[..])` and `<> ALL (ARRAY[..])`."""
    if operator is Operator.EQUAL and isinstance(node, exp.Any):
        return _elements(node.this)
    # sqlglot reads ALL before a parenthesis as a function, unless there is a query within
    if operator is Operator.NOT_EQUAL and isinstance(node, exp.Anonymous) and node.name.upper() == "ALL":
        return _elements(node.expressions[0]) if len(node.expressions) == 1 else None
    return None


def _members(value: Expression, given: list[Expression]) -> list[Constant] | None:
    """The constants of a list that are of the value's own type as they stand, which lists of thousands mostly are."""
    type_ = logical(value.type)
    if type_ in (STRING, DATE):
        plain = all(isinstance(each, Constant) and each.type == type_ and each.value is not None for each in given)
        return given if plain else None  # type: ignore[return-value]
    if not pa.types.is_integer(type_) or isinstance(value, Constant):
        return None
    least, greatest = integer_range(type_)
    found = []
    for each in given:
        if not isinstance(each, Constant) or type(each.value) is not int or not least <= each.value <= greatest:
            return None
        found.append(each if each.type == type_ else Constant(each.value, type_))
    return found


def with_members(value: Expression, members: list[Constant], negated: bool) -> Formula:
    """Say that a value is, or is not, one of several constants of its own type, none of them NULL.

    >>> with_members(Constant(1, pa.int32()), [Constant(1, pa.int32())], False) == ALWAYS_TRUE
    True
    """
    if isinstance(value, Constant):
        found = [each for each in members if each == value]
        return ALWAYS_TRUE if bool(found) != negated and not value.is_null else NEVER_TRUE
    distinct = {each.value: each for each in members}
    ordered = tuple(distinct[key] for key in sorted(distinct))  # type: ignore[type-var]
    if len(ordered) == 1:
        return Comparison(Operator.NOT_EQUAL if negated else Operator.EQUAL, value, ordered[0])
    return InSet(value, ordered, negated)


def _chain(node: exp.Expression) -> list[exp.Expression]:
    """The parts of a AND b AND c, however they are nested."""
    parts: list[exp.Expression] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if type(each) is type(node):
            pending += [each.expression, each.this]
        elif isinstance(each, exp.Paren) and type(each.this) is type(node):
            pending.append(each.this)
        else:
            parts.append(each)
    return parts


_MATCHES: Final[dict[type[exp.Expression], MatchKind]] = {
    exp.StartsWith: MatchKind.PREFIX,
    exp.EndsWith: MatchKind.SUFFIX,
    exp.Contains: MatchKind.CONTAINS,
    exp.RegexpLike: MatchKind.RLIKE,
}

Handler = Callable[[_Binder, exp.Expression, bool], Formula]

_HANDLERS: Final[dict[type[exp.Expression], Handler]] = {
    exp.And: _Binder.junction,
    exp.Or: _Binder.junction,
    exp.Not: _Binder.negation,
    exp.Paren: _Binder.parenthesis,
    exp.Boolean: _Binder.truth,  # type: ignore[dict-item]
    exp.Null: _Binder.null,  # type: ignore[dict-item]
    exp.Between: _Binder.between,  # type: ignore[dict-item]
    exp.In: _Binder.membership,  # type: ignore[dict-item]
    exp.Is: _Binder.is_,  # type: ignore[dict-item]
    exp.Escape: _Binder.escaped,  # type: ignore[dict-item]
    exp.Like: _Binder.like,
    exp.ILike: _Binder.like,
    exp.Coalesce: _Binder.coalesced,  # type: ignore[dict-item]
    exp.IsNan: _Binder.is_nan,  # type: ignore[dict-item]
    **dict.fromkeys(_MATCHES, _Binder.match),
}

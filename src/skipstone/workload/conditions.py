"""Conditions as sqlglot trees: taken apart, weakened, translated, and asked what they do with NULLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

__all__ = [
    "aliases_in",
    "all_of",
    "any_of",
    "columns_in",
    "compared_with_constants",
    "conjuncts",
    "equated",
    "fails_on_nulls",
    "has_unfilled_template",
    "is_null_on_nulls",
    "shortened",
    "substitute",
    "weakened",
    "with_column",
    "with_columns_changed",
    "within",
    "without_table",
]

MOST_CTE_USES_JOINED = 4
"""A common table expression with more uses than this is read without their conditions: the disjunction would grow."""

_NULL_IN_NULL_OUT: tuple[type[exp.Expr], ...] = (
    exp.Paren, exp.Neg, exp.Cast, exp.TryCast, exp.Lower, exp.Upper, exp.Length, exp.Abs, exp.Year, exp.Month, exp.Day,
    exp.TsOrDsToDate, exp.Date, exp.Substring, exp.Trim,
)  # fmt: skip
_ARITHMETIC: tuple[type[exp.Expr], ...] = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_COMPARISONS: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_PATTERNS: tuple[type[exp.Expr], ...] = (exp.Like, exp.ILike, exp.RegexpLike, exp.StartsWith, exp.EndsWith)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Take a condition apart into conditions that must all be TRUE.

    >>> import sqlglot
    >>> [c.sql() for c in conjuncts(sqlglot.condition("a = 1 AND NOT (b = 2 OR c = 3)"))]
    ['a = 1', 'NOT b = 2', 'NOT c = 3']
    """
    match condition:
        case None:
            return
        case exp.And():
            yield from conjuncts(condition.left)
            yield from conjuncts(condition.right)
        case exp.Paren():
            yield from conjuncts(condition.this)
        case exp.Not() if isinstance(inner := condition.this.unnest(), exp.Or):
            yield from conjuncts(exp.Not(this=inner.left.copy()))
            yield from conjuncts(exp.Not(this=inner.right.copy()))
        case exp.Not() if isinstance(inner := condition.this.unnest(), exp.Not):
            yield from conjuncts(inner.this)
        case _:
            yield condition


def columns_in(condition: exp.Expr) -> Iterator[exp.Column]:
    return condition.find_all(exp.Column)


def aliases_in(condition: exp.Expr) -> set[str]:
    return {column.table for column in columns_in(condition)}


def within(conditions: Iterable[exp.Expr], aliases: frozenset[str]) -> list[exp.Expr]:
    """What the conditions say about some sources alone."""
    return [own for condition in conditions if (own := weakened(condition, aliases)) is not None]


def weakened(condition: exp.Expr, aliases: frozenset[str]) -> exp.Expr | None:
    """A condition over the given sources alone that is TRUE wherever the given one is; None if there is none to see.

    (a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4), for a alone: a.x = 1 OR a.x = 3
    """
    if aliases_in(condition) <= aliases:
        return condition
    match condition:
        case exp.Paren():
            return weakened(condition.this, aliases)
        case exp.And():
            parts = within(conjuncts(condition), aliases)
            return all_of(parts) if parts else None
        case exp.Or():
            left, right = weakened(condition.left, aliases), weakened(condition.right, aliases)
            return exp.or_(left, right, copy=True) if left is not None and right is not None else None
    return None


def all_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    return parts[0] if len(parts) == 1 else exp.and_(*parts, copy=True)


def any_of(uses: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    """One condition that holds for the rows that any use of a CTE needs; several where there is one use."""
    if len(uses) == 1:
        return uses[0]
    if not uses or len(uses) > MOST_CTE_USES_JOINED or not all(uses):
        return []
    return [exp.or_(*(all_of(use) for use in uses), copy=True)]


def substitute(demand: exp.Expr, outputs: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """Write a demand in terms of what its columns are made of; None if one of them is not to be had."""
    if any(column.name not in outputs for column in columns_in(demand)):
        return None

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            made_of = outputs[node.name].copy()
            return made_of if isinstance(made_of, (exp.Column, exp.Literal)) else exp.Paren(this=made_of)
        return node

    return with_columns_changed(demand, replace)


def with_columns_changed(condition: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Copy a condition with its columns changed; unlike sqlglot's transform it does not look into what it put in."""
    copied = condition.copy()
    if isinstance(copied, exp.Column):
        return change(copied)
    for column in list(columns_in(copied)):
        column.replace(change(column))
    return copied


def without_table(demand: exp.Expr) -> exp.Expr:
    return with_columns_changed(demand, lambda column: exp.Column(this=exp.to_identifier(column.name, quoted=True)))


def with_column(condition: exp.Expr, other: exp.Column) -> exp.Expr:
    return with_columns_changed(condition, lambda _: other.copy())


def equated(condition: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    if isinstance(condition, exp.EQ):
        left, right = condition.left.unnest(), condition.right.unnest()
        if isinstance(left, exp.Column) and isinstance(right, exp.Column) and left.table != right.table:
            return left, right
    return None


def compared_with_constants(condition: exp.Expr) -> exp.Column | None:
    """The one column of a condition that does nothing but compare this column with constants."""
    columns = list(columns_in(condition))
    first = columns[0] if columns else None
    if first is None or any((column.table, column.name) != (first.table, first.name) for column in columns):
        return None
    plain = (
        *_COMPARISONS, exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Between, exp.In, exp.Or, exp.And,
        exp.Not, exp.Like, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Neg, exp.Add, exp.Sub, exp.Interval, exp.Var,
    )  # fmt: skip
    if not all(isinstance(node, plain) for node in condition.walk()):
        return None
    bare = all(
        isinstance(column.parent, (*_COMPARISONS, exp.Between, exp.In, exp.Like, exp.Paren)) for column in columns
    )
    return first if bare else None


def fails_on_nulls(condition: exp.Expr, aliases: frozenset[str]) -> bool:
    """Whether a condition cannot be TRUE where all columns of the given sources are NULL."""
    match condition:
        case exp.Paren():
            return fails_on_nulls(condition.this, aliases)
        case exp.And():
            return fails_on_nulls(condition.left, aliases) or fails_on_nulls(condition.right, aliases)
        case exp.Or():
            return fails_on_nulls(condition.left, aliases) and fails_on_nulls(condition.right, aliases)
        case exp.Not():
            inner = condition.this.unnest()
            if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
                return is_null_on_nulls(inner.this, aliases)
            # NOT of NULL is NULL; NOT of FALSE would be TRUE, so the inside must be known to be NULL.
            return is_null_on_nulls(inner, aliases)
    return is_null_on_nulls(condition, aliases)


def is_null_on_nulls(node: exp.Expr, aliases: frozenset[str]) -> bool:
    """Whether an expression is NULL where all columns of the given sources are NULL."""
    if isinstance(node, exp.Column):
        return node.table in aliases
    if isinstance(node, exp.Binary) and _is_many(node.right):
        return False  # compared with nothing at all, `x <> ALL (...)` is TRUE and `x = ANY (...)` FALSE, x NULL or not
    if isinstance(node, exp.Binary) and isinstance(node, (*_COMPARISONS, *_ARITHMETIC)):
        return is_null_on_nulls(node.left, aliases) or is_null_on_nulls(node.right, aliases)
    if isinstance(node, (exp.Between, *_PATTERNS, *_NULL_IN_NULL_OUT)):
        return is_null_on_nulls(node.this, aliases)
    if isinstance(node, exp.In):
        return bool(node.expressions) and is_null_on_nulls(node.this, aliases)
    return False


def _is_many(node: exp.Expr) -> bool:
    """Whether one side of a comparison is ANY, SOME or ALL of a list."""
    return isinstance(node, (exp.All, exp.Any)) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in ("all", "any", "some")
    )


def has_unfilled_template(condition: exp.Expr) -> bool:
    """Whether a condition holds `{{ name }}`, as templates of dashboards do until somebody fills them in.

    >>> import sqlglot
    >>> has_unfilled_template(sqlglot.condition("country = '{{ params.country }}'"))
    True
    """
    for node in condition.find_all(exp.Literal, exp.Struct):
        if isinstance(node, exp.Struct):
            # Bare braces are read as a struct within a struct.
            if any(isinstance(inner, exp.Struct) for inner in node.expressions):
                return True
        elif node.is_string and _TEMPLATE.search(node.name):
            return True
    return False


_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\{%.*?%\}")


def shortened(condition: exp.Expr, width: int = 80) -> str:
    """Name a condition in a sentence, with `?` for constants: the reason is the same for all statements of a template.

    >>> import sqlglot
    >>> shortened(sqlglot.condition("a = 1 AND b IN ('x', 'y') AND c IN (SELECT d FROM t)"))
    'a = ? AND b IN (?, ?) AND c IN (...)'
    """
    root = exp.Paren(this=condition.copy())
    for literal in list(root.find_all(exp.Literal)):
        literal.replace(exp.Placeholder())
    for node in list(root.walk()):
        if isinstance(node, exp.Query):
            node.replace(exp.var("..."))
    text = root.this.sql(dialect="spark").replace("IN ...", "IN (...)")
    return text if len(text) <= width else f"{text[: width - 4]} ..."

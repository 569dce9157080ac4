"""What a SELECT, a join or an item of FROM lets pass, and what it makes of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from skipstone.workload.resolving import cte_of

__all__ = [
    "branches_of",
    "by_position",
    "direct_table",
    "group_keys",
    "has_steps",
    "is_aggregated",
    "is_comma",
    "is_output_name",
    "items_of_from",
    "join_side",
    "leaf_barrier",
    "limits_rows",
    "literal_type",
    "loses_the_order_of_steps",
    "made_of",
    "may_be_a_word",
    "may_read_by_name",
    "names_something",
    "outputs_of",
    "parts_of_output",
    "projection_barrier",
    "renames_columns",
    "row_by_row",
    "select_barrier",
    "unread_star_columns",
    "unusable",
    "windows_of",
]

_HARMLESS_SELECT_PARTS = frozenset({
    "with_", "kind", "expressions", "hint", "distinct", "into", "from_", "operation_modifiers", "laterals", "joins",
    "prewhere", "where", "group", "having", "qualify", "windows", "distribute", "sort", "cluster", "order", "limit",
    "offset", "locks", "settings", "format", "options", "sample", "exclude",
})  # fmt: skip
"""The parts of a SELECT that this module knows. Any other (CONNECT BY, MATCH_RECOGNIZE ...) makes it a full read."""

_ONE_ROW_AT_A_TIME: tuple[type[exp.Expr], ...] = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.Mod, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Case, exp.If, exp.Coalesce, exp.Lower,
    exp.Upper, exp.Substring, exp.Trim, exp.Length, exp.Abs, exp.Concat, exp.DPipe, exp.Year, exp.Month, exp.Day,
    exp.Date, exp.TsOrDsToDate, exp.DateTrunc, exp.TimestampTrunc, exp.Extract, exp.Var, exp.Interval, exp.Dot,
    exp.Bracket, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is, exp.In,
    exp.Between, exp.Like, exp.ILike, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif,
)  # fmt: skip
"""What a demand may be translated into: functions of one row that give the same value whenever they are asked."""

_STATEFUL_FUNCTIONS = frozenset({
    "monotonically_increasing_id", "rownum", "row_number", "input_file_name", "neighbor", "rownumberinblock",
    "rownumberinallblocks", "runningaccumulate", "runningconcurrency", "runningdifference", "seq1", "seq2", "seq4",
    "seq8",
})  # fmt: skip
"""Functions whose value for a row depends on which other rows are there."""

_UNITS_OF_TIME = frozenset({
    "year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "dow", "doy", "hour", "minute", "second",
    "millisecond", "microsecond", "epoch", "isoweek", "years", "months", "weeks", "days", "hours", "minutes",
    "seconds", "yy", "mm", "dd", "hh", "mi", "ss",
})  # fmt: skip
"""Words that functions take bare, as in date_part(dow, ts), and that sqlglot may take for columns."""


def limits_rows(node: exp.Expr) -> bool:
    return any(node.args.get(part) for part in ("limit", "offset", "sample", "for_"))


def has_steps(sql: str) -> bool:
    """Whether a text may be written in steps: `FROM t |> WHERE a = 1 |> SELECT b`."""
    return "|>" in sql


def loses_the_order_of_steps(query: exp.Expr) -> bool:
    """Whether a statement written in steps may ask for other rows than the query it was parsed to.

    The parser makes one SELECT of steps that follow each other, so `|> LIMIT 3 |> WHERE a = 1` and
    `|> WHERE a = 1 |> LIMIT 3` are the same to it. For steps that drop or keep each row by itself the order is nothing.
    """
    if any(limits_rows(part) or part.args.get("distinct") for part in query.find_all(exp.Query)):
        return True
    return not {join_side(join) for join in query.find_all(exp.Join)} <= {"", "LEFT", "SEMI", "ANTI"}


def select_barrier(node: exp.Select) -> str:
    """Why not even the SELECT's own WHERE may be used, if it may not."""
    strange = sorted(part for part, value in node.args.items() if value and part not in _HARMLESS_SELECT_PARTS)
    if strange:
        return f"{strange[0].strip('_').upper()} is not looked into"
    if node.args.get("sample"):
        return "a filter above a sample stays above it"
    if _counts_rows(node):
        return "a filter beside a function of all rows is not used before it"
    if any(column.args.get("join_mark") for column in node.find_all(exp.Column)):
        return "an outer join written with (+) is not looked into"
    return ""


def projection_barrier(node: exp.Select) -> str:
    """Why no demand on a SELECT's output may pass into it, if none may."""
    if limits_rows(node):
        return "a filter above LIMIT stays above it"
    distinct = node.args.get("distinct")
    if distinct and distinct.args.get("on"):
        return "a filter above DISTINCT ON stays above it"
    if node.args.get("kind") or any(isinstance(projection, exp.QueryTransform) for projection in node.expressions):
        return "the output of this SELECT is not looked into"
    for projection in node.expressions:
        for part in projection.walk():
            if isinstance(part, (exp.Explode, exp.Unnest, exp.Rand, exp.Uuid, exp.Pseudocolumn)) or _is_stateful(part):
                return "a filter above a generator or a function of all rows stays above it"
    return ""


def _is_stateful(node: exp.Expr) -> bool:
    named = isinstance(node, (exp.Anonymous, exp.Column))
    return (node.name.lower() if named else node.key) in _STATEFUL_FUNCTIONS


def _counts_rows(node: exp.Select) -> bool:
    """Whether the rows of a SELECT are chosen by a function that would give others if some of them were not there."""
    joins = [join.args.get("on") for join in node.args.get("joins") or ()]
    chosen_by = [node.args.get("where"), node.args.get("prewhere"), *joins]
    return any(_is_stateful(part) for clause in chosen_by if clause is not None for part in clause.walk())


def leaf_barrier(node: exp.Expr) -> str:
    """Why conditions on an item of FROM may not be used before it is read, if they may not."""
    if isinstance(node, exp.Final):
        return "a filter above FINAL stays above it"
    for part, reason in (
        ("sample", "a filter above a sample stays above it"),
        ("pivots", "a filter above PIVOT stays above it"),
        ("version", "another version of the table is asked for"),
        ("when", "another version of the table is asked for"),
        ("system_time", "another version of the table is asked for"),
        ("changes", "the table's changes are asked for"),
        ("ordinality", "a filter above WITH ORDINALITY stays above it"),
        ("match", "a filter above MATCH_RECOGNIZE stays above it"),
    ):
        if node.args.get(part):
            return reason
    if isinstance(node, exp.Subquery) and limits_rows(node):
        return "a filter above LIMIT stays above it"
    if renames_columns(node):
        return "a filter on columns that have other names in the statement is not used"
    return ""


def renames_columns(node: exp.Expr) -> bool:
    """Whether an item of FROM gives its columns other names: `t AS x (b, a)`.

    For a query in parentheses and a WITH clause, the names have been written into the query when names were resolved.
    """
    alias = node.args.get("alias")
    return bool(isinstance(alias, exp.TableAlias) and alias.args.get("columns"))


def items_of_from(query: exp.Expr) -> Iterator[exp.Expr]:
    """The tables that a statement reads, and what else it reads that is no table to the parser."""
    yield from query.find_all(exp.Table)
    yield from (part.this for part in query.find_all(exp.From, exp.Join) if isinstance(part.this, exp.TableAlias))


def may_read_by_name(item: exp.Expr, name: str) -> bool:
    """Whether an item of FROM may be the common table expression of a name, though it does not look so.

    Such are `TABLE x` (to the parser a table called TABLE, with the alias x), `IDENTIFIER('x')`, `f(TABLE(x))`, and the
    x of the step `|> AS x`.
    """
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
        return cte_of(item) is None and item.alias == name
    if isinstance(item, (exp.Table, exp.TableAlias)):
        named = (part.name.lower() for part in item.find_all(exp.Identifier, exp.Literal))
        return name in named or any(names_something(part) for part in item.walk())
    return False


def unusable(condition: exp.Expr) -> str:
    for node in condition.walk():
        if isinstance(node, exp.Query):
            return "a condition that asks another query is not used"
        if isinstance(node, (exp.Parameter, exp.Placeholder, exp.SessionParameter)):
            return "a condition on a parameter is not used, its value is not known"
        if names_something(node):
            return "a condition on a name that is given as a text is not used"
        if isinstance(node, (exp.AggFunc, exp.Window)):
            return "a condition on an aggregate or a window is not used"
        if isinstance(node, exp.Column) and not node.table:
            return "a condition on a name that was not resolved is not used"
    return ""


def join_side(join: exp.Join) -> str:
    """Name the kind of a join as far as pushing is concerned."""
    side, kind, method = join.side.upper(), join.kind.upper(), join.method.upper()
    if isinstance(join.this, exp.Lateral) and join.this.args.get("cross_apply") is False:
        side = "LEFT"
    if method not in ("", "GLOBAL") and not (method == "NATURAL" and not side):
        return "?"
    if kind in ("SEMI", "ANTI"):
        return kind if side in ("", "LEFT") else "?"
    if kind not in ("", "INNER", "OUTER", "CROSS") or join.args.get("using"):
        return "?"
    if kind == "OUTER" and not side:
        return "?"
    return side if side in ("", "LEFT", "RIGHT", "FULL") else "?"


def is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(part) for part in ("side", "kind", "method", "on", "using"))


def group_keys(node: exp.Select) -> list[exp.Expr]:
    """The expressions that every row of a group shares; none where grouping sets leave some out."""
    group = node.args.get("group")
    if group is None or any(value for part, value in group.args.items() if part != "expressions"):
        return []
    if any(isinstance(key, (exp.Rollup, exp.Cube, exp.GroupingSets)) for key in group.expressions):
        return []
    return [key for key in group.expressions if not isinstance(key, exp.Literal)]


def is_aggregated(node: exp.Select) -> bool:
    if node.args.get("group") or node.args.get("having"):
        return True
    return any(
        isinstance(part, exp.AggFunc) for part in parts_of_output(node) if not isinstance(part.parent, exp.Window)
    )


def windows_of(node: exp.Select) -> list[exp.Window]:
    return [part for part in parts_of_output(node) if isinstance(part, exp.Window)]


def parts_of_output(node: exp.Select) -> Iterator[exp.Expr]:
    """Everything in the select list, QUALIFY and ORDER BY of a SELECT, without the queries inside."""
    parts = [*node.expressions, node.args.get("qualify"), node.args.get("order"), node.args.get("having")]
    for part in parts:
        if part is not None:
            yield from part.walk(prune=lambda inner: isinstance(inner, exp.Query))


def row_by_row(expression: exp.Expr) -> bool:
    return all(isinstance(node, _ONE_ROW_AT_A_TIME) for node in expression.walk())


def made_of(expression: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    """Whether an expression is a function of the keys: no column is left once they are taken out."""
    if any(expression == key for key in keys):
        return True
    if isinstance(expression, exp.Column):
        return False
    return all(made_of(part, keys) for part in expression.iter_expressions())


def outputs_of(node: exp.Select) -> dict[str, exp.Expr]:
    """The output columns of a SELECT by name, without names that are given twice."""
    outputs: dict[str, exp.Expr] = {}
    doubled = set()
    for projection in node.selects:
        name = projection.alias_or_name
        if name in outputs or not name:
            doubled.add(name)
        outputs[name] = projection.unalias()
    return {name: expression for name, expression in outputs.items() if name not in doubled and name != "*"}


def by_position(names: Sequence[str], branch: exp.Query) -> dict[str, exp.Expr]:
    """The columns of a branch of a set operation under the names that the whole operation gives them."""
    own = branch.named_selects
    if len(own) != len(names) or "*" in own:
        return {}
    return {
        name: exp.Column(this=exp.to_identifier(mine, quoted=True))
        for name, mine in zip(names, own, strict=True)
        if names.count(name) == 1 and own.count(mine) == 1
    }


def branches_of(query: exp.Expr) -> Iterator[exp.Expr]:
    """The SELECTs that a query's rows come from."""
    if isinstance(query, exp.SetOperation):
        yield from branches_of(query.left)
        yield from branches_of(query.right)
    elif isinstance(query, exp.Subquery):
        yield from branches_of(query.this)
    else:
        yield query


def is_output_name(column: exp.Column) -> bool:
    """Whether a bare name is an output of the query it stands in, as it may be in ORDER BY and HAVING."""
    query = column.find_ancestor(exp.Query)
    if not isinstance(query, exp.Query) or column.table:
        return False
    # `SELECT c` needs a column c: it is no name for itself, only for another item of the list.
    item = column.parent if isinstance(column.parent, exp.Alias) else column
    is_itself = item.parent is query and item.arg_key == "expressions" and item.alias_or_name == column.name
    return query.named_selects.count(column.name) > is_itself


def may_be_a_word(column: exp.Column) -> bool:
    """Whether a name that nothing owns may be no column at all: an output, a lambda's variable, a unit of time."""
    if is_output_name(column) or column.find_ancestor(exp.Lambda) is not None:
        return True
    return column.name in _UNITS_OF_TIME and isinstance(column.parent, exp.Func)


def names_something(node: exp.Expr) -> bool:
    """Whether an expression stands for whatever its text names: `IDENTIFIER('a')` is column a."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "identifier"


def direct_table(select: exp.Select, alias: str) -> exp.Table | None:
    """The table that stands under an alias in a SELECT's own FROM clause."""
    from_ = select.args.get("from_")
    items = [from_.this] if from_ else []
    items += [join.this for join in select.args.get("joins") or ()]
    for item in items:
        if isinstance(item, exp.Table) and item.alias_or_name == alias:
            return None if item.args.get("pivots") or renames_columns(item) else item
    return None


def literal_type(expression: exp.Expr) -> pa.DataType | None:
    return pa.string() if isinstance(expression, exp.Literal) and expression.is_string else None


def unread_star_columns(node: exp.Select, needed: set[str] | None) -> list[exp.Expr]:
    """The columns that a star became and that nobody around this SELECT reads."""
    if needed is None or "star" not in node.meta or node.args.get("distinct"):
        return []
    return [
        projection
        for projection in node.expressions
        if isinstance(column := projection.unalias(), exp.Column)
        and not column.meta.get("written")
        and projection.alias_or_name not in needed
    ]

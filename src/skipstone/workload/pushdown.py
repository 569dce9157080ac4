"""What each reference to a table is asked for: the columns that are read, and what holds for every row that is used.

A condition holds for a reference if the statement gives the same answer when the rows that do not satisfy it are taken
out of that reference beforehand. Everything here weakens: a condition that cannot be shown to hold is left out, and the
request reads more than it had to.

The walk goes from the outside in. A query is entered with the conditions that everything around it puts on its output
(`demands`, whose columns are output names) and with the output names that anybody reads (`needed`). Its own WHERE is
added, joins pass on what their kind allows, and what arrives at a derived table is that table's demands in turn.

    SELECT ... WHERE p            p holds below, unless p asks another query or a parameter
    JOIN ... ON p                 p holds on both sides
    LEFT JOIN ... ON p            p holds on the right only; a demand on the right passes only if it fails on NULLs
                                  (then no empty right side survives, and the join is an inner one)
    a.x = b.x and a.x = 5         b.x = 5 holds too, where both have one type
    (a.x = 1 and b.y = 2) or ...  each side gets the disjunction of its own parts, if every branch has one
    GROUP BY k                    a demand passes if it is made of grouping keys only
    windows                       a demand passes if it is made of every window's partition keys only
    LIMIT, DISTINCT ON, samples   nothing passes
    functions that count rows     nothing passes, and no condition that stands beside one
    UNION, INTERSECT, EXCEPT      a demand passes into both branches where the columns have one type
    WITH c                        the disjunction over all uses of c
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from skipstone.errors import ColumnNotFound
from skipstone.workload.conditions import (
    any_of,
    columns_in,
    compared_with_constants,
    conjuncts,
    equated,
    fails_on_nulls,
    shortened,
    substitute,
    with_column,
    within,
    without_table,
)
from skipstone.workload.resolving import KnownTable, KnownTables, cte_of, is_unknown, mention_of, table_of
from skipstone.workload.selects import (
    branches_of,
    by_position,
    direct_table,
    group_keys,
    is_aggregated,
    is_comma,
    is_output_name,
    items_of_from,
    join_side,
    leaf_barrier,
    limits_rows,
    literal_type,
    made_of,
    may_be_a_word,
    may_read_by_name,
    names_something,
    outputs_of,
    projection_barrier,
    renames_columns,
    row_by_row,
    select_barrier,
    unread_star_columns,
    unusable,
    windows_of,
)

__all__ = ["Reference", "references"]

_DIALECTS_THAT_FILL_OUTER_JOINS = frozenset({"clickhouse"})
"""Dialects whose outer joins give the missing side default values instead of NULLs."""


@dataclass(slots=True, eq=False)
class Reference:
    """One place where a statement reads a known table; filled while the statement is walked.

    `conditions` are conjuncts over columns of the table alone, still as sqlglot trees with folded names.
    """

    table: KnownTable
    alias: str
    columns: set[str] = field(default_factory=set)
    conditions: list[exp.Expr] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    mention: int | None = None

    def read(self, folded: str) -> None:
        """Count a column as read, under all the names that fold to it."""
        self.columns.update(self.table.columns.get(folded, ()))

    def read_all(self) -> None:
        """Count every column as read."""
        self.columns.update(self.table.schema.names)


def references(query: exp.Expr, known: KnownTables, dialect: str = "spark") -> list[Reference]:
    """Find all reads of known tables in a resolved query; in the order of the text where its mentions are numbered.

    >>> import sqlglot
    >>> from skipstone.workload.resolving import resolve
    >>> known = KnownTables.of({"t": pa.schema({"a": pa.int64(), "b": pa.int64()})})
    >>> tree = resolve(sqlglot.parse_one("SELECT a FROM t WHERE b > 3"), known, "spark")
    >>> [(r.table.name, sorted(r.columns), [c.sql() for c in r.conditions]) for r in references(tree, known)]
    [('t', ['a', 'b'], ['"t"."b" > 3'])]
    """
    uses: dict[int | None, list[exp.Table]] = {}
    for table in query.find_all(exp.Table):
        uses.setdefault(cte_of(table), []).append(table)
    walk = _Walk(known, dialect, uses, items=tuple(items_of_from(query)))
    walk.query(query, _Scope({}, None), demands=[], needed=None, lost=())
    walk.read_what_was_missed(query)
    walk.check_names()
    place = {id(table): position for position, table in enumerate(query.find_all(exp.Table))}
    found = sorted(walk.found.items(), key=lambda item: (item[1].mention or 0, place.get(item[0], len(place))))
    return [reference for _, reference in found]


@dataclass(slots=True, eq=False)
class _Cte:
    """A common table expression with what its uses ask of it, one entry of demands for each use."""

    node: exp.CTE
    uses: list[list[exp.Expr]] = field(default_factory=list)
    needed: set[str] | None = field(default_factory=set)
    lost: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Source:
    """Something in a FROM clause: a known table, a query of its own, a use of a CTE, or something we cannot read."""

    alias: str
    node: exp.Expr
    reference: Reference | None = None
    query: exp.Expr | None = None
    cte: _Cte | None = None
    barrier: str = ""
    """Why conditions on it may not be used, if they may not."""
    needed: set[str] = field(default_factory=set)
    needs_all: bool = False
    demands: list[exp.Expr] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def read(self, name: str) -> None:
        self.needed.add(name)
        if self.reference is not None:
            self.reference.read(name)

    def read_all(self) -> None:
        self.needs_all = True
        if self.reference is not None:
            self.reference.read_all()

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset((self.alias,))


@dataclass(slots=True, eq=False)
class _Join:
    """Two sides of a FROM clause; `side` is "", LEFT, RIGHT, FULL, SEMI, ANTI, or "?" for a kind we do not know."""

    left: _Source | _Join
    right: _Source | _Join
    side: str
    on: tuple[exp.Expr, ...]

    @property
    def aliases(self) -> frozenset[str]:
        return self.left.aliases | self.right.aliases


@dataclass(frozen=True, slots=True)
class _Scope:
    """The sources whose names are visible, innermost first; the CTEs of this WITH and the joins of this FROM clause."""

    sources: dict[str, _Source]
    outer: _Scope | None
    ctes: list[_Cte] = field(default_factory=list)
    joins: list[exp.Join] = field(default_factory=list)

    def source(self, alias: str) -> _Source | None:
        if alias in self.sources:
            return self.sources[alias]
        return self.outer.source(alias) if self.outer else None

    def chain(self) -> Iterator[_Scope]:
        yield self
        if self.outer:
            yield from self.outer.chain()


@dataclass(slots=True)
class _Walk:
    """One walk over one statement."""

    known: KnownTables
    dialect: str
    uses: dict[int | None, list[exp.Table]]
    """The table nodes that name a CTE, by its number."""
    items: tuple[exp.Expr, ...]
    """The tables in the FROM clauses of the statement, and what is none to the parser."""
    ctes: dict[int, _Cte] = field(default_factory=dict)
    walked: set[int] = field(default_factory=set)
    """The table nodes that the walk came by."""
    found: dict[int, Reference] = field(default_factory=dict)
    has_unknown_tables: bool = False
    loose_names: set[str] = field(default_factory=set)
    """Unqualified names that no table was found for; every table in sight that has such a column reads it."""
    strangers: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Names that no source in sight has, with the names that there are."""

    # Queries -----------------------------------------------------------------------------------------------------

    def query(
        self,
        node: exp.Expr,
        outer: _Scope,
        demands: list[exp.Expr],
        needed: set[str] | None,
        lost: tuple[str, ...],
    ) -> None:
        """Walk a query of any kind; `needed` of None means that every output column is read."""
        scope = self._with_ctes(node, outer)
        if isinstance(node, exp.Subquery):
            barrier = "" if not limits_rows(node) else "a filter above LIMIT stays above it"
            self.query(node.this, scope, [] if barrier else demands, needed, _more(lost, barrier if demands else ""))
            self._expressions((node.args.get("order"), node.args.get("limit")), scope)
        elif isinstance(node, exp.SetOperation):
            self._set_operation(node, scope, demands, lost)
        elif isinstance(node, exp.Select):
            self._select(node, scope, demands, needed, lost)
        else:
            self._expressions(node.iter_expressions(), scope)
        self._finish_ctes(scope)

    def _with_ctes(self, node: exp.Expr, outer: _Scope) -> _Scope:
        with_ = node.args.get("with_")
        ctes = [_Cte(cte) for cte in with_.expressions] if isinstance(with_, exp.With) else []
        for cte in ctes:
            number = cte_of(cte.node)
            if number is not None:
                self.ctes[number] = cte
        return _Scope({}, outer, ctes)

    def _finish_ctes(self, scope: _Scope) -> None:
        """Walk the bodies of a WITH clause, last one first, when all their uses are known."""
        for cte in reversed(scope.ctes):
            inner = _Scope({}, scope.outer)
            # A use that was not walked is the CTE's own recursion, or stands where we do not look.
            unseen = any(may_read_by_name(item, cte.node.alias) for item in self.items)
            if unseen or any(id(table) not in self.walked for table in self.uses.get(cte_of(cte.node), ())):
                reason = f"{cte.node.alias} is read by itself or in a way that is not looked into"
                self.query(cte.node.this, inner, [], None, _more(tuple(cte.lost), reason))
                continue
            demands = any_of(cte.uses)
            lost = tuple(cte.lost)
            if not demands and any(cte.uses):
                lost = _more(lost, f"the uses of {cte.node.alias} have no filter in common")
            # Nobody may read it at all; its names must still be there for the statement to be understood.
            self.query(cte.node.this, inner, demands if cte.uses else [exp.false()], cte.needed, lost)

    def _set_operation(
        self, node: exp.SetOperation, scope: _Scope, demands: list[exp.Expr], lost: tuple[str, ...]
    ) -> None:
        names = list(node.left.named_selects) if isinstance(node.left, exp.Query) else []
        blocked = bool(limits_rows(node) or node.args.get("by_name") or node.args.get("on") or node.args.get("side"))
        for branch in (node.left, node.right):
            passed = []
            if not blocked and isinstance(branch, exp.Query):
                outputs = by_position(names, branch)
                for demand in demands:
                    same = all(self._one_type(node, names, column.name) for column in columns_in(demand))
                    renamed = substitute(demand, outputs) if same else None
                    if renamed is not None:
                        passed.append(renamed)
            reason = "a filter above a set operation is used only where types agree and nothing limits its rows"
            self.query(branch, scope, passed, None, _more(lost, reason if len(passed) < len(demands) else ""))
        self._expressions((node.args.get("order"), node.args.get("limit")), scope)

    def _one_type(self, node: exp.Expr, names: list[str], name: str) -> bool:
        """Whether all branches of a set operation give one output column the same known type."""
        if names.count(name) != 1:
            return False
        position = names.index(name)
        types = [self._output_type(branch, position) for branch in branches_of(node)]
        return types[0] is not None and all(one == types[0] for one in types)

    # SELECT ------------------------------------------------------------------------------------------------------

    def _select(
        self,
        node: exp.Select,
        outer: _Scope,
        demands: list[exp.Expr],
        needed: set[str] | None,
        lost: tuple[str, ...],
    ) -> None:
        scope = _Scope({}, outer)
        tree = self._from(node, scope)
        barrier = select_barrier(node)
        passed, why_not = self._through_projection(node, demands)
        if barrier:
            passed, why_not = [], barrier
        everything = [] if barrier else [*self._own_conditions(node, scope), *passed]
        for source in scope.sources.values():
            source.lost.extend(_more(lost, why_not if len(passed) < len(demands) or barrier else ""))
        if tree is not None:
            self._push(tree, everything)
        pruned = unread_star_columns(node, needed)
        for part in node.iter_expressions():
            if isinstance(part, (exp.From, exp.Join, exp.With)) or part.arg_key in ("from_", "joins", "laterals"):
                continue
            if part not in pruned or part.arg_key != "expressions":
                self._expression(part, scope)
        for source in scope.sources.values():
            for name in node.meta.get("star") or ():
                source.read(name)
        for join in scope.joins:
            self._expressions((join.args.get("on"), join.args.get("match_condition")), scope)
        for source in reversed(list(scope.sources.values())):
            self._source(source, scope, outer)

    def _own_conditions(self, node: exp.Select, scope: _Scope) -> Iterator[exp.Expr]:
        """The conditions of a SELECT's WHERE, and of its HAVING as far as they speak of grouping keys alone."""
        for clause in ("prewhere", "where"):
            part = node.args.get(clause)
            yield from self._usable(conjuncts(part.this if part else None), scope)
        having, keys = node.args.get("having"), group_keys(node)
        if having and keys:
            for condition in conjuncts(having.this):
                if not unusable(condition) and row_by_row(condition) and made_of(condition, keys):
                    yield condition

    def _usable(self, conditions: Iterable[exp.Expr], scope: _Scope) -> Iterator[exp.Expr]:
        """Leave out the conditions whose truth for a row depends on more than the row."""
        for condition in conditions:
            reason = unusable(condition)
            if not reason:
                yield condition
                continue
            aliases = {column.table for column in columns_in(condition)}
            for alias, source in scope.sources.items():
                if alias in aliases:
                    source.lost.append(f"{reason}: {shortened(condition)}")

    def _through_projection(self, node: exp.Select, demands: list[exp.Expr]) -> tuple[list[exp.Expr], str]:
        """Translate demands on the output of a SELECT into conditions on its sources; say why some could not be."""
        if not demands:
            return [], ""
        reason = projection_barrier(node)
        if reason:
            return [], reason
        outputs = outputs_of(node)
        required: list[list[exp.Expr]] = []
        if is_aggregated(node):
            required.append(group_keys(node))
        required.extend(list(window.args.get("partition_by") or ()) for window in windows_of(node))
        allowed = {
            name: expression
            for name, expression in outputs.items()
            if row_by_row(expression) and all(made_of(expression, keys) for keys in required)
        }
        passed = [translated for demand in demands if (translated := substitute(demand, allowed)) is not None]
        return passed, "a filter above grouping or windows stays above them unless it is on their keys"

    # FROM --------------------------------------------------------------------------------------------------------

    def _from(self, node: exp.Select, scope: _Scope) -> _Source | _Join | None:
        """Make the tree of joins of a FROM clause, and enter its sources into the scope."""
        from_ = node.args.get("from_")
        if from_ is None:
            return None
        tree = self._relation(from_.this, scope)
        tree = self._joined(tree, node, scope)
        for lateral in node.args.get("laterals") or ():
            tree = _Join(tree, self._leaf(lateral, scope), "", ())
        return tree

    def _relation(self, node: exp.Expr, scope: _Scope) -> _Source | _Join:
        """One item of a FROM clause with its own joins: `a`, `(a JOIN b ON ...)`, `(SELECT ...) d`."""
        around_joins = isinstance(node, (exp.Subquery, exp.Paren)) and not isinstance(node.this, exp.Query)
        doubled = isinstance(node, exp.Subquery) and not node.alias and isinstance(node.this, exp.Subquery)
        tree = self._relation(node.this, scope) if around_joins or doubled else self._leaf(node, scope)
        tree = self._joined(tree, node, scope)
        for lateral in node.args.get("laterals") or ():
            tree = _Join(tree, self._leaf(lateral, scope), "", ())
        return tree

    def _joined(self, tree: _Source | _Join, node: exp.Expr, scope: _Scope) -> _Source | _Join:
        joins = node.args.get("joins") or ()
        sides = [join_side(join) for join in joins]
        # A comma binds less tightly than JOIN, which sqlglot's flat list does not show. It makes no difference to inner
        # and left joins; where a right or full join follows, nothing is pushed through any of them.
        tangled = any(is_comma(join) for join in joins) and not {"RIGHT", "FULL"}.isdisjoint(sides)
        for join, side in zip(joins, sides, strict=True):
            right = self._relation(join.this, scope)
            on = tuple(condition for condition in conjuncts(join.args.get("on")) if not unusable(condition))
            scope.joins.append(join)
            if join.method == "NATURAL":  # what is common to both sides is not known, so it may be anything
                for source in (*_leaves(tree), *_leaves(right)):
                    source.read_all()
            tree = _Join(tree, right, "?" if tangled else side, on)
        return tree

    def _leaf(self, node: exp.Expr, scope: _Scope) -> _Source:
        alias = node.alias_or_name if not isinstance(node, exp.Final) else node.this.alias_or_name
        source = _Source(alias, node, barrier=leaf_barrier(node))
        inner = node.this if isinstance(node, exp.Final) else node
        if isinstance(inner, exp.Table):
            self._table(inner, source)
        elif isinstance(inner, exp.Subquery):
            source.query = inner
        elif isinstance(inner, exp.Lateral) and isinstance(inner.this, exp.Query):
            source.query = inner.this
        pivots = node.args.get("pivots")
        if pivots or renames_columns(node):
            source.read_all()
        if pivots:
            alias = pivots[-1].alias or alias
        if alias in scope.sources:
            # Two items under one name: which of them a column means cannot be told, so both are read in full.
            for one in (source, scope.sources[alias]):
                one.read_all()
                one.barrier = f"two items of the FROM clause are called {alias}"
            alias = f"{alias} {len(scope.sources)}"
        source.alias = alias
        scope.sources[alias] = source
        return source

    def _table(self, table: exp.Table, source: _Source) -> None:
        self.walked.add(id(table))
        number = table_of(table)
        if number is not None:
            source.reference = self.found[id(table)] = Reference(
                self.known.tables[number], source.alias, mention=mention_of(table)
            )
        elif is_unknown(table):
            self.has_unknown_tables = True
        else:
            number = cte_of(table)
            source.cte = self.ctes.get(number) if number is not None else None
            self.has_unknown_tables |= source.cte is None

    # Pushing -----------------------------------------------------------------------------------------------------

    def _push(self, tree: _Source | _Join, conditions: list[exp.Expr]) -> None:
        """Give every source the conditions that hold for all rows used of it.

        Each of `conditions` is TRUE for every row that leaves `tree` and is used.
        """
        if isinstance(tree, _Source):
            tree.demands.extend(within(conditions, tree.aliases))
            return
        conditions = within(conditions, tree.aliases)
        left, right = tree.left.aliases, tree.right.aliases
        on = list(tree.on)
        match self._effective_side(tree, conditions):
            case "" | "SEMI":
                everything = self._closed([*conditions, *on], tree)
                self._push(tree.left, within(everything, left))
                self._push(tree.right, within(everything, right))
            case "LEFT" | "ANTI":
                kept = within(conditions, left)
                self._push(tree.left, kept)
                # A right row that fails what the left side's conditions mean for it meets only left rows that fail.
                self._push(tree.right, within(self._closed([*kept, *on], tree), right))
            case "RIGHT":
                kept = within(conditions, right)
                self._push(tree.right, kept)
                self._push(tree.left, within(self._closed([*kept, *on], tree), left))
            case _:
                self._push(tree.left, [])
                self._push(tree.right, [])

    def _effective_side(self, join: _Join, conditions: list[exp.Expr]) -> str:
        """The kind of a join once rows that the conditions reject are gone: `a LEFT JOIN b WHERE b.x = 1` is inner."""
        if self.dialect in _DIALECTS_THAT_FILL_OUTER_JOINS:
            return join.side
        keeps_left = keeps_right = True
        if join.side in ("LEFT", "FULL"):
            keeps_left = not any(fails_on_nulls(condition, join.right.aliases) for condition in conditions)
        if join.side in ("RIGHT", "FULL"):
            keeps_right = not any(fails_on_nulls(condition, join.left.aliases) for condition in conditions)
        match join.side:
            case "LEFT":
                return "LEFT" if keeps_left else ""
            case "RIGHT":
                return "RIGHT" if keeps_right else ""
            case "FULL":
                return {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT"}.get(
                    (keeps_left, keeps_right), ""
                )
        return join.side

    def _closed(self, conditions: list[exp.Expr], tree: _Join) -> list[exp.Expr]:
        """Add what equalities carry over: with a.x = b.x and a.x > 5 also b.x > 5, where both have one type."""
        partners: dict[tuple[str, str], list[exp.Column]] = {}
        for condition in conditions:
            pair = equated(condition)
            if pair and self._same_type(*pair, tree):
                for one, other in (pair, pair[::-1]):
                    partners.setdefault((one.table, one.name), []).append(other)
        if not partners:
            return conditions
        result = list(conditions)
        for condition in conditions:
            column = compared_with_constants(condition)
            if column is None:
                continue
            reached = {(column.table, column.name)}
            waiting = [column]
            while waiting:
                current = waiting.pop()
                for other in partners.get((current.table, current.name), ()):
                    if (other.table, other.name) not in reached:
                        reached.add((other.table, other.name))
                        waiting.append(other)
                        result.append(with_column(condition, other))
        return result

    def _same_type(self, one: exp.Column, other: exp.Column, tree: _Join) -> bool:
        sources = {source.alias: source for source in _leaves(tree)}
        types = []
        for column in (one, other):
            source = sources.get(column.table)
            types.append(self._source_type(source, column.name) if source else None)
        return types[0] is not None and types[0] == types[1]

    # Types of output columns, as far as they are plain columns of known tables --------------------------------------

    def _source_type(self, source: _Source, name: str) -> pa.DataType | None:
        if renames_columns(source.node):
            return None
        if source.reference is not None:
            return None if source.barrier else source.reference.table.type_of(name)
        if source.cte is not None:
            return self._named_type(source.cte.node.this, name)
        return self._named_type(source.query, name) if source.query is not None else None

    def _named_type(self, query: exp.Expr | None, name: str) -> pa.DataType | None:
        if not isinstance(query, exp.Query):
            return None
        names = query.named_selects
        return self._output_type(query, names.index(name)) if names.count(name) == 1 else None

    def _output_type(self, query: exp.Expr, position: int) -> pa.DataType | None:
        types = set()
        for branch in branches_of(query):
            if not isinstance(branch, exp.Select) or position >= len(branch.selects):
                return None
            column = branch.selects[position].unalias()
            table = direct_table(branch, column.table) if isinstance(column, exp.Column) else None
            number = table_of(table) if table is not None else None
            types.add(literal_type(column) if number is None else self.known.tables[number].type_of(column.name))
        return types.pop() if len(types) == 1 else None

    # Columns -----------------------------------------------------------------------------------------------------

    def _expressions(self, parts: Iterable[exp.Expr | None], scope: _Scope) -> None:
        for part in parts:
            if part is not None:
                self._expression(part, scope)

    def _expression(self, node: exp.Expr, scope: _Scope) -> None:
        """Count the columns that an expression reads, also where they belong to a query around it."""
        if isinstance(node, exp.Query):
            self.query(node, scope, [], None, ())
        elif isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            self.query(node.this, scope, [], set(), ())  # EXISTS asks whether there is a row, not what is in it
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            self._column(node, scope)
        elif isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            self._star(node, scope)
        elif isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            pass  # COUNT(*) counts rows and reads no column
        elif isinstance(node, (exp.TableColumn, exp.Columns)) or names_something(node):
            self._whole_row(node.name, scope)
            self._expressions(node.iter_expressions(), scope)
        else:
            self._expressions(node.iter_expressions(), scope)

    def _column(self, column: exp.Column, scope: _Scope) -> None:
        name = column.name
        source = scope.source(column.table) if column.table else None
        if source is not None:
            source.read(name)
            has_own_names = source.node.args.get("pivots") or renames_columns(source.node)
            known = source.reference.table.columns if source.reference and not has_own_names else None
            if known is None or name in known:
                return
            if column.table in known:
                source.read(column.table)  # field c of a column t, in a table that is called t as well
            else:
                self.strangers.append((name, tuple(source.reference.table.schema.names if source.reference else ())))
            return
        if not column.table and scope.source(name) is not None:
            self._whole_row(name, scope)
            return
        if column.find_ancestor(exp.Ordered, exp.Query) and is_output_name(column):
            return  # ORDER BY an output, whose columns are counted where it is made
        # `t.c` may also be field c of a column t, and a name without a table may be anybody's.
        names = [part.name for part in column.parts]
        self.loose_names.update(names)
        in_sight = [source for level in scope.chain() for source in level.sources.values()]
        for source in in_sight:
            for one in names:
                source.read(one)
        tables = [source.reference.table for source in in_sight if source.reference is not None]
        owned = any(one in table.columns for table in tables for one in names)
        if not owned and len(tables) == len(in_sight) and not may_be_a_word(column):
            available = sorted({one for table in tables for one in table.schema.names})
            self.strangers.append((names[0], tuple(available)))

    def _star(self, node: exp.Expr, scope: _Scope) -> None:
        alias = node.args["table"].name if node.args.get("table") else ""
        if alias and scope.source(alias) is not None:
            self._whole_row(alias, scope)
        else:
            for source in scope.sources.values():
                source.read_all()

    def _whole_row(self, alias: str, scope: _Scope) -> None:
        source = scope.source(alias)
        for one in [source] if source is not None else list(scope.sources.values()):
            one.read_all()

    # Sources, once their users are known ---------------------------------------------------------------------------

    def _source(self, source: _Source, scope: _Scope, outer: _Scope) -> None:
        demands = [] if source.barrier else source.demands
        lost = _more(tuple(source.lost), source.barrier if source.demands else "")
        if source.reference is not None:
            source.reference.conditions.extend(demands)
            source.reference.unknown.extend(lost)
            self._expressions(_arguments(source.node), outer)
        elif source.cte is not None:
            self._use(source.cte, source, [without_table(demand) for demand in demands], lost)
        elif source.query is not None:
            lateral = isinstance(source.node, exp.Lateral)
            needed = None if source.needs_all else set(source.needed)
            inner = [without_table(demand) for demand in demands]
            self.query(source.query, scope if lateral else outer, inner, needed, lost)
            self._expressions(_arguments(source.node), scope)
        else:
            self._expressions(source.node.iter_expressions(), scope)

    def _use(self, cte: _Cte, source: _Source, demands: list[exp.Expr], lost: tuple[str, ...]) -> None:
        cte.uses.append(demands)
        cte.lost.extend(reason for reason in lost if reason not in cte.lost)
        if source.needs_all:
            cte.needed = None
        elif cte.needed is not None:
            cte.needed |= source.needed

    def read_what_was_missed(self, query: exp.Expr) -> None:
        """Read in full every known table that the walk did not come by: an unknown construct costs only speed."""
        for table in query.find_all(exp.Table):
            number = table_of(table)
            if number is not None and id(table) not in self.found:
                reference = Reference(self.known.tables[number], table.alias_or_name, mention=mention_of(table))
                reference.read_all()
                reference.unknown.append("the statement reads this table in a way that is not looked into")
                self.found[id(table)] = reference
        if self.has_unknown_tables:
            # A bare name given to an unknown table could be a known table's after all, in a query around it.
            names = self.loose_names | {column.name for column in query.find_all(exp.Column) if not column.table}
            for reference in self.found.values():
                for name in names:
                    reference.read(name)

    def check_names(self) -> None:
        """Raise for a name that nothing in the statement can own."""
        if self.strangers and not self.has_unknown_tables:
            name, available = self.strangers[0]
            raise ColumnNotFound.among(name, available, where="the tables that the statement reads")


def _leaves(tree: _Source | _Join) -> Iterator[_Source]:
    if isinstance(tree, _Join):
        yield from _leaves(tree.left)
        yield from _leaves(tree.right)
    else:
        yield tree


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """What an item of FROM carries beside the thing itself: samples, versions, the queries inside pivots.

    The columns that a pivot names are the item's own, which is read in full.
    """
    for pivot in node.args.get("pivots") or ():
        yield from pivot.find_all(exp.Query)
    for part in ("sample", "version", "when"):
        value: Any = node.args.get(part)
        if isinstance(value, exp.Expr):
            yield value


def _more(reasons: tuple[str, ...], reason: str) -> tuple[str, ...]:
    return (*reasons, reason) if reason and reason not in reasons else reasons

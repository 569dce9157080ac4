"""Names: which table and which column each name in a statement means.

sqlglot's `qualify` does the work. It wants to know the columns of every table, and a workload is full of tables that
we are told nothing about; so each unknown table is given the columns that the statement itself names and no known table
has. A name can then be taken for an unknown table's column only where no known table could own it.

Before it runs, all identifiers are folded to lower case (Spark, and nearly every engine, compares them so) and tables
are given names that cannot be confused with a common table expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

__all__ = [
    "KnownTable",
    "KnownTables",
    "cte_of",
    "drop_hints",
    "is_unknown",
    "mention_of",
    "number_mentions",
    "resolve",
    "table_of",
]

_KNOWN = "known table "
_UNKNOWN = "unknown table"
# Names with a blank in them: no dialect folds them, and nobody writes them.

_SELF_REFERRING_DIALECTS = frozenset({"tsql", "fabric", "oracle"})
"""Dialects in which a common table expression may refer to itself without the word RECURSIVE."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table whose schema is known: its name as given, and its columns by folded name.

    `columns` has several entries under one folded name where names differ in letter case only; such a name is not
    resolved further, all of them count as read.
    """

    name: str
    schema: pa.Schema
    columns: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, name: str, schema: pa.Schema) -> KnownTable:
        """Fold the names of a schema.

        >>> KnownTable.of("t", pa.schema({"Id": pa.int64(), "day": pa.date32()})).columns
        {'id': ('Id',), 'day': ('day',)}
        """
        columns: dict[str, tuple[str, ...]] = {}
        for column in schema.names:
            folded = column.lower()
            columns[folded] = (*columns.get(folded, ()), column)
        return cls(name, schema, columns)

    def type_of(self, folded: str) -> pa.DataType | None:
        """Give the type of a column by its folded name, if exactly one column has it."""
        names = self.columns.get(folded, ())
        return self.schema.field(names[0]).type if len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The tables whose schemas are known, found by a name as qualified as the statement writes it."""

    tables: tuple[KnownTable, ...]
    _by_last_part: Mapping[str, tuple[int, ...]] = field(repr=False)

    @classmethod
    def of(cls, schemas: Mapping[str, pa.Schema]) -> KnownTables:
        """Index tables by the last part of their names."""
        tables = tuple(KnownTable.of(name, schema) for name, schema in schemas.items())
        by_last_part: dict[str, tuple[int, ...]] = {}
        for number, table in enumerate(tables):
            last = table.name.lower().split(".")[-1]
            by_last_part[last] = (*by_last_part.get(last, ()), number)
        return cls(tables, by_last_part)

    def find(self, parts: tuple[str, ...]) -> int | None:
        """Find the table that a name means: the one of that name, or one where the shorter of the two names is the end
        of the longer; none where that could be several.

        >>> tables = KnownTables.of({"shop.sales": pa.schema([])})
        >>> tables.find(("sales",)), tables.find(("prod", "shop", "sales")), tables.find(("old", "sales"))
        (0, 0, None)
        >>> tables = KnownTables.of({"a.sales": pa.schema([]), "sales": pa.schema([]), "a.b": pa.schema([])})
        >>> tables.find(("sales",)), tables.find(("a", "sales")), tables.find(("a.b",))
        (1, 0, 2)
        """
        asked = tuple(".".join(parts).split("."))  # a quoted name may have dots, too
        overlaps: dict[int, int] = {}
        for number in self._by_last_part.get(asked[-1], ()):
            own = tuple(self.tables[number].name.lower().split("."))
            if own == asked:
                return number
            overlap = min(len(own), len(asked))
            if own[-overlap:] == asked[-overlap:]:
                overlaps[number] = overlap
        best = max(overlaps.values(), default=0)
        found = [number for number, overlap in overlaps.items() if overlap == best]
        return found[0] if len(found) == 1 else None


def table_of(node: exp.Table) -> int | None:
    """Give the number of the known table that a resolved table node stands for."""
    name = node.name
    return int(name[len(_KNOWN) :]) if name.startswith(_KNOWN) and not node.args.get("db") else None


def cte_of(node: exp.Expr) -> int | None:
    """Give the number of the common table expression that a resolved node defines, or uses by its name."""
    number = node.meta.get("cte")
    return number if isinstance(number, int) else None


def is_unknown(node: exp.Table) -> bool:
    """Whether a resolved table node stands for a table without a schema."""
    return node.name == _UNKNOWN or not isinstance(node.this, exp.Identifier)


def resolve(tree: exp.Expr, known: KnownTables, dialect: str) -> exp.Expr:
    """Rewrite a parsed statement so that names are qualified and stars are expanded; the argument is used up.

    Columns that could not be given to a table stay unqualified, and stars over what is not known stay stars. Columns
    that were written in the statement carry the meta entry `written`, and a SELECT that had a star carries `star`, so
    that the columns a star became can be told from those that somebody asked for by name.
    """
    fold_names(tree)
    _drop_settings(tree)
    _write_scalars_out(tree)
    _mark_written(tree)
    _rename_tables(tree, known, dialect)
    schema = MappingSchema(_schemas_for(tree, known), dialect=dialect, normalize=False)
    resolved = qualify(
        tree,
        schema=schema,
        dialect=dialect,
        validate_qualify_columns=False,
        quote_identifiers=False,
        allow_partial_qualification=True,
    )
    _undo_coalesce_of_using(resolved)
    return resolved


def drop_hints(tree: exp.Expr) -> None:
    """Take hints out of a parsed statement: the tables that `/*+ BROADCAST(t) */` names are not read there."""
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()


def number_mentions(tree: exp.Expr) -> list[exp.Table]:
    """Number the tables that a parsed statement names by their places in its text, and give them in that order.

    A tree is not walked in the order of the text: what is nested deeper comes later, wherever it stands.
    """
    named = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    named.sort(key=lambda table: int(table.parts[0].meta.get("start", -1)))
    for number, table in enumerate(named):
        table.meta["mention"] = number
    return named


def mention_of(node: exp.Table) -> int | None:
    """Give the number that `number_mentions` gave to a table."""
    number = node.meta.get("mention")
    return number if isinstance(number, int) else None


def fold_names(tree: exp.Expr) -> None:
    for identifier in tree.find_all(exp.Identifier):
        # Quoted, so that sqlglot leaves the name as it is now, whatever the dialect does to bare names.
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", True)


def _drop_settings(tree: exp.Expr) -> None:
    """Leave out `SETTINGS max_threads = 4`, whose names are no columns."""
    for select in tree.find_all(exp.Select):
        select.set("settings", None)


def _write_scalars_out(tree: exp.Expr) -> None:
    """Put what a name stands for in place of the name: WITH 10 AS least SELECT .. WHERE a > least."""
    for with_ in list(tree.find_all(exp.With)):
        scalars = {cte.alias: cte for cte in with_.expressions if cte.args.get("scalar")}
        query = with_.parent
        if not scalars or query is None:
            continue
        kept = [cte for cte in with_.expressions if cte.alias not in scalars]
        for name, cte in reversed(scalars.items()):  # a later one may use an earlier one
            cte.pop()
            for column in list(query.find_all(exp.Column)):
                if column.name == name and not column.table:
                    column.replace(exp.Paren(this=cte.this.copy()))
        query.set("with_", exp.With(expressions=kept, recursive=with_.args.get("recursive")) if kept else None)


def _mark_written(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.Column, exp.Coalesce):
        node.meta["written"] = True
    for select in tree.find_all(exp.Select):
        stars = [projection for projection in select.expressions if projection.is_star]
        if stars:
            # What `* EXCEPT (c)` leaves out must be there to be left out.
            excepted = (
                name for star in stars for part in star.find_all(exp.Star) for name in part.args.get("except_") or ()
            )
            select.meta["star"] = tuple(sorted(name.name for name in excepted))


def _rename_tables(tree: exp.Expr, known: KnownTables, dialect: str) -> None:
    for order, definition in enumerate(tree.find_all(exp.CTE)):
        definition.meta["cte"] = order
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    qualified: dict[tuple[str, ...], exp.Table] = {}
    for table in tables:
        parts = tuple(part.name for part in table.parts)
        cte = cte_meant(table, dialect) if len(parts) == 1 else None
        if cte is not None:
            table.meta["cte"] = cte.meta["cte"]
            continue
        if len(parts) > 1 and not table.alias:
            qualified[parts] = table
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(parts[-1], quoted=True)))
        number = known.find(parts)
        new_name = _UNKNOWN if number is None else f"{_KNOWN}{number}"
        table.set("this", exp.to_identifier(new_name, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
    _shorten_column_qualifiers(tree, qualified)


def _shorten_column_qualifiers(tree: exp.Expr, qualified: Mapping[tuple[str, ...], exp.Table]) -> None:
    """Turn `db.t.c` into `t.c` where `db.t` is a table of the statement without an alias."""
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and not isinstance(column.this, exp.Star):
            written = tuple(part.name for part in column.parts[:-1])
            if any(written == parts[-len(written) :] for parts in qualified):
                column.set("db", None)
                column.set("catalog", None)


def cte_meant(table: exp.Table, dialect: str) -> exp.Expr | None:
    """The common table expression that a bare name means where it stands, if one of this name is visible there."""
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        visible: Iterable[exp.Expr] = ()
        if isinstance(node, exp.With):
            visible = _visible_within(node, below, dialect)
        else:
            with_ = node.args.get("with_")
            if isinstance(with_, exp.With) and with_ is not below:
                visible = with_.expressions
        for cte in visible:
            if cte.alias == table.name:
                return cte
        below, node = node, node.parent
    return None


def _visible_within(with_: exp.With, cte: exp.Expr, dialect: str) -> Iterator[exp.Expr]:
    """The common table expressions that the body of one of them can see: those before it, and itself if recursive."""
    for other in with_.expressions:
        if other is cte:
            if with_.recursive or dialect in _SELF_REFERRING_DIALECTS:
                yield other
            return
        yield other


def _schemas_for(tree: exp.Expr, known: KnownTables) -> dict[str, object]:
    used = {number for table in tree.find_all(exp.Table) if (number := table_of(table)) is not None}
    schemas: dict[str, object] = {
        f"{_KNOWN}{number}": dict.fromkeys(known.tables[number].columns or ("no column",), "unknown") for number in used
    }
    owned = {column for number in used for column in known.tables[number].columns}
    named = {column.name for column in tree.find_all(exp.Column) if not isinstance(column.this, exp.Star)} - owned
    for join in tree.find_all(exp.Join):
        named.update(identifier.name for identifier in join.args.get("using") or ())
    schemas[_UNKNOWN] = dict.fromkeys(sorted(named) or ("no column",), "unknown")
    return schemas


def _undo_coalesce_of_using(tree: exp.Expr) -> None:
    """Turn the COALESCE(a.k, b.k) that stands for a USING column into a.k where no join can leave a.k empty.

    JOIN and LEFT JOIN keep the left side's key: a matched row has the same key on both sides, an unmatched one has it
    on the left. RIGHT and FULL joins do not.
    """
    for coalesce in list(tree.find_all(exp.Coalesce)):
        if coalesce.meta.get("written"):
            continue
        select = coalesce.find_ancestor(exp.Select)
        sides = {join.side for join in select.find_all(exp.Join)} if select else {"FULL"}
        if sides <= {"", "LEFT"} and isinstance(coalesce.this, exp.Column):
            coalesce.replace(coalesce.this)

"""Column names as a query writes them, found in a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from skipstone.errors import ColumnNotFound, InvalidQuery
from skipstone.predicate.expression import Column, Expression, Field

__all__ = ["Names"]


class Names:
    """Finds columns, and fields within them, by name.

    Names match without regard to case, as Spark does by default, unless `case_sensitive` is asked for. A first part
    that is no column is taken for the name of the table.

    >>> names = Names(pa.schema([("Price", pa.int64()), ("s", pa.struct([("f", pa.string())]))]))
    >>> names.find(["price"]).name, names.find(["t", "s", "F"]).name
    ('Price', 'f')
    """

    def __init__(self, schema: pa.Schema, *, case_sensitive: bool = False) -> None:
        self.available: tuple[str, ...] = tuple(schema.names)
        self._fold = (lambda name: name) if case_sensitive else str.lower
        self._by_name: dict[str, list[Column]] = {}
        for field in schema:
            self._by_name.setdefault(self._fold(field.name), []).append(Column(field.name, field.type))

    def find(self, parts: Sequence[str], where: str = "the schema") -> Expression:
        """Find a column by one name, or a field by a path of names, with or without the table's name before it.

        `where` tells a reader of the error what was asked for, and at which place of the text.
        """
        # A path that begins with a column wins over the table's name, but only if all of the path is there.
        for first in range(len(parts)):
            found = self._path(parts[first:])
            if found is not None:
                return found
        raise self._not_found(parts, where)

    def _path(self, parts: Sequence[str]) -> Expression | None:
        columns = self._by_name.get(self._fold(parts[0]))
        if not columns:
            return None
        if len(columns) > 1:
            listed = ", ".join(f'"{column.name}"' for column in columns)
            raise InvalidQuery(f'"{parts[0]}" may be any of the columns {listed}; their names differ only in case')
        found: Expression | None = columns[0]
        for name in parts[1:]:
            found = self.field(found, name) if found is not None else None
        return found

    def field(self, base: Expression, name: str) -> Field | None:
        """Find a field of a struct; None where the base is no struct or has no such field."""
        if not pa.types.is_struct(base.type):
            return None
        matching = [field for field in base.type if self._fold(field.name) == self._fold(name)]
        if len(matching) > 1:
            raise InvalidQuery(f'"{name}" may be any of {len(matching)} fields whose names differ only in case')
        return Field(base, matching[0].name, matching[0].type) if matching else None

    def _not_found(self, parts: Sequence[str], where: str) -> ColumnNotFound:
        """Blame the part of a path that is not there: a field of a struct that is, or the column."""
        for last in range(len(parts) - 1, 0, -1):
            base = self._path(parts[:last])
            if base is not None and pa.types.is_struct(base.type):
                path = ".".join(parts[:last])
                return ColumnNotFound.among(
                    f"{path}.{parts[last]}", [f"{path}.{field.name}" for field in base.type], where=where
                )
        name = ".".join(parts) if self._fold(parts[0]) in self._by_name else parts[-1]
        return ColumnNotFound.among(name, self.available, where=where)

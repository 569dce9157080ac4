"""The values of a wide table: its columns with their sizes, the queries that read it, and the order it is stored in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skipstone.errors import ColumnNotFound, InvalidInput

COPY_MARK = "__copy"
"""Names of duplicates are the source's name, this mark and a number."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One physical column: `source` names the column of the table that a duplicate repeats."""

    name: str
    source: str | None = None

    @property
    def logical(self) -> str:
        """The column of the table whose values it holds.

        >>> StoredColumn("price__copy1", source="price").logical, StoredColumn("price").logical
        ('price', 'price')
        """
        return self.name if self.source is None else self.source


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The physical columns of a row group in stored order, duplicates included."""

    stored: tuple[StoredColumn, ...]

    def __post_init__(self) -> None:
        originals = {column.name for column in self.stored if column.source is None}
        seen: set[str] = set()
        for column in self.stored:
            if column.name in seen:
                raise InvalidInput(f'the layout stores two columns named "{column.name}"')
            seen.add(column.name)
            if column.source is not None and column.source not in originals:
                raise ColumnNotFound.among(column.source, sorted(originals), where="the layout that repeats it")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table, in stored order, each once."""
        return tuple(column.name for column in self.stored if column.source is None)

    @property
    def duplicates(self) -> tuple[StoredColumn, ...]:
        """The physical columns that the schema never shows."""
        return tuple(column for column in self.stored if column.source is not None)


@dataclass(frozen=True, slots=True)
class SizedColumn:
    """A physical column, its type, and the mean bytes of its chunk in one row group."""

    name: str
    type: str
    chunk_bytes: float
    source: str | None = None

    def __post_init__(self) -> None:
        if not (self.chunk_bytes > 0 and math.isfinite(self.chunk_bytes)):
            raise InvalidInput(
                f'column "{self.name}" has a size of {self.chunk_bytes:g} bytes; a size is a number above 0'
            )


@dataclass(frozen=True, slots=True)
class ColumnSizes:
    """The physical columns of a row group with their sizes, in stored order.

    >>> sizes = ColumnSizes((SizedColumn("a", "int", 100.0), SizedColumn("b", "string", 900.0)))
    >>> sizes.total_bytes, sizes.layout.columns
    (1000.0, ('a', 'b'))
    """

    columns: tuple[SizedColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput("a table without columns has no order")
        self.layout  # noqa: B018  # checks names and sources

    @property
    def layout(self) -> ColumnLayout:
        """The order alone."""
        return ColumnLayout(tuple(StoredColumn(column.name, column.source) for column in self.columns))

    @property
    def originals(self) -> tuple[SizedColumn, ...]:
        """The columns of the table, each once, in stored order."""
        return tuple(column for column in self.columns if column.source is None)

    @property
    def total_bytes(self) -> float:
        """Bytes of the table's columns, duplicates not counted."""
        return math.fsum(column.chunk_bytes for column in self.originals)

    @property
    def duplicate_bytes(self) -> float:
        """Bytes of the duplicates."""
        return math.fsum(column.chunk_bytes for column in self.columns if column.source is not None)

    def arranged(self, layout: ColumnLayout) -> ColumnSizes:
        """The same columns as `layout` stores them; a duplicate is as large as its source.

        >>> sizes = ColumnSizes((SizedColumn("a", "int", 100.0), SizedColumn("b", "string", 900.0)))
        >>> order = ColumnLayout((StoredColumn("b"), StoredColumn("a"), StoredColumn("b__copy1", "b")))
        >>> [column.chunk_bytes for column in sizes.arranged(order).columns]
        [900.0, 100.0, 900.0]
        """
        known = {column.name: column for column in self.originals}
        missing = sorted(set(known) - set(layout.columns))
        if missing:
            raise ColumnNotFound.among(missing[0], layout.columns, where="the layout")
        arranged = []
        for stored in layout.stored:
            if stored.logical not in known:
                raise ColumnNotFound.among(stored.logical, list(known), where="the schema")
            model = known[stored.logical]
            arranged.append(SizedColumn(stored.name, model.type, model.chunk_bytes, stored.source))
        return ColumnSizes(tuple(arranged))


@dataclass(frozen=True, slots=True)
class ColumnQuery:
    """The columns that a query reads from one table, and how much it counts."""

    columns: tuple[str, ...]
    weight: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidInput(f"{self._called()} reads no column; a query reads at least one")
        if len(set(self.columns)) < len(self.columns):
            repeated = next(name for k, name in enumerate(self.columns) if name in self.columns[:k])
            raise InvalidInput(f'{self._called()} names column "{repeated}" twice; each column is named once')
        if not (self.weight > 0 and math.isfinite(self.weight)):
            raise InvalidInput(f"{self._called()} has weight {self.weight:g}; a weight is a number above 0")

    def _called(self) -> str:
        return f'query "{self.name}"' if self.name else "a query"


def copy_names(sources: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Name the duplicates of these columns, in this sequence, apart from every name in use.

    >>> copy_names(["a", "b", "a"], taken=["a", "b", "a__copy1"])
    ('a__copy2', 'b__copy1', 'a__copy3')
    """
    # Spark and many readers fold case, so a name counts as taken in any case.
    used = {name.casefold() for name in taken}
    names = []
    for source in sources:
        number = 1
        while f"{source}{COPY_MARK}{number}".casefold() in used:
            number += 1
        names.append(f"{source}{COPY_MARK}{number}")
        used.add(names[-1].casefold())
    return tuple(names)

"""Rows cut by a column before they become chunks: rows of different months, say, never share one.

The papers partition by month of a date and lay each partition out by itself (Sun, dissertation, 3.6: "partitioned by
month"). A chunk that holds one month is left out whole by a filter on the date, stays as it is when later months are
added, and can be laid out anew without the others.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import ColumnNotFound, InvalidInput
from skipstone.relayout.loading import Loaded, RowWriter
from skipstone.store.writer import BlockTarget

__all__ = ["Slicing", "Unit", "write_sliced"]

NULL_SLICE = "NULL"
"""The slice of the rows that have no value in the column."""

BLOCKS_WAITING = 8
"""Rows of so many blocks wait, over all slices together; then the slice with the most is written as it is."""

FILES_OPEN = 32
"""Files of so many slices are open at once; a slice that comes again after that gets a further file."""

MOST_SLICES = 20_000
"""A column with more different values than this is no column to cut by: every slice is a chunk, and a file."""


class Unit(Enum):
    """What of a column's value tells slices apart."""

    VALUE = "value"
    """The value itself."""
    DAY = "day"
    """The day of a timestamp, in UTC."""
    MONTH = "month"
    """The year and month of a date or a timestamp, in UTC."""
    YEAR = "year"
    """The year of a date or a timestamp, in UTC."""


_TEXT = re.compile(r"(?:(day|month|year)\s*\(\s*(.+?)\s*\)|(.+))", re.IGNORECASE | re.DOTALL)
_DATE_SHOWN = {Unit.DAY: "%Y-%m-%d", Unit.MONTH: "%Y-%m", Unit.YEAR: "%Y"}


@dataclass(frozen=True, slots=True)
class Slicing:
    """A column and what of its value tells slices apart; written `shop`, `day(at)`, `month(sold)` or `year(sold)`."""

    column: str
    unit: Unit = Unit.VALUE

    @classmethod
    def parse(cls, text: str, schema: pa.Schema) -> Slicing:
        """Read what a user wrote, and say what is wrong with it.

        >>> print(Slicing.parse("month(sold)", pa.schema([("sold", pa.date32())])))
        month(sold)
        """
        found = _TEXT.fullmatch(text.strip())
        if text.strip() in schema.names or found is None:
            slicing = cls(text.strip())
        else:
            slicing = cls(found[2] or found[3], Unit(found[1].lower()) if found[1] else Unit.VALUE)
        if slicing.column not in schema.names:
            raise ColumnNotFound.among(slicing.column, schema.names, where="the table")
        kind = schema.field(slicing.column).type
        if slicing.unit is not Unit.VALUE and not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            raise InvalidInput(f"{slicing} needs a date or a timestamp; {slicing.column} is {kind}")
        if slicing.unit is Unit.VALUE and not _tells_slices_apart(kind):
            raise InvalidInput(
                f"rows cannot be cut by {slicing.column}, which is {kind}. Hint: cut by whole numbers, texts, dates, "
                "or by day(c), month(c) or year(c) of a date or a timestamp"
            )
        return slicing

    def __str__(self) -> str:
        return self.column if self.unit is Unit.VALUE else f"{self.unit.value}({self.column})"

    def slices(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Give the rows of each slice, in the order in which they came.

        >>> batch = pa.record_batch({"shop": ["a", "b", "a", None]})
        >>> [(name, rows.num_rows) for name, rows in Slicing("shop").slices(batch)]
        [('a', 2), ('b', 1), ('NULL', 1)]
        """
        keys = self._values(batch.column(batch.schema.get_field_index(self.column)))
        encoded = keys.dictionary_encode(null_encoding="encode")
        number = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(number, kind="stable")
        edges = np.searchsorted(number[order], np.arange(len(encoded.dictionary) + 1))
        for slice_, value in enumerate(encoded.dictionary):
            rows = order[edges[slice_] : edges[slice_ + 1]]
            name = str(value.as_py()) if value.is_valid else NULL_SLICE
            if value.is_valid and name == NULL_SLICE:
                name = f"'{name}'"
            yield name, batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))

    def _values(self, column: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if self.unit is Unit.VALUE:
            return column
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp(column.type.unit))  # what clocks in UTC show
        return pc.strftime(column, format=_DATE_SHOWN[self.unit])


def _tells_slices_apart(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _tells_slices_apart(kind.value_type)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    )


def write_sliced(
    batches: Iterable[pa.RecordBatch], slicing: Slicing, target: BlockTarget, block_rows: int, file_rows: int
) -> Iterator[Loaded]:
    """Write a stream of rows, every file with rows of one slice only; what waits in memory is a few blocks."""
    waiting = _Waiting(target, block_rows, file_rows)
    try:
        for batch in batches:
            for name, rows in slicing.slices(batch):
                yield from waiting.add(name, rows)
            if len(waiting.seen) > MOST_SLICES:
                raise InvalidInput(
                    f"cutting by {slicing} would make more than {MOST_SLICES:,} slices, each a chunk of its own. "
                    "Hint: cut by the month or the year of a date"
                )
        yield from waiting.close()
    except BaseException:
        waiting.abort()
        raise


class _Waiting:
    """Rows of slices that do not fill a block yet, and the files of the slices written to last."""

    def __init__(self, target: BlockTarget, block_rows: int, file_rows: int) -> None:
        self.seen: set[str] = set()
        self._target = target
        self._block_rows = block_rows
        self._file_rows = file_rows
        self._rows: dict[str, list[pa.RecordBatch]] = {}
        self._counts: dict[str, int] = {}
        self._files: OrderedDict[str, RowWriter] = OrderedDict()

    def add(self, name: str, rows: pa.RecordBatch) -> Iterator[Loaded]:
        """Take rows of a slice, and give the files that are finished by that."""
        self.seen.add(name)
        self._rows.setdefault(name, []).append(rows)
        self._counts[name] = self._counts.get(name, 0) + rows.num_rows
        if self._counts[name] >= self._block_rows:
            yield from self._write(name)
        if sum(self._counts.values()) > BLOCKS_WAITING * self._block_rows:
            yield from self._write(max(self._counts, key=lambda one: (self._counts[one], one)), all_rows=True)

    def _write(self, name: str, *, all_rows: bool = False) -> Iterator[Loaded]:
        rows = pa.Table.from_batches(self._rows.pop(name))
        whole = rows.num_rows if all_rows else rows.num_rows - rows.num_rows % self._block_rows
        if name not in self._files:
            self._files[name] = RowWriter(self._target, self._block_rows, self._file_rows)
        self._files.move_to_end(name)
        for batch in rows.slice(0, whole).to_batches():
            yield from (Loaded(written, name) for written in self._files[name].write(batch))
        self._files[name].end_block()
        self._counts.pop(name)
        if whole < rows.num_rows:
            self._rows[name] = rows.slice(whole).combine_chunks().to_batches()
            self._counts[name] = rows.num_rows - whole
        while len(self._files) > FILES_OPEN:
            oldest, writer = self._files.popitem(last=False)
            yield from (Loaded(written, oldest) for written in writer.close())

    def close(self) -> Iterator[Loaded]:
        """Write what waits, and give the files that are left."""
        for name in sorted(self._rows):
            yield from self._write(name, all_rows=True)
        while self._files:
            name, writer = self._files.popitem(last=False)
            yield from (Loaded(written, name) for written in writer.close())

    def abort(self) -> None:
        """Delete the files that are open."""
        for writer in self._files.values():
            writer.abort()

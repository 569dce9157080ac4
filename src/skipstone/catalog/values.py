"""What the catalog knows: checksums, chunks, blocks and their bounds, snapshots, commits, and changes to be made.

Facts about blocks are columns, never objects: a table of 100 TB has a million blocks, and a planner looks at all of
them in one stroke. `Blocks` is what a writer hands over, whole in memory; `BlockSet` is what a snapshot gives to a
planner, with every column loaded when it is first asked for and kept from then on.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skipstone.errors import InvalidInput, SnapshotNotFound
from skipstone.layout.scheme import RESERVED_PREFIX, ROW_ID, Scheme

__all__ = [
    "BLOCK_SCHEMA",
    "CLUSTERED",
    "RESERVED_PREFIX",
    "REST",
    "ROW_ID",
    "UNKNOWN",
    "BlockSet",
    "Blocks",
    "Change",
    "Checksum",
    "ChunkFacts",
    "Commit",
    "ExpressionBounds",
    "NewChunk",
    "Note",
    "Snapshot",
    "VacuumReport",
    "new_chunk_name",
    "require_chunk_name",
]

CLUSTERED = 0
"""The part of a layout whose rows are clustered by its features and that has all its columns."""

REST = 1
"""The part of a layout with the rows that satisfy none of its features: master columns only (dissertation, 5.4.2)."""

UNKNOWN = -1
"""In integer arrays of blocks: not known, or not stored in this block."""

BLOCK_SCHEMA = pa.schema(
    [
        pa.field("layout", pa.int16(), nullable=False),
        pa.field("part", pa.int8(), nullable=False),
        pa.field("block", pa.int32(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("vector", pa.binary()),
        pa.field("first_row_id", pa.int64(), nullable=False),
        pa.field("last_row_id", pa.int64(), nullable=False),
        pa.field("column_bytes", pa.list_(pa.int64()), nullable=False),
    ]
)
"""One row per block. `block` counts from 0 within layout and part; `file` is relative to the table's root.

`vector` holds bit j of a block's vector in byte j // 8, lowest bit first, and has the same length in every block of a
scheme; it is NULL only where it is unknown, and such a block is never skipped by features. Row ids are `UNKNOWN` where
none are stored. `column_bytes` has a fixed length; which columns it speaks of is `Blocks.columns`.
"""

Note: TypeAlias = tuple[str, str | int | float | bool | None]
"""A name and a JSON scalar; tuples of notes carry predictions, metrics and other facts that the catalog only keeps."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Checksum:
    """An order-independent sum over the values of one column: equal bags of values give equal checksums.

    `values` and `mixed` are sums modulo 2^64 of two different hashes of each value. The checksums of two bags of rows
    add up to the checksum of both together.

    >>> Checksum(2, 10, 20) + Checksum(1, 2**64 - 10, 5)
    Checksum(rows=3, values=0, mixed=25)
    """

    rows: int = 0
    values: int = 0
    mixed: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        modulus = 1 << 64
        return Checksum(
            self.rows + other.rows, (self.values + other.values) % modulus, (self.mixed + other.mixed) % modulus
        )


@dataclass(frozen=True, slots=True)
class ExpressionBounds:
    """What is known of one tracked expression, in one entry per block; NULL means unknown everywhere.

    `minimum` and `maximum` are over the values that are neither NULL nor NaN, and NULL where there is none or where no
    sound bound is known: a reader tells the two apart by the counts and must not by the NULL. A bound that is not exact
    (a long string, cut) still holds all values. `nan_count` counts NaN and is 0 for types that have none.
    """

    minimum: pa.Array
    maximum: pa.Array
    null_count: pa.Array
    nan_count: pa.Array
    minimum_exact: pa.Array
    maximum_exact: pa.Array

    def __len__(self) -> int:
        return len(self.null_count)

    @property
    def type(self) -> pa.DataType:
        """The type of the expression."""
        return self.minimum.type

    @classmethod
    def unknown(cls, kind: pa.DataType, blocks: int) -> ExpressionBounds:
        """Know nothing about this many blocks.

        >>> ExpressionBounds.unknown(pa.int64(), 2).minimum.null_count
        2
        """
        values, counts, flags = (pa.nulls(blocks, one) for one in (kind, pa.int64(), pa.bool_()))
        return cls(values, values, counts, counts, flags, flags)

    @classmethod
    def concat(cls, pieces: Sequence[ExpressionBounds]) -> ExpressionBounds:
        """Put the entries of several after each other; all must be of one type."""
        return cls(
            *(pa.concat_arrays([getattr(piece, part.name) for piece in pieces]) for part in dataclasses.fields(cls))
        )

    def slice(self, offset: int, length: int) -> ExpressionBounds:
        """Keep a run of the entries."""
        return ExpressionBounds(*(getattr(self, part.name).slice(offset, length) for part in dataclasses.fields(self)))

    def take(self, indices: npt.NDArray[Any]) -> ExpressionBounds:
        """Keep these entries, in this order."""
        chosen = pa.array(indices)
        return ExpressionBounds(*(getattr(self, part.name).take(chosen) for part in dataclasses.fields(self)))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows of the block catalog as a writer hands them over: small enough for memory, and picklable.

    `rows` has `BLOCK_SCHEMA`; `columns` names the physical columns that the lists in `column_bytes` speak of;
    `bounds` holds what is known of each tracked expression, by its canonical text.
    """

    rows: pa.Table
    columns: tuple[str, ...] = ()
    bounds: tuple[tuple[str, ExpressionBounds], ...] = ()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def files(self) -> tuple[str, ...]:
        """The data files that hold the blocks, by name."""
        return tuple(sorted(self.rows["file"].unique().to_pylist()))

    @classmethod
    def concat(cls, pieces: Sequence[Blocks]) -> Blocks:
        """Put several together, in order; what one of them does not track or store is unknown there."""
        if len(pieces) == 1:
            return pieces[0]
        columns = tuple(dict.fromkeys(name for piece in pieces for name in piece.columns))
        aligned = [piece.aligned_to(columns).rows for piece in pieces]
        kinds: dict[str, pa.DataType] = {}
        for piece in pieces:
            for text, one in piece.bounds:
                if kinds.setdefault(text, one.type) != one.type:
                    raise InvalidInput(f"{text} is tracked as {kinds[text]} and as {one.type} in one chunk")
        bounds = tuple(
            (text, ExpressionBounds.concat([piece.bounds_of(text, kind) for piece in pieces]))
            for text, kind in kinds.items()
        )
        rows = pa.concat_tables(aligned).combine_chunks() if aligned else BLOCK_SCHEMA.empty_table()
        return cls(rows, columns, bounds)

    def bounds_of(self, text: str, kind: pa.DataType) -> ExpressionBounds:
        """What is known of an expression of this type here: nothing, where it is not tracked."""
        known = dict(self.bounds).get(text)
        return ExpressionBounds.unknown(kind, len(self)) if known is None else known

    def aligned_to(self, columns: tuple[str, ...]) -> Blocks:
        """The same blocks with `column_bytes` speaking of these columns; `UNKNOWN` where a block has none of one."""
        if columns == self.columns:
            return self
        here = matrix_of(self.rows["column_bytes"], len(self.columns))
        there = np.full((len(self), len(columns)), UNKNOWN, dtype=np.int64)
        for target, name in enumerate(columns):
            if name in self.columns:
                there[:, target] = here[:, self.columns.index(name)]
        position = self.rows.schema.get_field_index("column_bytes")
        return Blocks(
            self.rows.set_column(position, self.rows.schema.field(position), fixed_lists(there)), columns, self.bounds
        )

    def bytes_of(self, number: int) -> pa.Array:
        """The stored bytes of the physical column at a position of `columns`, in each block."""
        return pa.array(matrix_of(self.rows["column_bytes"], len(self.columns))[:, number])

    def sorted(self) -> Blocks:
        """The same blocks by layout, part and block."""
        order = self.rows.select(["layout", "part", "block"]).sort_by(
            [("layout", "ascending"), ("part", "ascending"), ("block", "ascending")]
        )
        if order.equals(self.rows.select(["layout", "part", "block"])):
            return self
        indices = np.lexsort(
            [self.rows[name].to_numpy() for name in ("block", "part", "layout")]  # the last key is the first to count
        )
        bounds = tuple((text, one.take(indices)) for text, one in self.bounds)
        return Blocks(self.rows.take(pa.array(indices)).combine_chunks(), self.columns, bounds)


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What is known of a chunk as a whole.

    `checksums` are over all of its rows, by column; `source` says where the rows came from; `notes` keep what others
    want to know later, such as what an advice predicted.
    """

    rows: int
    checksums: tuple[tuple[str, Checksum], ...] = ()
    source: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be committed: its name, its scheme, its blocks and what is known of it as a whole."""

    name: str
    scheme: Scheme
    blocks: Blocks
    facts: ChunkFacts


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit does, all of it or nothing.

    `replaced` chunks must be in the base snapshot and unchanged since; `added` must be new; `removed` leave the table.
    `schema` and `properties`, where given, are the table's from then on.
    """

    operation: str
    added: tuple[NewChunk, ...] = ()
    replaced: tuple[NewChunk, ...] = ()
    removed: tuple[str, ...] = ()
    schema: pa.Schema | None = None
    properties: tuple[tuple[str, str], ...] | None = None
    metrics: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a table's history."""

    version: int
    timestamp: datetime
    operation: str
    added: int = 0
    replaced: int = 0
    removed: int = 0
    metrics: tuple[Note, ...] = ()
    restorable: bool = True


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What a vacuum deleted, or would delete: paths relative to the table's root, by name, and their size.

    Versions older than `oldest_version` are gone with it.
    """

    files: tuple[str, ...]
    bytes: int
    oldest_version: int
    dry_run: bool


class BlockSource(Protocol):
    """Where the columns of a `BlockSet` come from."""

    def column(self, name: str) -> pa.Array:
        """Load a column of `BLOCK_SCHEMA`."""

    def column_bytes(self, number: int) -> pa.Array:
        """Load the stored bytes of one physical column, by its position among the block set's columns."""

    def bounds(self, text: str) -> ExpressionBounds:
        """Load what is known of a tracked expression."""


class BlockSet:
    """All blocks of a snapshot whose chunks share a scheme, tracked expressions and stored columns, chunk by chunk.

    Blocks are ordered by chunk, layout, part and block; those of chunk i are `offsets[i]` to `offsets[i + 1]`. Columns
    are loaded when first asked for and kept. A block set never changes and may be used from many threads.
    """

    def __init__(
        self,
        *,
        scheme: str,
        chunks: tuple[str, ...],
        offsets: Ints,
        columns: tuple[str, ...],
        tracked: Mapping[str, pa.DataType],
        source: BlockSource,
    ) -> None:
        self.scheme = scheme
        """The hash of the scheme of all these chunks."""
        self.chunks = chunks
        self.offsets = offsets
        self.columns = columns
        """The physical columns whose sizes are known."""
        self.tracked = tracked
        """The canonical texts of the tracked expressions, with their types."""
        self._source = source
        self._kept: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def _once(self, kind: str, name: str, load: Callable[[], Any]) -> Any:
        # Two threads may both load; they load the same, and the first to finish is kept.
        key = (kind, name)
        if key not in self._kept:
            self._kept.setdefault(key, load())
        return self._kept[key]

    def _integers(self, name: str) -> Any:
        return self._once("column", name, lambda: self._source.column(name).to_numpy(zero_copy_only=False))

    @property
    def layout(self) -> npt.NDArray[np.int16]:
        """The layout of each block: a position in the scheme's layouts."""
        return self._integers("layout")  # type: ignore[no-any-return]

    @property
    def part(self) -> npt.NDArray[np.int8]:
        """`CLUSTERED` or `REST` for each block."""
        return self._integers("part")  # type: ignore[no-any-return]

    @property
    def block(self) -> npt.NDArray[np.int32]:
        """The number of each block within its chunk, layout and part."""
        return self._integers("block")  # type: ignore[no-any-return]

    @property
    def row_group(self) -> npt.NDArray[np.int32]:
        """The row group of its file that each block is."""
        return self._integers("row_group")  # type: ignore[no-any-return]

    @property
    def rows(self) -> Ints:
        """The number of rows of each block."""
        return self._integers("rows")  # type: ignore[no-any-return]

    @property
    def first_row_id(self) -> Ints:
        """The smallest row id in each block, `UNKNOWN` where none are stored."""
        return self._integers("first_row_id")  # type: ignore[no-any-return]

    @property
    def last_row_id(self) -> Ints:
        """The greatest row id in each block, `UNKNOWN` where none are stored."""
        return self._integers("last_row_id")  # type: ignore[no-any-return]

    @property
    def chunk_of(self) -> npt.NDArray[np.int32]:
        """For each block the position of its chunk in `chunks`."""
        return self._once(  # type: ignore[no-any-return]
            "derived",
            "chunk_of",
            lambda: np.repeat(np.arange(len(self.chunks), dtype=np.int32), np.diff(self.offsets)),
        )

    @property
    def file_of(self) -> npt.NDArray[np.int32]:
        """For each block the position of its file in `files`."""
        return self._files.indices.to_numpy()  # type: ignore[no-any-return]

    @property
    def files(self) -> tuple[str, ...]:
        """The data files, relative to the table's root."""
        return self._once("derived", "files", lambda: tuple(self._files.dictionary.to_pylist()))  # type: ignore[no-any-return]

    @property
    def _files(self) -> Any:
        return self._once("column", "file", lambda: encoded(self._source.column("file")))

    @property
    def vectors(self) -> npt.NDArray[np.uint8]:
        """The block vectors, one row of bytes each; a vector that is unknown has all bits set, so it skips nothing."""
        return self._once("derived", "vectors", lambda: _vectors(self._source.column("vector")))  # type: ignore[no-any-return]

    def column_bytes(self, column: str) -> Ints:
        """The stored bytes of a physical column in each block, `UNKNOWN` where a block does not have it."""
        if column not in self.columns:
            return np.full(len(self), UNKNOWN, dtype=np.int64)
        number = self.columns.index(column)
        return self._once(  # type: ignore[no-any-return]
            "bytes", column, lambda: self._source.column_bytes(number).to_numpy(zero_copy_only=False)
        )

    def bounds(self, text: str) -> ExpressionBounds | None:
        """What is known of an expression in each block, or None where it is not tracked here."""
        if text not in self.tracked:
            return None
        return self._once("bounds", text, lambda: self._source.bounds(text))  # type: ignore[no-any-return]

    def of_chunk(self, chunk: str) -> slice:
        """The positions of a chunk's blocks."""
        position = self._chunk_positions.get(chunk)
        if position is None:
            raise InvalidInput(f'chunk "{chunk}" is not in this block set')
        return slice(int(self.offsets[position]), int(self.offsets[position + 1]))

    @property
    def _chunk_positions(self) -> dict[str, int]:
        return self._once("derived", "chunks", lambda: {name: i for i, name in enumerate(self.chunks)})  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """How a snapshot gets what it does not carry; given by the catalog that made it."""

    scheme: Callable[[str], Scheme]
    facts: Callable[[str], ChunkFacts]


@dataclass(frozen=True)
class Snapshot:
    """One version of a table: schema, properties and blocks that belong together."""

    version: int
    timestamp: datetime
    table_id: str
    schema: pa.Schema
    properties: tuple[tuple[str, str], ...]
    block_sets: tuple[BlockSet, ...]
    source: SnapshotSource = field(repr=False)

    @functools.cached_property
    def chunks(self) -> tuple[str, ...]:
        """The chunks of the table, by name."""
        return tuple(sorted(name for blocks in self.block_sets for name in blocks.chunks))

    @functools.cached_property
    def _homes(self) -> dict[str, BlockSet]:
        return {name: blocks for blocks in self.block_sets for name in blocks.chunks}

    def blocks_of(self, chunk: str) -> tuple[BlockSet, slice]:
        """The block set that holds a chunk, and the positions of the chunk's blocks in it."""
        home = self._homes.get(chunk)
        if home is None:
            raise SnapshotNotFound(f'version {self.version} has no chunk "{chunk}"; it has {len(self.chunks)} chunks')
        return home, home.of_chunk(chunk)

    def scheme(self, scheme_hash: str) -> Scheme:
        """The scheme of this hash."""
        return self.source.scheme(scheme_hash)

    def scheme_of(self, chunk: str) -> Scheme:
        """The scheme that a chunk is stored in."""
        return self.source.scheme(self.blocks_of(chunk)[0].scheme)

    def facts(self, chunk: str) -> ChunkFacts:
        """What is known of a chunk as a whole."""
        self.blocks_of(chunk)
        return self.source.facts(chunk)

    def __iter__(self) -> Iterator[str]:
        return iter(self.chunks)


_CHUNK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,199}")


def require_chunk_name(name: str) -> str:
    """Give a chunk's name back if it can be part of a path everywhere, else say what a name looks like.

    >>> require_chunk_name("2024-01")
    '2024-01'
    """
    if not _CHUNK_NAME.fullmatch(name):
        raise InvalidInput(
            f'"{name}" cannot name a chunk: a name is 1 to 200 letters, digits and . _ = -, '
            "and begins with a letter or a digit"
        )
    return name


def new_chunk_name() -> str:
    """A name that no other chunk has; names made later, by a microsecond at least, sort later.

    >>> len(new_chunk_name())
    21
    """
    return f"{time.time_ns() // 1_000:014x}-{secrets.token_hex(3)}"


def fixed_lists(matrix: Ints) -> pa.Array:
    """Rows of a matrix as a list array.

    >>> fixed_lists(np.array([[1, 2], [3, 4]])).to_pylist()
    [[1, 2], [3, 4]]
    """
    count, width = matrix.shape
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(matrix).reshape(-1), pa.int64()))


def encoded(column: pa.Array) -> pa.DictionaryArray:
    """A column with its dictionary, made where there is none.

    >>> encoded(pa.array(["b", "a", "b"])).dictionary.to_pylist()
    ['b', 'a']
    """
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def matrix_of(lists: Any, width: int) -> Ints:
    """The rows of a column of lists of one length, as a matrix.

    >>> matrix_of(fixed_lists(np.array([[1, 2], [3, 4]])), 2).tolist()
    [[1, 2], [3, 4]]
    """
    flat = (lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists).flatten()
    return flat.to_numpy(zero_copy_only=False).reshape(-1, width)  # type: ignore[no-any-return]


def _vectors(column: pa.Array) -> npt.NDArray[np.uint8]:
    known = column.drop_null()
    if len(known) == 0:
        return np.zeros((len(column), 0), dtype=np.uint8)
    offsets = np.frombuffer(known.buffers()[1], dtype=np.int32)[known.offset : known.offset + len(known) + 1]
    width = int(offsets[1] - offsets[0])
    if not (np.diff(offsets) == width).all():
        raise InvalidInput("the block vectors of one scheme differ in length; the block catalog is damaged")
    content = np.frombuffer(known.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]].reshape(-1, width)
    if len(known) == len(column):
        return content
    vectors = np.full((len(column), width), 255, dtype=np.uint8)
    vectors[column.is_valid().to_numpy(zero_copy_only=False)] = content
    return vectors

"""Segments: the catalog files of many chunks put together, so that a million blocks are read in a few requests.

A segment is derived from catalog files, which never change, and says which; it is never wrong, only useful or not, and
everything works without it. Its manifest is written last, so a segment that a dead writer left unfinished is unseen.

Segments are merged as in a log-structured merge tree (O'Neil, Cheng, Gawlick, O'Neil: "The Log-Structured Merge-Tree",
Acta Informatica 33, 1996): a new segment takes in every older one that is not much larger than what it already holds,
so there are about log(chunks) of them, and a chunk is rewritten about as often.
"""

from __future__ import annotations

import bisect
import io
import json
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.catalog.location import Location
from skipstone.catalog.records import ChunkHeader, bounds_fields
from skipstone.catalog.schemas import read_type, type_json
from skipstone.catalog.values import BLOCK_SCHEMA, matrix_of

__all__ = ["Place", "Segment", "SegmentGroup", "members_of_next", "places", "read_segments", "write_segment"]

SLIM_COLUMNS = tuple(name for name in BLOCK_SCHEMA.names if name != "column_bytes")
"""The columns of blocks that are the same in catalog files and segments, small, and needed for nearly every plan."""

ROWS_PER_GROUP = 65_536
"""Blocks of a row group: what is held in memory while a segment is written."""

GROWTH = 2
"""A new segment takes in an older one of at most so many times its own size."""

_ENCODED = ["layout", "part", "block", "file", "row_group"]
"""Columns with few distinct values, whose dictionaries are worth their while."""


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """The chunks of one shape in a segment: one Parquet file, chunk after chunk, ordered by name."""

    file: str
    headers: tuple[ChunkHeader, ...]
    offsets: npt.NDArray[np.int64] = field(repr=False, compare=False)

    @property
    def blocks(self) -> int:
        """The number of blocks of all chunks."""
        return int(self.offsets[-1])


@dataclass(frozen=True, slots=True)
class Segment:
    """What a manifest says."""

    manifest: str
    groups: tuple[SegmentGroup, ...]

    @property
    def paths(self) -> Iterator[str]:
        """The catalog files that are put together here."""
        return (header.path for group in self.groups for header in group.headers)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the blocks of a catalog file are found in a segment."""

    group: SegmentGroup
    position: int

    @property
    def header(self) -> ChunkHeader:
        """The header of the catalog file."""
        return self.group.headers[self.position]


def read_segments(location: Location) -> tuple[Segment, ...]:
    """Read the manifests below a location."""
    names = [file.path for file in location.list() if file.path.endswith(".json")]
    return tuple(_read_manifest(name, location.read(name)) for name in names)


def places(segments: Iterable[Segment], live: Mapping[str, str]) -> dict[str, Place]:
    """Find each live catalog file in a segment, in the one that has most of them; files in none are left out."""
    counted = [(sum(path in live for path in segment.paths), segment.manifest, segment) for segment in segments]
    found: dict[str, Place] = {}
    for count, _, segment in sorted(counted, key=lambda one: (-one[0], one[1])):
        if count == 0:
            break
        for group in segment.groups:
            for position, header in enumerate(group.headers):
                if header.path in live and header.path not in found:
                    found[header.path] = Place(group, position)
    return found


def members_of_next(live: Mapping[str, str], known: Mapping[str, Place]) -> list[str]:
    """Choose the catalog files of the next segment: those in none, and those of segments that are not much larger."""
    members = [path for path in live if path not in known]
    by_file: dict[str, list[str]] = {}
    for path, place in known.items():
        # All groups of a segment lie in one directory.
        by_file.setdefault(posixpath.dirname(place.group.file), []).append(path)
    for _, paths in sorted(by_file.items(), key=lambda one: (len(one[1]), one[0])):
        if len(paths) > GROWTH * len(members):
            break
        members += paths
    return members


def write_segment(
    location: Location, headers: Sequence[ChunkHeader], rows_of: Callable[[ChunkHeader], pa.Table]
) -> Segment:
    """Put catalog files together. `rows_of` gives the `spread` columns of a catalog file."""
    directory = uuid.uuid4().hex
    groups = []
    ordered = sorted(headers, key=lambda header: (repr(header.shape), header.chunk, header.path))
    for number, (_, same) in enumerate(groupby(ordered, key=lambda header: header.shape)):
        members = tuple(same)
        file = posixpath.join(directory, f"{number}.parquet")
        _write_group(location, file, members, rows_of)
        groups.append(SegmentGroup(file, members, _offsets(members)))
    segment = Segment(f"{directory}/manifest.json", tuple(groups))
    location.write(segment.manifest, json.dumps(_manifest(segment)).encode())
    return segment


def bytes_field(number: int) -> str:
    """The column of a segment that holds the stored bytes of a physical column.

    Lists, as catalog files have them, would have to be read whole for the sake of one of their entries.

    >>> bytes_field(3)
    'bytes.3'
    """
    return f"bytes.{number}"


def spread(table: pa.Table, header: ChunkHeader) -> pa.Table:
    """The columns of a catalog file as a segment has them."""
    bounds = [name for number in range(len(header.tracked)) for name in bounds_fields(number)]
    sizes = matrix_of(table["column_bytes"], len(header.columns))
    columns = {name: table[name] for name in (*SLIM_COLUMNS, *bounds)}
    return pa.table(columns | {bytes_field(number): sizes[:, number] for number in range(len(header.columns))})


class GroupReader:
    """Reads runs of rows of a group; runs that follow each other cost one pass over the file."""

    def __init__(self, location: Location, group: SegmentGroup) -> None:
        self._file = pq.ParquetFile(io.BytesIO(location.read(group.file)))
        counts = [self._file.metadata.row_group(i).num_rows for i in range(self._file.metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self._held: tuple[int, pa.Table] | None = None

    def rows(self, start: int, end: int) -> pa.Table:
        """Read some rows with all their columns."""
        first = bisect.bisect_right(self._starts, start) - 1
        last = bisect.bisect_left(self._starts, end)
        pieces = []
        for number in range(first, last):
            offset = max(start - self._starts[number], 0)
            pieces.append(self._row_group(number).slice(offset, end - self._starts[number] - offset))
        return pa.concat_tables(pieces)

    def _row_group(self, number: int) -> pa.Table:
        if self._held is None or self._held[0] != number:
            self._held = (number, self._file.read_row_group(number))
        return self._held[1]


def _write_group(
    location: Location, file: str, headers: Sequence[ChunkHeader], rows_of: Callable[[ChunkHeader], pa.Table]
) -> None:
    filesystem, base = location.filesystem()
    full = posixpath.join(base, file)
    if location.is_local:
        filesystem.create_dir(posixpath.dirname(full), recursive=True)
    tables = _in_row_groups(rows_of(header) for header in headers)
    first = next(tables)
    options = {"compression": "zstd", "use_dictionary": _ENCODED, "write_statistics": False}
    with filesystem.open_output_stream(full) as sink, pq.ParquetWriter(sink, first.schema, **options) as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=table.num_rows)


def _in_row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    rows = 0
    for table in tables:
        pending.append(table)
        rows += table.num_rows
        if rows >= ROWS_PER_GROUP:
            yield pa.concat_tables(pending)
            pending, rows = [], 0
    if pending:
        yield pa.concat_tables(pending)


def _offsets(headers: Sequence[ChunkHeader]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([header.blocks for header in headers])]).astype(np.int64)


def _manifest(segment: Segment) -> dict[str, Any]:
    return {
        "format": 1,
        "groups": [
            {
                "file": group.file,
                "scheme": group.headers[0].scheme,
                "columns": list(group.headers[0].columns),
                "tracked": [{"text": text, "type": type_json(kind)} for text, kind in group.headers[0].tracked],
                "chunks": [[header.path, header.chunk, header.blocks] for header in group.headers],
            }
            for group in segment.groups
        ],
    }


def _read_manifest(name: str, content: bytes) -> Segment:
    found = json.loads(content)
    if found["format"] != 1:
        # A newer program's; it is only there to save time, so it is passed over.
        return Segment(name, ())
    groups = []
    for group in found["groups"]:
        columns = tuple(group["columns"])
        tracked = tuple((one["text"], read_type(one["type"])) for one in group["tracked"])
        headers = tuple(
            ChunkHeader(path, chunk, blocks, group["scheme"], columns, tracked)
            for path, chunk, blocks in group["chunks"]
        )
        groups.append(SegmentGroup(group["file"], headers, _offsets(headers)))
    return Segment(name, tuple(groups))

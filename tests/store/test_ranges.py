"""Few, long requests to an object store: what is sent for, and that what is decoded is what was asked for."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipstone.store.reader as reader
from skipstone.catalog.location import Location
from skipstone.store.ranges import Fetched, Pieces, RangeLimits, coalesced
from skipstone.store.reader import FileBlocks

ROWS = pa.table({f"c{number}": [f"{number} {row}" for row in range(4000)] for number in range(12)})


class Counted:
    """An open file that notes what is asked of it."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self.asked: list[tuple[int, int]] = []

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def size(self) -> int:
        return int(self._source.size())

    def read_at(self, size: int, offset: int) -> pa.Buffer | bytes:
        self.asked.append((offset, offset + size))
        return self._source.read_at(size, offset)


def test_what_is_close_together_is_one_request() -> None:
    limits = RangeLimits(gap_bytes=10, request_bytes=100)
    assert coalesced([(50, 60), (0, 20), (30, 40)], limits) == [(0, 60)]
    assert coalesced([(0, 20), (31, 40)], limits) == [(0, 20), (31, 40)], "a gap of 11"
    assert coalesced([(0, 60), (60, 101)], limits) == [(0, 60), (60, 101)], "too long together"
    assert coalesced([(0, 500), (500, 501)], limits) == [(0, 500), (500, 501)], "one range is never cut"
    assert coalesced([(0, 40), (5, 10), (7, 7)], limits) == [(0, 40)], "overlapping and empty ranges"
    assert coalesced([], limits) == []


def test_fetched_bytes_are_those_of_the_file_and_others_are_asked_for() -> None:
    content = bytes(range(256)) * 4
    source = Counted(pa.BufferReader(content))
    file = Fetched(source)
    with ThreadPoolExecutor(2) as pool:
        file.pieces = Pieces(source, [(100, 200), (300, 400)], pool)
        file.seek(120)
        assert bytes(file.read(30)) == content[120:150]
        assert file.tell() == 150
        file.seek(-724, io.SEEK_END)
        assert bytes(file.read(50)) == content[300:350]
        assert sorted(source.asked) == [(100, 200), (300, 400)]
        file.seek(190)
        assert bytes(file.read(20)) == content[190:210], "half of it was not fetched"
        file.seek(10, io.SEEK_CUR)
        assert bytes(file.read()) == content[220:]
        assert sorted(source.asked) == [(100, 200), (190, 210), (220, 1024), (300, 400)]


@pytest.mark.parametrize("together", [1, 1 << 30])
def test_columns_that_are_neighbours_cost_one_request_for_a_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """c3, c4 and c5 are one range of each of four row groups, c9 another; rows come in order."""
    pq.write_table(ROWS, tmp_path / "f.parquet", row_group_size=1000, compression="none")
    place = Location.at(tmp_path)
    opened: list[Counted] = []

    def counted(table: Location, path: str) -> Counted:
        opened.append(Counted(pa.OSFile(str(tmp_path / path))))
        return opened[-1]

    monkeypatch.setattr(reader, "FETCHED_BYTES", together)
    monkeypatch.setattr(reader, "OBJECT_STORE", RangeLimits(gap_bytes=0, request_bytes=1 << 30))
    monkeypatch.setattr(reader, "_open", counted)
    footer = pq.read_metadata(tmp_path / "f.parquet")
    names = ["c3", "c4", "c5", "c9"]
    read = FileBlocks("f.parquet", (0, 2, 3))
    found = pa.Table.from_batches(reader._fetched_batches(place, read, footer, names, [3, 4, 5, 9], 300))
    assert found.equals(pa.concat_tables([ROWS.slice(0, 1000), ROWS.slice(2000)]).select(names))
    chunks = [reader._chunk_range(footer.row_group(group).column(leaf)) for group in (0, 2, 3) for leaf in (3, 4, 5, 9)]
    assert len(opened[0].asked) == 6
    assert sum(end - start for start, end in opened[0].asked) == sum(end - start for start, end in chunks)

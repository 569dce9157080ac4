"""A table on an object store: the same catalog, writer and reader, and still exactly one winner of a race."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import boto3
import pyarrow as pa
import pytest

from skipstone.catalog.location import Location
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.querylog import LoggedQuery, NativeQueryLog
from skipstone.catalog.values import Change, ChunkFacts, NewChunk
from skipstone.errors import CommitConflict, InvalidInput
from skipstone.layout.scheme import Scheme
from skipstone.store.reader import file_blocks, read_blocks
from skipstone.store.writer import BlockTarget, write_blocks
from tests.catalog.world import NOW

ROWS = pa.record_batch({"a": list(range(100)), "b": [f"text {i}" for i in range(100)]})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An object store in a process of its own: its requests must be answered while we wait for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the object store did not start")


@pytest.fixture
def location(endpoint: str) -> Location:
    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="lake")
    return Location.at(f"s3://lake/{time.time_ns()}/sales", options)


def chunk(location: Location, name: str) -> NewChunk:
    scheme = Scheme.raw(["a", "b"])
    target = BlockTarget.of(location, name, ROWS.schema, scheme)
    written = write_blocks(target, ((block, ROWS.slice(10 * block, 10), None) for block in range(10)))
    return NewChunk(name, scheme, written.blocks, ChunkFacts(100, written.checksums))


def test_a_table_lives_on_an_object_store(location: Location) -> None:
    catalog = NativeCatalog(location)
    catalog.create(ROWS.schema)
    catalog.commit(Change("append", added=(chunk(location, "one"), chunk(location, "two"))), base=0)
    catalog.commit(Change("optimize", replaced=(chunk(location, "one"),)), base=1)
    with pytest.raises(CommitConflict):
        catalog.commit(Change("optimize", replaced=(chunk(location, "one"),)), base=1)
    snapshot = NativeCatalog(location).snapshot()
    blocks, span = snapshot.blocks_of("one")
    reads = file_blocks([blocks.files[i] for i in blocks.file_of[span]], blocks.row_group[span].tolist())
    assert pa.Table.from_batches(read_blocks(location, reads, ROWS.schema)).equals(pa.Table.from_batches([ROWS]))
    report = catalog.vacuum(NOW, dry_run=False, allow_short_retention=True)
    assert sum(file.startswith("data/one/") for file in report.files) == 2
    assert location.missing(sorted(blocks.files)) == []
    NativeQueryLog(location).append([LoggedQuery(snapshot.timestamp, "SELECT 1", 2)])
    assert len(NativeQueryLog(location).read()) == 1


def test_writers_that_race_on_an_object_store_lose_nothing(location: Location) -> None:
    NativeCatalog(location).create(ROWS.schema)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            catalog = NativeCatalog(location)
            for turn in range(2):
                base = catalog.snapshot().version
                catalog.commit(Change("append", added=(chunk(location, f"c{number}-{turn}"),)), base=base)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(NativeCatalog(location).snapshot().chunks) == 6


def test_a_writer_that_gives_up_on_an_object_store_leaves_nothing(location: Location) -> None:
    target = BlockTarget.of(location, "c", ROWS.schema, Scheme.raw(["a", "b"]))
    with pytest.raises(InvalidInput, match="ascending order"):
        write_blocks(target, [(1, ROWS, None), (0, ROWS, None)])
    assert list(location.list()) == []

"""A small world for catalogs: chunks made by hand, and verbs that fail loudly when nothing was checked."""

from __future__ import annotations

import posixpath
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from skipstone.catalog.location import Location
from skipstone.catalog.memory import MemoryCatalog
from skipstone.catalog.native import NativeCatalog
from skipstone.catalog.protocol import Catalog
from skipstone.catalog.values import (
    BLOCK_SCHEMA,
    Blocks,
    Change,
    Checksum,
    ChunkFacts,
    ExpressionBounds,
    NewChunk,
    Snapshot,
    fixed_lists,
)
from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme

SCHEMA = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])

NOW = timedelta(0)


class World(Protocol):
    """A catalog, and a way to have data files for it."""

    catalog: Catalog

    def chunk(self, name: str, rows: int = 10, *, blocks: int = 1, scheme: Scheme | None = None) -> NewChunk:
        """Make a chunk whose data files are there."""


class MemoryWorld:
    """Data files are names only."""

    def __init__(self) -> None:
        self.catalog: Catalog = MemoryCatalog()

    def chunk(self, name: str, rows: int = 10, *, blocks: int = 1, scheme: Scheme | None = None) -> NewChunk:
        return make_chunk(name, rows, blocks=blocks, scheme=scheme)


class NativeWorld:
    """Data files are there, with a word in them; nobody opens them."""

    def __init__(self, path: Path) -> None:
        self.location = Location.at(path)
        self.catalog: Catalog = NativeCatalog(self.location)

    def chunk(self, name: str, rows: int = 10, *, blocks: int = 1, scheme: Scheme | None = None) -> NewChunk:
        made = make_chunk(name, rows, blocks=blocks, scheme=scheme)
        for file in made.blocks.files:
            self.location.write(file, b"rows")
        return made

    def reopened(self) -> NativeCatalog:
        """A catalog that remembers nothing, as another process has it."""
        return NativeCatalog(self.location)


def make_chunk(name: str, rows: int = 10, *, blocks: int = 1, scheme: Scheme | None = None) -> NewChunk:
    """A chunk of some blocks in one file for each layout, with bounds of column a."""
    chosen = Scheme.raw(SCHEMA.names) if scheme is None else scheme
    parts = [_blocks(name, number, rows, blocks) for number in range(len(chosen.layouts))]
    facts = ChunkFacts(rows, (("a", Checksum(rows, 1, 2**64 - 1)),), "by hand", (("gain", 2.5), ("why", None)))
    return NewChunk(name, chosen, Blocks.concat(parts), facts)


def two_layouts() -> Scheme:
    """A scheme of two layouts, each the master of one column."""
    spec = ClusteringSpec("sort", (("column", "a"), ("depth", 3)))
    first = Layout(("a",), masters=frozenset("a"), clustering=spec)
    return Scheme((first, Layout(("b", "a"), masters=frozenset("b"), duplicates=(("a2", "a"),))))


def _blocks(name: str, layout: int, rows: int, blocks: int) -> Blocks:
    cuts = np.linspace(0, rows, blocks + 1).astype(np.int64)
    file = posixpath.join("data", name, str(layout), f"{uuid.uuid4().hex}.parquet")
    table = pa.table(
        {
            "layout": pa.array([layout] * blocks, pa.int16()),
            "part": pa.array([0] * blocks, pa.int8()),
            "block": pa.array(range(blocks), pa.int32()),
            "file": pa.array([file] * blocks),
            "row_group": pa.array(range(blocks), pa.int32()),
            "rows": pa.array(np.diff(cuts)),
            "vector": pa.array([bytes([number % 256, layout]) for number in range(blocks)], pa.binary()),
            "first_row_id": pa.array(cuts[:-1]),
            "last_row_id": pa.array(cuts[1:] - 1),
            "column_bytes": fixed_lists(np.arange(2 * blocks, dtype=np.int64).reshape(blocks, 2)),
        },
        schema=BLOCK_SCHEMA,
    )
    flags, zeros = pa.array([True] * blocks), pa.array([0] * blocks, pa.int64())
    bounds = ExpressionBounds(pa.array(cuts[:-1]), pa.array(cuts[1:] - 1), zeros, zeros, flags, flags)
    return Blocks(table, ("a", "b"), (("a", bounds),))


def append(world: World, *names: str, rows: int = 10) -> int:
    """Append chunks to the latest version."""
    chunks = tuple(world.chunk(name, rows) for name in names)
    return world.catalog.commit(Change("append", added=chunks), base=world.catalog.snapshot().version)


def optimize(world: World, *names: str, base: int | None = None, rows: int = 10) -> int:
    """Replace chunks."""
    chunks = tuple(world.chunk(name, rows, blocks=2) for name in names)
    version = world.catalog.snapshot().version if base is None else base
    return world.catalog.commit(Change("optimize", replaced=chunks), base=version)


def content(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """The files of each chunk: two snapshots with the same content hold the same rows."""
    found: dict[str, tuple[str, ...]] = {}
    for blocks in snapshot.block_sets:
        for chunk in blocks.chunks:
            span = blocks.of_chunk(chunk)
            found[chunk] = tuple(sorted({blocks.files[i] for i in blocks.file_of[span]}))
    return found

"""Which copy of a column a request reads, where a layout stores some columns more than once.

A redirector stands beside every layout that has duplicates. It knows sizes from the catalog alone, so that planning
reads nothing of the data, and it is kept between plans: a set of columns that was read before is answered by its hash.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np

from skipstone.catalog.location import Location
from skipstone.catalog.values import BlockSet
from skipstone.layout.columns.redirect import Redirect, RedirectedBy, Redirector
from skipstone.layout.columns.seek import PowerSeek, SeekProfile, seek_profile
from skipstone.layout.columns.values import ColumnSizes, SizedColumn
from skipstone.layout.scheme import Layout, Scheme
from skipstone.store.ranges import OBJECT_STORE

__all__ = ["Replicas", "reading_profile", "replicas_of"]

LEARNED_AT_ONCE = 256
"""So many sets of columns are each given their best copies when they are first seen. Beyond that, a new set is read as
the known sets that are most like it until a batch of new ones is learned: planning must stay cheap."""

LAYOUTS_KEPT = 64
"""Redirectors of so many layouts are kept in a process, those used last."""


class Replicas:
    """The physical columns of one layout, ready to say which of them a request reads.

    >>> sizes = {"a": 9, "b": 1_000_000, "c": 9, "_skipstone_copy1_a": 9}
    >>> layout = Layout(("a", "b", "c"), duplicates=(("_skipstone_copy1_a", "a"),))
    >>> replicas = Replicas(layout, sizes, PowerSeek())
    >>> replicas.stored(["a", "c"]), replicas.stored(["a", "b"])
    ({'a': '_skipstone_copy1_a', 'c': 'c'}, {'a': 'a', 'b': 'b'})
    """

    def __init__(self, layout: Layout, chunk_bytes: Mapping[str, float], profile: SeekProfile) -> None:
        sources = dict(layout.duplicates)
        sizes = ColumnSizes(
            tuple(
                # A column without a byte has no place; one is near enough to none.
                SizedColumn(name, "", max(1.0, float(chunk_bytes[name])), sources.get(name))
                for name in layout.stored
            )
        )
        self._columns = frozenset(layout.columns)
        self._redirector = Redirector(sizes, (), profile)
        self._waiting = 0
        # Plans are made on many threads, and a redirector learns while it answers.
        self._lock = threading.Lock()

    def stored(self, columns: Sequence[str]) -> dict[str, str]:
        """The physical column to read for each of these columns; one that came to the table later is its own."""
        stored = {column: column for column in columns}
        here = [column for column in stored if column in self._columns]
        if here:
            stored.update((column.logical, column.name) for column in self._redirected(here).reads)
        return stored

    def _redirected(self, columns: Sequence[str]) -> Redirect:
        with self._lock:
            found = self._redirector.redirect(columns)
            if found.by is RedirectedBy.KNOWN:
                return found
            self._waiting += 1
            known = self._redirector.known_sets
            if known >= LEARNED_AT_ONCE and self._waiting < known // 4:
                return found
            self._redirector.learn()
            self._waiting = 0
            return self._redirector.redirect(columns)


def reading_profile(table: Location) -> SeekProfile:
    """What a gap costs where a table lies: a seek on a disk, and on an object store what our reader makes of it."""
    return PowerSeek() if table.is_local else seek_profile(f"object-store:gap={OBJECT_STORE.gap_bytes}")


def replicas_of(
    blocks: BlockSet, scheme: Scheme, columns: Sequence[str], *, table_id: str, profile: SeekProfile
) -> dict[int, Replicas]:
    """The layouts of a block set in which one of these columns has a copy, each with its replicas."""
    wanted = set(columns)
    return {
        number: _kept((table_id, blocks.scheme, number, profile), blocks, layout)
        for number, layout in enumerate(scheme.layouts)
        if any(source in wanted for _, source in layout.duplicates)
    }


_Key = tuple[str, str, int, SeekProfile]

_KEPT: OrderedDict[_Key, Replicas] = OrderedDict()
_LOCK = threading.Lock()


def _kept(key: _Key, blocks: BlockSet, layout: Layout) -> Replicas:
    with _LOCK:
        found = _KEPT.get(key)
        if found is not None:
            _KEPT.move_to_end(key)
            return found
    made = Replicas(layout, _mean_bytes(blocks, key[2], layout), key[3])
    with _LOCK:
        kept = _KEPT.setdefault(key, made)
        while len(_KEPT) > LAYOUTS_KEPT:
            _KEPT.popitem(last=False)
    return kept


def _mean_bytes(blocks: BlockSet, number: int, layout: Layout) -> dict[str, float]:
    """Stored bytes of each physical column in a block that has it, on average."""
    here = blocks.layout == number
    means = {}
    for name in layout.stored:
        sizes = blocks.column_bytes(name)[here]
        sizes = sizes[sizes >= 0]
        means[name] = float(np.mean(sizes)) if len(sizes) else 0.0
    return means

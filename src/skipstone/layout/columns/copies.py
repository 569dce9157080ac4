"""An order in which groups of columns may be stored several times, and the copies that queries read in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skipstone.layout.columns.choice_kernels import Copies, new_choice_room
from skipstone.layout.columns.copies_kernels import CopyScratch, new_copy_scratch, price_copies, rechoose
from skipstone.layout.columns.problem import ColumnProblem
from skipstone.layout.columns.seek_kernels import CompiledSeek
from skipstone.layout.columns.sweep_kernels import Arrangement, Items, new_arrangement, rebuild


@dataclass(slots=True)
class CopiedOrder:
    """Groups with their copies in stored order.

    `copy_group[c]` is the group that copy c repeats; `order` is a sequence of copies; `chosen` runs beside the
    queries' groups and names the copy that each reads. All change in place; `refresh` derives the rest.
    """

    groups: Items
    seek: CompiledSeek
    copy_group: NDArray[np.int32]
    order: NDArray[np.int32]
    chosen: NDArray[np.int32]
    items: Items
    arrangement: Arrangement
    cost: float

    @classmethod
    def of(cls, problem: ColumnProblem, order: Sequence[int], seek: CompiledSeek) -> CopiedOrder:
        """Begin with every group once, in this order."""
        groups = problem.items()
        copied = cls(
            groups=groups,
            seek=seek,
            copy_group=np.arange(len(groups.sizes), dtype=np.int32),
            order=np.array(order, np.int32),
            chosen=groups.query_items.copy(),
            items=groups,
            arrangement=new_arrangement(groups, np.array(order, np.int32)),
            cost=0.0,
        )
        copied.refresh()
        return copied

    def clone(self) -> CopiedOrder:
        """A copy that can be changed without changing this one."""
        twin = CopiedOrder(
            self.groups,
            self.seek,
            self.copy_group.copy(),
            self.order.copy(),
            self.chosen.copy(),
            self.items,
            self.arrangement,
            self.cost,
        )
        twin.refresh()
        return twin

    @property
    def copied_bytes(self) -> float:
        """Bytes beyond those of storing every group once."""
        return float(self.groups.sizes[self.copy_group].sum() - self.groups.sizes.sum())

    def refresh(self) -> None:
        """Derive who reads which copy, and what that costs."""
        by_copy = np.argsort(self.chosen, kind="stable")
        entry_query = np.repeat(np.arange(len(self.groups.weights), dtype=np.int32), np.diff(self.groups.query_start))
        item_start = np.zeros(len(self.copy_group) + 1, np.int32)
        np.cumsum(np.bincount(self.chosen, minlength=len(self.copy_group)), out=item_start[1:])
        self.items = Items(
            self.groups.sizes[self.copy_group],
            self.groups.query_start,
            self.chosen,
            item_start,
            entry_query[by_copy],
            self.groups.weights,
        )
        self.arrangement = new_arrangement(self.items, self.order)
        self.cost = rebuild(self.items, self.seek, self.arrangement)

    def settle(self, changed: Sequence[int] | None = None) -> float:
        """Let queries choose anew, all or those that read the groups `changed`; drop the copies that nobody reads."""
        concerned = np.full(len(self.groups.sizes), changed is None)
        if changed is not None:
            concerned[list(changed)] = True
        start = self.arrangement.start
        begin, end = start[self.arrangement.place], start[self.arrangement.place + 1]
        room = new_choice_room(len(self.copy_group))
        rechoose(self.groups, self.seek, self.copies(), begin, end, room, concerned, self.chosen)
        read = np.bincount(self.chosen, minlength=len(self.copy_group)) > 0
        # Every group is read by someone, so that a group never loses its last copy here.
        if read.all():
            self.refresh()
        else:
            self._keep(read)
        return self.cost

    def copies(self) -> Copies:
        """The copies of each group."""
        by_group = np.argsort(self.copy_group, kind="stable").astype(np.int32)
        start = np.zeros(len(self.groups.sizes) + 1, np.int32)
        np.cumsum(np.bincount(self.copy_group, minlength=len(self.groups.sizes)), out=start[1:])
        return Copies(start, by_group)

    def insert(self, block: Sequence[int], slot: int) -> None:
        """Store new copies of these groups, side by side, before the position `slot`; queries choose later."""
        new = np.arange(len(self.copy_group), len(self.copy_group) + len(block), dtype=np.int32)
        self.copy_group = np.concatenate([self.copy_group, np.array(block, np.int32)])
        self.order = np.concatenate([self.order[:slot], new, self.order[slot:]])
        self.refresh()

    def remove(self, copies: Iterable[int]) -> None:
        """Take copies out, but never a group's last; who read one takes another, and chooses later."""
        many = np.bincount(self.copy_group, minlength=len(self.groups.sizes))
        stay = np.ones(len(self.copy_group), bool)
        for copy in copies:
            group = self.copy_group[copy]
            if many[group] > 1:
                many[group] -= 1
                stay[copy] = False
        first = np.zeros(len(self.groups.sizes), np.int32)
        for copy in np.flatnonzero(stay)[::-1]:
            first[self.copy_group[copy]] = copy
        gone = ~stay[self.chosen]
        self.chosen[gone] = first[self.copy_group[self.chosen[gone]]]
        self._keep(stay)

    def _keep(self, stay: NDArray[np.bool_]) -> None:
        number = np.cumsum(stay).astype(np.int32) - 1
        self.order = number[self.order[stay[self.order]]].astype(np.int32)
        self.chosen = number[self.chosen].astype(np.int32)
        self.copy_group = self.copy_group[stay]
        self.refresh()


class Pricing:
    """Prices new copies in one state of an order."""

    def __init__(self, copied: CopiedOrder) -> None:
        self._copied = copied
        self._scratch: CopyScratch = new_copy_scratch(copied.groups, len(copied.order) + 1)
        self.totals = np.zeros(len(copied.order) + 2)

    def gain(self, block: Sequence[int], stride: int = 1) -> tuple[float, int]:
        """The most that new copies of these groups, side by side, gain, and the slot where they do.

        With a stride, only every so many slots are looked at.
        """
        copied = self._copied
        price_copies(
            copied.groups,
            copied.copy_group,
            copied.items,
            copied.seek,
            copied.arrangement,
            self._scratch,
            np.array(block, np.int32),
            self.totals,
        )
        slot = stride * int(np.argmin(self.totals[: len(copied.order) + 1 : stride]))
        return -float(self.totals[slot]), slot

"""Which copy of each item a query reads: dynamic programming over the stored order, cut to a width where it grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.columns.seek_kernels import CompiledSeek, seek_cost

MOST_TRACKED = 62
"""Items with several copies that fit into the bits of a state; of further ones, the copy read now is kept."""


MOST_ROUNDS = 6
"""How often a quick choice goes through all its copies."""


class Copies(NamedTuple):
    """The copies of each item, as a compressed list."""

    start: NDArray[np.int32]
    of_item: NDArray[np.int32]


class Beam(NamedTuple):
    """Room for the states of one query's choice; the arrays of states are twice as long as the width."""

    width: int
    mask: NDArray[np.int64]
    end: NDArray[np.float64]
    cost: NDArray[np.float64]
    back: NDArray[np.int32]
    """Where the log says which copy a state read last."""
    next_mask: NDArray[np.int64]
    next_end: NDArray[np.float64]
    next_cost: NDArray[np.float64]
    next_back: NDArray[np.int32]
    log_candidate: NDArray[np.int32]
    log_back: NDArray[np.int32]
    candidates: NDArray[np.int32]
    reader: NDArray[np.int32]
    """Which of the query's items a candidate is a copy of."""
    bit: NDArray[np.int64]
    """Bit of that item; 0 for an item without a choice."""
    last: NDArray[np.bool_]
    """Whether no later candidate is a copy of the same item."""


def new_beam(width: int, most_candidates: int) -> Beam:
    """Room for `width` states and so many copies of one query's items."""
    logged, states = width * most_candidates + 1, 2 * width
    return Beam(
        width=width,
        mask=np.zeros(states, np.int64),
        end=np.zeros(states),
        cost=np.zeros(states),
        back=np.zeros(states, np.int32),
        next_mask=np.zeros(states, np.int64),
        next_end=np.zeros(states),
        next_cost=np.zeros(states),
        next_back=np.zeros(states, np.int32),
        log_candidate=np.zeros(logged, np.int32),
        log_back=np.zeros(logged, np.int32),
        candidates=np.zeros(most_candidates, np.int32),
        reader=np.zeros(most_candidates, np.int32),
        bit=np.zeros(most_candidates, np.int64),
        last=np.zeros(most_candidates, np.bool_),
    )


@njit(cache=True)
def choice_cost(
    seek: CompiledSeek,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    chosen: NDArray[np.int32],
    room: NDArray[np.int32],
) -> float:
    """What a query pays that reads the copies `chosen`; `room` holds as many numbers."""
    count = chosen.shape[0]
    for e in range(count):
        hole = e
        while hole > 0 and begin[room[hole - 1]] > begin[chosen[e]]:
            room[hole] = room[hole - 1]
            hole -= 1
        room[hole] = chosen[e]
    cost = 0.0
    for e in range(1, count):
        cost += seek_cost(seek, begin[room[e]] - end[room[e - 1]])
    return cost


@njit(cache=True)
def choose_copies(
    seek: CompiledSeek,
    copies: Copies,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    reads: NDArray[np.int32],
    beam: Beam,
    chosen: NDArray[np.int32],
) -> tuple[float, bool]:
    """Improve `chosen`, the copy read of each item of `reads`; return its cost and whether it is known to be best.

    `begin` and `end` are the byte offsets of every copy.

    States go through the copies from left to right. A state knows which items it has covered, where its last read
    ended, and what it paid; a copy may be passed over when its item is covered or has a later copy. A state goes
    when it pays as much as the choice already at hand, or as much as another that covers the same and ended nearer.
    """
    count, exact = _list_candidates(copies, begin, reads, chosen, beam)
    known = choice_cost(seek, begin, end, chosen, beam.candidates[count : count + chosen.shape[0]])
    states, logged = 1, 1
    beam.mask[0], beam.end[0], beam.cost[0], beam.back[0] = 0, -1.0, 0.0, 0
    for c in range(count):
        copy = beam.candidates[c]
        bit, is_last = beam.bit[c], beam.last[c]
        made = _pass_over(beam, states, bit, is_last)
        passed = made
        for s in range(states):
            if (beam.mask[s] & bit) != 0:
                continue
            cost = beam.cost[s] + (seek_cost(seek, begin[copy] - beam.end[s]) if beam.end[s] >= 0.0 else 0.0)
            if cost >= known - 1e-9:
                continue
            mask = beam.mask[s] if is_last else beam.mask[s] | bit
            made = _take(beam, passed, made, mask, end[copy], cost, beam.back[s])
        for t in range(passed, made):
            beam.log_candidate[logged], beam.log_back[logged] = c, beam.next_back[t]
            beam.next_back[t] = logged
            logged += 1
        states = _drop_dominated(beam, passed, made, is_last and bit != 0)
        if states > beam.width:
            exact = False
            states = _keep_cheapest(beam, states)
        for s in range(states):
            beam.mask[s], beam.end[s] = beam.next_mask[s], beam.next_end[s]
            beam.cost[s], beam.back[s] = beam.next_cost[s], beam.next_back[s]
    best = -1
    for s in range(states):
        if best < 0 or beam.cost[s] < beam.cost[best]:
            best = s
    if best < 0 or beam.cost[best] >= known - 1e-9:
        return known, exact
    at = beam.back[best]
    while at > 0:
        c = beam.log_candidate[at]
        chosen[beam.reader[c]] = beam.candidates[c]
        at = beam.log_back[at]
    return beam.cost[best], exact


@njit(cache=True)
def _list_candidates(
    copies: Copies, begin: NDArray[np.float64], reads: NDArray[np.int32], chosen: NDArray[np.int32], beam: Beam
) -> tuple[int, bool]:
    """Sort the copies of the query's items by position, and give each item that has a choice a bit."""
    count, bits, exact = 0, 0, True
    for r in range(reads.shape[0]):
        first, end = copies.start[reads[r]], copies.start[reads[r] + 1]
        bit = np.int64(0)
        if end - first > 1:
            if bits < MOST_TRACKED:
                bit = np.int64(1) << bits
                bits += 1
            else:
                exact = False
        for c in range(first, end):
            copy = copies.of_item[c]
            if end - first > 1 and bit == 0 and copy != chosen[r]:
                continue
            hole = count
            while hole > 0 and begin[beam.candidates[hole - 1]] > begin[copy]:
                beam.candidates[hole] = beam.candidates[hole - 1]
                beam.bit[hole] = beam.bit[hole - 1]
                beam.reader[hole] = beam.reader[hole - 1]
                hole -= 1
            beam.candidates[hole], beam.bit[hole], beam.reader[hole] = copy, bit, r
            count += 1
    seen = np.int64(0)
    for c in range(count - 1, -1, -1):
        beam.last[c] = (seen & beam.bit[c]) == 0
        seen |= beam.bit[c]
    return count, exact


@njit(cache=True)
def _pass_over(beam: Beam, states: int, bit: int, is_last: bool) -> int:
    """Keep the states that may leave this copy unread. The last copy's bit is needed no longer."""
    made = 0
    for s in range(states):
        covered = (beam.mask[s] & bit) != 0
        if covered or (bit != 0 and not is_last):
            beam.next_mask[made] = beam.mask[s] & ~bit if is_last else beam.mask[s]
            beam.next_end[made], beam.next_cost[made] = beam.end[s], beam.cost[s]
            beam.next_back[made] = beam.back[s]
            made += 1
    return made


@njit(cache=True)
def _take(beam: Beam, passed: int, made: int, mask: int, end: float, cost: float, back: int) -> int:
    """Add the state that reads this copy, or improve the one that covers the same and reads it too."""
    for t in range(passed, made):
        if beam.next_mask[t] == mask:
            if cost < beam.next_cost[t]:
                beam.next_cost[t], beam.next_back[t] = cost, back
            return made
    beam.next_mask[made], beam.next_end[made], beam.next_cost[made] = mask, end, cost
    beam.next_back[made] = back
    return made + 1


@njit(cache=True)
def _drop_dominated(beam: Beam, passed: int, made: int, merged: bool) -> int:
    """Drop states that ended farther back and paid no less than another that covers the same.

    States are in order of their ends, so that only later ones can dominate; where an item's bit just went, states
    that passed the copy may have become alike and are compared among themselves too.
    """
    kept = 0
    for s in range(made):
        dominated = False
        if s < passed:
            for t in range(s + 1 if merged else passed, made):
                nearer = beam.next_end[t] >= beam.next_end[s]
                if nearer and beam.next_mask[t] == beam.next_mask[s] and beam.next_cost[t] <= beam.next_cost[s]:
                    dominated = True
                    break
        if not dominated:
            beam.next_mask[kept], beam.next_end[kept] = beam.next_mask[s], beam.next_end[s]
            beam.next_cost[kept], beam.next_back[kept] = beam.next_cost[s], beam.next_back[s]
            kept += 1
    return kept


@njit(cache=True)
def _keep_cheapest(beam: Beam, states: int) -> int:
    """Keep as many states as the width allows: those that paid least for what they cover."""
    keys = np.empty(states)
    dearest = 0.0
    most = 0
    covered = np.zeros(states, np.int64)
    for s in range(states):
        rest = beam.next_mask[s]
        while rest != 0:
            rest &= rest - 1
            covered[s] += 1
        most = max(most, covered[s])
        dearest = max(dearest, beam.next_cost[s])
    for s in range(states):
        # What a state has still to cover is charged at the going rate.
        keys[s] = beam.next_cost[s] - covered[s] * dearest / max(most, 1)
    limit = np.sort(keys)[beam.width - 1]
    kept = 0
    for s in range(states):
        if keys[s] <= limit and kept < beam.width:
            beam.next_mask[kept], beam.next_end[kept] = beam.next_mask[s], beam.next_end[s]
            beam.next_cost[kept], beam.next_back[kept] = beam.next_cost[s], beam.next_back[s]
            kept += 1
    return kept


class ChoiceRoom(NamedTuple):
    """Room for improving one query's choice; the copies of its items are sorted by their offsets."""

    candidates: NDArray[np.int32]
    at: NDArray[np.float64]
    upto: NDArray[np.float64]
    reader: NDArray[np.int32]
    """Which of the query's items a candidate is a copy of."""
    read: NDArray[np.bool_]
    trial: NDArray[np.bool_]
    now: NDArray[np.int32]
    """The candidate that each of the query's items reads."""


def new_choice_room(most_candidates: int) -> ChoiceRoom:
    """Room for a query whose items have so many copies."""
    return ChoiceRoom(
        candidates=np.zeros(most_candidates, np.int32),
        at=np.zeros(most_candidates),
        upto=np.zeros(most_candidates),
        reader=np.zeros(most_candidates, np.int32),
        read=np.zeros(most_candidates, np.bool_),
        trial=np.zeros(most_candidates, np.bool_),
        now=np.zeros(most_candidates, np.int32),
    )


@njit(cache=True)
def improve_choice(
    seek: CompiledSeek,
    copies: Copies,
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    reads: NDArray[np.int32],
    room: ChoiceRoom,
    chosen: NDArray[np.int32],
) -> None:
    """Improve `chosen` quickly: switch one item to another copy, or all items of a stretch to the copies in it.

    A stretch is a sequence of copies of the query's items with nothing between them.
    """
    count = 0
    several = False
    for r in range(reads.shape[0]):
        first, last = copies.start[reads[r]], copies.start[reads[r] + 1]
        several |= last - first > 1
        for c in range(first, last):
            copy = copies.of_item[c]
            hole = count
            while hole > 0 and room.at[hole - 1] > begin[copy]:
                room.candidates[hole], room.at[hole] = room.candidates[hole - 1], room.at[hole - 1]
                room.reader[hole] = room.reader[hole - 1]
                hole -= 1
            room.candidates[hole], room.at[hole], room.reader[hole] = copy, begin[copy], r
            count += 1
    if not several:
        return
    for c in range(count):
        room.upto[c] = end[room.candidates[c]]
        room.read[c] = room.candidates[c] == chosen[room.reader[c]]
        if room.read[c]:
            room.now[room.reader[c]] = c
    better = True
    rounds = 0
    while better and rounds < MOST_ROUNDS:
        better = _switch_stretches(seek, room, count) or _switch_singles(seek, room, count)
        rounds += 1
    for r in range(reads.shape[0]):
        chosen[r] = room.candidates[room.now[r]]


@njit(cache=True)
def _switch_stretches(seek: CompiledSeek, room: ChoiceRoom, count: int) -> bool:
    at, upto, read, trial = room.at, room.upto, room.read, room.trial
    cost = reading_cost(seek, at, upto, read, count)
    better = False
    low = 0
    while low < count:
        high = low + 1
        while high < count and at[high] == upto[high - 1]:
            high += 1
        unread = 0
        for c in range(low, high):
            unread += not read[c]
        if unread > 0 and high - low > 1:
            trial[:count] = read[:count]
            for c in range(low, high):
                for other in range(count):
                    if room.reader[other] == room.reader[c]:
                        trial[other] = False
                trial[c] = True
            there = reading_cost(seek, at, upto, trial, count)
            if there < cost - 1e-9:
                cost, better = there, True
                read[:count] = trial[:count]
                for c in range(count):
                    if read[c]:
                        room.now[room.reader[c]] = c
        low = high
    return better


@njit(cache=True)
def _switch_singles(seek: CompiledSeek, room: ChoiceRoom, count: int) -> bool:
    at, upto, read = room.at, room.upto, room.read
    better = False
    for c in range(count):
        if read[c]:
            continue
        now = room.now[room.reader[c]]
        read[now] = False
        gain = detour(seek, at, upto, read, count, now) - detour(seek, at, upto, read, count, c)
        if gain > 1e-9:
            read[c] = True
            room.now[room.reader[c]] = c
            better = True
        else:
            read[now] = True
    return better


@njit(cache=True)
def reading_cost(
    seek: CompiledSeek, at: NDArray[np.float64], upto: NDArray[np.float64], read: NDArray[np.bool_], count: int
) -> float:
    """What it costs to read the marked ones of `count` copies, sorted by their offsets."""
    cost, reached = 0.0, -1.0
    for c in range(count):
        if read[c]:
            if reached >= 0.0:
                cost += seek_cost(seek, at[c] - reached)
            reached = upto[c]
    return cost


@njit(cache=True)
def detour(
    seek: CompiledSeek,
    at: NDArray[np.float64],
    upto: NDArray[np.float64],
    read: NDArray[np.bool_],
    count: int,
    c: int,
) -> float:
    """What it costs to read copy c beside the others that are marked."""
    left, right = c - 1, c + 1
    while left >= 0 and not read[left]:
        left -= 1
    while right < count and not read[right]:
        right += 1
    cost = 0.0
    if left >= 0:
        cost += seek_cost(seek, at[c] - upto[left])
    if right < count:
        cost += seek_cost(seek, at[right] - upto[c])
    if left >= 0 and right < count:
        cost -= seek_cost(seek, at[right] - upto[left])
    return cost

"""Random numbers inside compiled loops, from a state that the caller holds.

numba's own generator is one per thread and is lost between calls; with the state in an array a search can stop and go
on, and its result does not depend on how its moves were cut into calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skipstone.compiled import njit


def random_state(seed: int) -> NDArray[np.uint64]:
    """Start a sequence of random numbers.

    >>> state = random_state(7)
    >>> first = uniform(state)
    >>> 0.0 <= first < 1.0 and uniform(state) != first and uniform(random_state(7)) == first
    True
    """
    return np.array([seed % 2**64], np.uint64)


@njit(cache=True)
def uniform(state: NDArray[np.uint64]) -> float:
    """Draw from [0, 1): one step of splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
    OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def below(state: NDArray[np.uint64], count: int) -> int:
    """Draw from 0, 1, ..., count - 1."""
    return int(uniform(state) * count)

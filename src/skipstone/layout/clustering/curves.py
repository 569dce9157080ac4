"""Keys that put rows with near values of several expressions near each other: Z-order, Hilbert, and plain nesting."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skipstone.compiled import njit
from skipstone.layout.clustering.coding import Coder
from skipstone.predicate.expression import Expression, columns_of

__all__ = ["KEY_BITS", "Curve", "OrderKey", "hilbert", "nested", "z_order"]

KEY_BITS = 64
"""A key is one machine word, so no curve has more dimensions than that."""

MOST_BITS = 16
"""More than 65,536 steps of one expression are not worth a bit."""


class Curve(enum.Enum):
    """How several codes become one key."""

    Z_ORDER = "zorder"
    """The bits of the codes take turns, the highest first."""
    HILBERT = "hilbert"
    """A curve whose neighbours are neighbours in space: no jumps, where Z-order has long ones."""
    NESTED = "nested"
    """By the first code, equal ones by the second, and so on."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderKey:
    """The key of a row on a curve through the codes of some expressions. Without expressions all keys are equal."""

    curve: Curve
    coders: tuple[Coder, ...]

    @classmethod
    def learn(
        cls, curve: Curve, expressions: tuple[Expression, ...], sample: pa.Table, *, time_zone: str | None = None
    ) -> OrderKey:
        """Learn the codes of the expressions, as fine as the key has bits for."""
        bits = cls._bits(len(expressions))
        coders = (Coder.learn(one, sample, 1 << bits, time_zone=time_zone) for one in expressions)
        return cls(curve, tuple(coders))

    @staticmethod
    def _bits(dimensions: int) -> int:
        return min(MOST_BITS, KEY_BITS // max(dimensions, 1))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the key is computed from, sorted."""
        return tuple(sorted(set().union(*(columns_of(coder.expression) for coder in self.coders))))

    def keys(self, rows: pa.Table | pa.RecordBatch) -> NDArray[np.uint64]:
        """Give each row its key."""
        if not self.coders or not rows.num_rows:
            return np.zeros(rows.num_rows, dtype=np.uint64)
        bits = self._bits(len(self.coders))
        codes = np.stack([coder.spread(rows, bits) for coder in self.coders], axis=1)
        match self.curve:
            case Curve.Z_ORDER:
                return z_order(codes, bits)
            case Curve.HILBERT:
                return hilbert(codes, bits)
            case Curve.NESTED:
                return nested(codes, bits)


def nested(codes: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Join the codes of each row, of so many bits each, the first the most significant.

    >>> nested(np.array([[1, 2], [2, 1]], dtype=np.uint64), bits=2).tolist()
    [6, 9]
    """
    keys = np.zeros(len(codes), dtype=np.uint64)
    for dimension in range(codes.shape[1]):
        keys = (keys << np.uint64(bits)) | codes[:, dimension]
    return keys


def z_order(codes: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Interleave the bits of the codes of each row, the first code's highest bit first.

    Morton, "A computer oriented geodetic data base and a new technique in file sequencing", IBM, 1966.

    >>> z_order(np.array([[0b10, 0b01]], dtype=np.uint64), bits=2).tolist() == [0b1001]
    True
    """
    keys = np.zeros(len(codes), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for dimension in range(codes.shape[1]):
            keys = (keys << np.uint64(1)) | ((codes[:, dimension] >> np.uint64(bit)) & np.uint64(1))
    return keys


def hilbert(codes: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Number the points of each row's codes along a Hilbert curve.

    Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004: the function AxestoTranspose; the
    key is the transpose with its bits interleaved.

        X    axes (a row of codes)      b    bits      n    the number of codes

    Departs from the paper: nothing.

    >>> corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=np.uint64)
    >>> hilbert(corners, bits=1).tolist()
    [0, 1, 2, 3]
    """
    axes = codes.astype(np.uint64)  # a copy, which is changed
    _axes_to_transpose(axes, bits)
    return z_order(axes, bits)


@njit(cache=True)
def _axes_to_transpose(points: NDArray[np.uint64], bits: int) -> None:
    zero = np.uint64(0)
    one = np.uint64(1)
    dimensions = points.shape[1]
    for row in range(points.shape[0]):
        axes = points[row]
        q = one << np.uint64(bits - 1)
        while q > one:  # inverse undo
            p = q - one
            for i in range(dimensions):
                if axes[i] & q != zero:
                    axes[0] ^= p
                else:
                    t = (axes[0] ^ axes[i]) & p
                    axes[0] ^= t
                    axes[i] ^= t
            q >>= one
        for i in range(1, dimensions):  # Gray encode
            axes[i] ^= axes[i - 1]
        t = zero
        q = one << np.uint64(bits - 1)
        while q > one:
            if axes[dimensions - 1] & q != zero:
                t ^= q - one
            q >>= one
        for i in range(dimensions):
            axes[i] ^= t

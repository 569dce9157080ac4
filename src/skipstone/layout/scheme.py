"""How a chunk is stored: a scheme is a set of layouts, each with its columns, its local features and its masters.

Sun, "Skipping-oriented Data Design for Large-Scale Analytics", dissertation, 2017, section 5.4.1: a GSOP-R scheme is a
set of layouts (C_i, F_i, M_i).

    C_i   layout.columns       F_i   layout.features       M_i   layout.masters

SOP is one layout that holds every column. GSOP is several layouts that share no column, all columns masters. GSOP-R is
layouts that may share columns. A chunk as it was loaded is `raw`: one layout, no features. The code that reads and
writes does not ask which of these it has before it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from skipstone.errors import InvalidInput, listed
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.printing import sql

__all__ = ["FEATURE_PREFIX", "RESERVED_PREFIX", "ROW_ID", "ClusteringSpec", "Layout", "Scheme", "feature_column"]

RESERVED_PREFIX = "_skipstone_"
"""No column of a table may begin so, in any case: the physical columns that we add do."""

ROW_ID = "_skipstone_row_id"
"""The physical column of row ids, in files of layouts whose scheme needs them."""

FEATURE_PREFIX = f"{RESERVED_PREFIX}feature_"
"""The physical columns of features begin so."""

MOST_FEATURES_KEPT = 64
"""So many features at most become columns: footers grow with columns times blocks. The first are the heaviest."""


def feature_column(feature: Conjunction) -> str:
    """Name the column of a feature, by what the feature is.

    >>> from skipstone.predicate.literal import ALWAYS
    >>> feature_column(ALWAYS)
    '_skipstone_feature_dfe88090c5ed'
    """
    return FEATURE_PREFIX + hashlib.sha256(sql(feature).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class ClusteringSpec:
    """Which clustering makes a layout's blocks, by name; parameters are sorted (name, value) pairs of JSON scalars.

    What it decided (boundaries, a tree, a map from vectors to groups) belongs to a chunk and is made anew for each.
    """

    name: str = "none"
    parameters: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Some columns of a chunk, stored together: their order, the local features that cluster them, and the masters.

    `columns` is the stored order. `features` are positions in the scheme's features, ascending. Master columns hold the
    values of all rows of the chunk; a layout without masters holds just the rows that satisfy one of its features.
    `duplicates` are further physical columns (stored name, source column) that the schema never shows; `order` says
    where among the columns they are stored, and without it they come last. A layout that `keeps_features` stores them
    as BOOLEAN columns besides, for engines that know nothing of block vectors.
    """

    columns: tuple[str, ...]
    features: tuple[int, ...] = ()
    masters: frozenset[str] = frozenset()
    clustering: ClusteringSpec = field(default_factory=ClusteringSpec)
    duplicates: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    keeps_features: bool = False

    @property
    def stored(self) -> tuple[str, ...]:
        """The physical columns in stored order, without row ids.

        >>> copy = "_skipstone_copy1_a"
        >>> Layout(("a", "b"), duplicates=((copy, "a"),)).stored
        ('a', 'b', '_skipstone_copy1_a')
        """
        return self.order or (*self.columns, *(stored for stored, _ in self.duplicates))

    @property
    def holds_all_rows(self) -> bool:
        """Whether every row of the chunk is in this layout."""
        return bool(self.masters)


@dataclass(frozen=True, slots=True)
class Scheme:
    """The layouts that a chunk is stored in, and the features that their vectors speak of."""

    layouts: tuple[Layout, ...]
    features: tuple[Conjunction, ...] = ()

    @property
    def needs_row_ids(self) -> bool:
        """Whether rows must be put together again from several layouts, so that each stores its rows' ids."""
        return len(self.layouts) > 1

    def feature_columns(self, layout: Layout) -> tuple[tuple[str, int], ...]:
        """The BOOLEAN columns that a layout stores for features, by name, with the feature's position.

        TRUE where the feature may be TRUE for a row, FALSE where it is not. A name is made from the feature alone, so
        it means the same in every chunk.
        """
        if not layout.keeps_features:
            return ()
        return tuple((feature_column(one), number) for number, one in enumerate(self.features[:MOST_FEATURES_KEPT]))

    @classmethod
    def raw(cls, columns: Sequence[str]) -> Scheme:
        """The scheme of a chunk as it was loaded: one layout, arrival order, no features.

        >>> Scheme.raw(["a", "b"]).layouts[0].columns
        ('a', 'b')
        """
        return cls((Layout(tuple(columns), masters=frozenset(columns)),))

    def validate(self, columns: Sequence[str]) -> Scheme:
        """Give the scheme back if it can store a table of these columns without loss, else say what is wrong."""
        if not self.layouts:
            raise InvalidInput("a scheme needs at least one layout, this one has none")
        masters = Counter(column for layout in self.layouts for column in layout.masters)
        homeless = [column for column in columns if masters[column] == 0]
        if homeless:
            raise InvalidInput(f"every column must be a master in exactly one layout; without one: {listed(homeless)}")
        doubled = sorted(column for column, count in masters.items() if count > 1)
        if doubled:
            raise InvalidInput(f"every column must be a master in exactly one layout; in several: {listed(doubled)}")
        for number, layout in enumerate(self.layouts):
            _validate_layout(number, layout, frozenset(columns), len(self.features))
        return self


def _validate_layout(number: int, layout: Layout, known: frozenset[str], feature_count: int) -> None:
    here = f"layout {number}"
    strangers = sorted((set(layout.columns) | layout.masters) - known)
    if strangers:
        raise InvalidInput(f"{here} names columns that the table does not have: {listed(strangers)}")
    if len(set(layout.columns)) != len(layout.columns) or not layout.columns:
        raise InvalidInput(f"{here} must name one or more columns, each once; it has: {listed(layout.columns)}")
    if not layout.masters <= set(layout.columns):
        missing = sorted(layout.masters - set(layout.columns))
        raise InvalidInput(f"{here} has masters that are not among its columns: {listed(missing)}")
    if list(layout.features) != sorted(set(layout.features)) or any(
        not 0 <= feature < feature_count for feature in layout.features
    ):
        raise InvalidInput(
            f"{here} must name features in ascending order from 0 to {feature_count - 1}; it has {layout.features}"
        )
    if not layout.masters and not layout.features:
        raise InvalidInput(f"{here} has neither masters nor features, so no row would be in it")
    _validate_duplicates(here, layout)


def _validate_duplicates(here: str, layout: Layout) -> None:
    # A name that a column of the table could have, now or later, would make that column read the duplicate's values.
    clashing = [stored for stored, _ in layout.duplicates if not stored.startswith(RESERVED_PREFIX) or stored == ROW_ID]
    if clashing:
        raise InvalidInput(
            f"{here} stores duplicates under names that columns may have: {listed(clashing)}. "
            f'Hint: begin each with "{RESERVED_PREFIX}"'
        )
    sources = sorted({source for _, source in layout.duplicates} - set(layout.columns))
    if sources:
        raise InvalidInput(f"{here} repeats columns that it does not store: {listed(sources)}")
    names = Counter((*layout.columns, *(stored for stored, _ in layout.duplicates)))
    doubled = sorted(name for name, count in names.items() if count > 1)
    if doubled:
        raise InvalidInput(f"{here} stores several columns under one name: {listed(doubled)}")
    if layout.order and (
        Counter(layout.order) != names
        or [name for name in layout.order if name in set(layout.columns)] != list(layout.columns)
    ):
        raise InvalidInput(
            f"{here} must say for each of its {len(names)} physical columns, once, where it is stored, "
            f"with columns in their own order; it has: {listed(layout.order)}"
        )

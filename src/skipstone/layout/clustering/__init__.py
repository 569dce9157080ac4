"""Clusterings by name: how the rows of a layout are put into blocks.

none           as rows arrived
sort           by one column, or by the one that serves the queries best
range          by ranges of several columns, given by hand
zorder         along a Z-order curve through several columns
hilbert        along a Hilbert curve through them
ward           the papers' bottom-up clustering of feature vectors
ward-queries   the same search, counting what queries read
qdtree         a tree of cuts by the conditions that queries ask
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from skipstone.errors import InvalidInput, listed, near_miss
from skipstone.layout.clustering.by_vectors import Ward, WardByQueries
from skipstone.layout.clustering.curves import Curve
from skipstone.layout.clustering.ordered import ByCurve, ByRanges, BySort, Unordered
from skipstone.layout.clustering.qdtree import QueryTree
from skipstone.layout.clustering.routing import Clustering
from skipstone.layout.scheme import ClusteringSpec

__all__ = ["CLUSTERINGS", "clustering"]

CLUSTERINGS: dict[str, Callable[..., Clustering]] = {
    "none": lambda: Unordered(),
    "sort": lambda column="": BySort(column),
    "range": lambda over: ByRanges(over),
    "zorder": lambda over="", dimensions=4: ByCurve(Curve.Z_ORDER, over, dimensions),
    "hilbert": lambda over="", dimensions=4: ByCurve(Curve.HILBERT, over, dimensions),
    "ward": lambda: Ward(),
    "ward-queries": lambda: WardByQueries(),
    "qdtree": lambda mixing=0.0: QueryTree(mixing),
}
"""Each name and the function of its parameters that makes it."""


def clustering(spec: ClusteringSpec) -> Clustering:
    """Return the clustering that a scheme asks for.

    >>> clustering(ClusteringSpec("sort", (("column", "day"),)))
    BySort(column='day')
    """
    if spec.name not in CLUSTERINGS:
        near = near_miss(spec.name, CLUSTERINGS)
        hint = f' Did you mean "{near}"?' if near else ""
        raise InvalidInput(f'there is no clustering "{spec.name}".{hint} There are: {listed(tuple(CLUSTERINGS))}')
    make = CLUSTERINGS[spec.name]
    known = inspect.signature(make).parameters
    given = dict(spec.parameters)
    strangers = sorted(set(given) - set(known))
    if strangers:
        accepted = f"it has: {listed(tuple(known))}" if known else "it takes none"
        raise InvalidInput(f'clustering "{spec.name}" has no parameter {_quoted(strangers)}; {accepted}')
    missing = [name for name, one in known.items() if one.default is inspect.Parameter.empty and name not in given]
    if missing:
        raise InvalidInput(f'clustering "{spec.name}" needs the parameter {_quoted(missing)}')
    return make(**given)


def _quoted(names: list[str]) -> str:
    return listed([f'"{name}"' for name in names])

"""Wide tables to measure on: the published one where it is present, and a generated one of any width.

The generator follows section 6.1 of Bian et al., "Wide Table Layout Optimization based on Column Ordering and
Duplication", SIGMOD 2017: 1,187 columns of mostly small types, 77.5 % of the queries read 7 to 20 columns, 32 on
average, up to half of the table, the most popular column is in 98 % of the queries and ten are in a quarter of them
or more, and 4,343 queries have 547 different column sets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skipstone.layout.columns.files import read_queries, read_sizes
from skipstone.layout.columns.values import ColumnQuery, ColumnSizes, SizedColumn

PUBLISHED = Path(__file__).parents[2] / "shared" / "data" / "wide"
"""Where the table that the authors published lies on machines that have it."""

TYPES = (
    ("int", 1008, 6.0, 1.9),
    ("string", 109, 8.75, 2.2),
    ("boolean", 36, 8.1, 0.1),
    ("double", 23, 6.9, 2.2),
    ("bigint", 9, 6.3, 2.2),
    ("timestamp", 2, 8.0, 0.5),
)
"""Type, columns of it among 1,187 (Table 2), and mean and deviation of the logarithm of the chunk's bytes."""

DISTINCT = 547 / 4343
"""Column sets per query (section 6.2)."""


def published_workload() -> tuple[ColumnSizes, tuple[ColumnQuery, ...]] | None:
    """The authors' table of 1,000 columns and half of their queries, or nothing where it is not present."""
    if not (PUBLISHED / "schema.txt").is_file():
        return None
    sizes = read_sizes(PUBLISHED / "schema.txt")
    return sizes, read_queries(PUBLISHED / "workload.txt", sizes)


def wide_workload(columns: int, queries: int, seed: int) -> tuple[ColumnSizes, tuple[ColumnQuery, ...]]:
    """Generate a wide table and its queries.

    >>> sizes, queries = wide_workload(300, 500, seed=1)
    >>> len(sizes.columns), len(queries), max(len(q.columns) for q in queries) <= 150
    (300, 500, True)
    """
    rng = np.random.default_rng(seed)
    sizes = _sizes(columns, rng)
    names = [column.name for column in sizes.columns]
    # What belongs together in people's minds is scattered over the schema in no order at all.
    shelf = rng.permutation(columns)
    popularity = np.concatenate([[0.98, 0.9, 0.8, 0.7, 0.55, 0.5, 0.45, 0.35, 0.3, 0.25], 0.3 / np.arange(2, 30)])
    popular = shelf[: min(len(popularity), columns // 4)]
    distinct = max(2, round(queries * DISTINCT))
    sets: list[tuple[str, ...]] = []
    seen: set[tuple[int, ...]] = set()
    while len(sets) < distinct:
        chosen = _column_set(columns, shelf, popular, popularity, rng)
        if chosen not in seen:
            seen.add(chosen)
            sets.append(tuple(names[column] for column in chosen))
    shares = 1.0 / np.arange(1, distinct + 1) ** 0.8
    repeats = 1 + rng.multinomial(queries - distinct, shares / shares.sum())
    rng.shuffle(repeats)
    drawn = rng.permutation(np.repeat(np.arange(distinct), repeats))
    return sizes, tuple(ColumnQuery(sets[which], 1.0, f"q{number}") for number, which in enumerate(drawn))


def _sizes(columns: int, rng: np.random.Generator) -> ColumnSizes:
    shares = np.array([count for _, count, _, _ in TYPES], float)
    kinds = rng.choice(len(TYPES), size=columns, p=shares / shares.sum())
    made = []
    for number, kind in enumerate(kinds):
        name, _, mean, deviation = TYPES[kind]
        made.append(SizedColumn(f"c{number}", name, float(max(48.0, rng.lognormal(mean, deviation)))))
    return ColumnSizes(tuple(made))


def _column_set(
    columns: int,
    shelf: np.ndarray,
    popular: np.ndarray,
    popularity: np.ndarray,
    rng: np.random.Generator,
) -> tuple[int, ...]:
    kind = rng.random()
    if kind < 0.775:
        wanted = int(rng.integers(7, 21))
    elif kind < 0.85:
        wanted = int(rng.integers(2, 7))
    else:
        # A long tail up to half of the table, heavy enough for a mean near 32.
        wanted = int(min(columns // 2, 21 * (1 - rng.random()) ** -0.85))
    chosen = {int(column) for column, share in zip(popular, popularity, strict=False) if rng.random() < share}
    chosen = set(sorted(chosen)[:wanted])
    # The rest are short runs from a few neighbourhoods of the shelf: one topic, and what its authors also look at.
    home = int(rng.beta(0.9, 1.6) * (columns - 1))
    while len(chosen) < wanted:
        near = home + int(rng.normal(0, max(10.0, wanted)))
        if rng.random() < 0.08:
            near = int(rng.integers(0, columns))
        run = int(rng.geometric(0.25))
        for step in range(run):
            if len(chosen) < wanted:
                chosen.add(int(shelf[(near + step) % columns]))
    return tuple(sorted(chosen))

"""Small random worlds: a table full of edge values, schemes of every shape, and conditions that both engines read."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from skipstone.layout.scheme import ClusteringSpec, Layout, Scheme
from skipstone.predicate.literal import Conjunction
from skipstone.predicate.parsing import parse_filter

NUMBERS = [None, -3, -1, 0, 1, 2, 5, 7]
FLOATS = [None, float("nan"), -0.0, 0.0, 1.5, -2.25, float("inf"), float("-inf"), 3.0]
TEXTS = [None, "", "a", "ab", "abc", "b", "ba", "é", "\U0010ffff", "a%b", "x" * 80, "x" * 79 + "y"]
DAYS = [None, *(datetime.date(1994, month, 1) for month in range(1, 7)), datetime.date(1850, 3, 9)]
MONEY = [None, *(decimal.Decimal(cents) / 100 for cents in (-150, 0, 5, 100, 12345))]

SCHEMA = pa.schema([
    ("n", pa.int32()),
    ("f", pa.float64()),
    ("s", pa.string()),
    ("d", pa.date32()),
    ("m", pa.decimal128(9, 2)),
    ("Flag", pa.bool_()),
    ("k.v", pa.int64()),
    ("l", pa.list_(pa.int64())),
])  # fmt: skip

CLUSTERINGS = ("none", "ward", "ward-queries", "sort", "zorder", "hilbert", "qdtree")


def random_table(chance: random.Random, rows: int) -> pa.Table:
    """Rows of edge values; about a fifth of them are equal to another row."""
    values: dict[str, list[Any]] = {
        "n": NUMBERS,
        "f": FLOATS,
        "s": TEXTS,
        "d": DAYS,
        "m": MONEY,
        "Flag": [None, True, False],
        "k.v": [None, *range(5)],
        "l": [None, [], [1], [1, None]],
    }
    made = [{name: chance.choice(of) for name, of in values.items()} for _ in range(rows)]
    for _ in range(rows // 5):
        made[chance.randrange(rows)] = made[chance.randrange(rows)]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def random_condition(chance: random.Random) -> str:
    """A condition that Spark and DuckDB read alike."""
    return " AND ".join(_disjunction(chance) for _ in range(chance.randint(1, 3)))


def _disjunction(chance: random.Random) -> str:
    literals = [_literal(chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    return f"({' OR '.join(literals)})"


def _literal(chance: random.Random) -> str:
    comparison = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    number = chance.choice([-2, 0, 1, 2, 6])
    day = f"DATE '1994-0{chance.randint(1, 6)}-01'"
    return chance.choice([
        f"n {comparison} {number}",
        f"f {comparison} {chance.choice(['0.0', '1.5', '-2.25'])}",
        f"s {comparison} '{chance.choice(['', 'a', 'ab', 'b', 'x' * 79])}'",
        f"d {comparison} {day}",
        f"d BETWEEN DATE '1994-01-01' AND {day}",
        f"m {comparison} {chance.choice(['0.05', '1', '123.45'])}",
        f"n IN ({number}, {number + 1}, 7)",
        f"n NOT IN ({number}, 5)",
        f"s LIKE '{chance.choice(['a%', '%b', '%a%', '_b%'])}'",
        f"NOT (n {comparison} {number} AND f > 0.0)",
        f"{chance.choice(['n', 'f', 's', 'd', 'm'])} IS {chance.choice(['', 'NOT '])}NULL",
        "Flag",
        "NOT Flag",
        f"n + 1 {comparison} {number}",
        f"length(s) {comparison} {abs(number)}",
    ])  # fmt: skip


def random_features(chance: random.Random, count: int) -> tuple[Conjunction, ...]:
    """Different filters to lay out for."""
    texts = {random_condition(chance): None for _ in range(count)}
    return tuple(dict.fromkeys(parse_filter(text, SCHEMA) for text in texts))


def random_scheme(chance: random.Random, features: Sequence[Conjunction], layouts: int) -> Scheme:
    """Any valid scheme: columns dealt out and replicated, local features and masters by chance."""
    names = list(SCHEMA.names)
    home = {name: chance.randrange(layouts) for name in names}
    made = []
    for number in range(layouts):
        masters = [name for name in names if home[name] == number]
        replicas = [name for name in names if home[name] != number and chance.random() < 0.5]
        local = sorted(chance.sample(range(len(features)), chance.randint(0, min(3, len(features)))))
        columns = masters + (replicas if local else [])
        if not columns:
            continue
        chance.shuffle(columns)
        spec = ClusteringSpec(chance.choice(CLUSTERINGS))
        made.append(Layout(tuple(columns), tuple(local), frozenset(masters), spec))
    return Scheme(tuple(made), tuple(features))

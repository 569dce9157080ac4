"""A workload that no layout can serve: every query is different, and none says where its rows are.

A system that lays data out for its queries must notice this and leave the table alone. Three kinds of filter take
turns:

    modular     a residue of an expression over several columns, true of rows scattered evenly over any order
    wide        a range that nearly all rows satisfy, so that there is nothing to skip; it subsumes and is subsumed by
                many others, which makes it a tempting and worthless feature
    fragment    a string that occurs somewhere inside a comment
"""

from __future__ import annotations

import random
from string import ascii_lowercase

from bench.query import Query

_PRIMES = tuple(p for p in range(101, 1_000) if all(p % d for d in range(2, 32)))
_WIDE = (
    ("l_extendedprice", 900, 6_000),
    ("o_totalprice", 900, 20_000),
    ("c_acctbal", -999, -300),
    ("l_quantity", 0, 3),
)
_SPREAD = ("l_orderkey", "l_partkey", "l_suppkey", "o_custkey")
_OUTPUT = "select count(*) as items, sum(l_extendedprice) as price"


def queries(count: int, *, seed: int, stream: str = "train", table: str = "denorm") -> tuple[Query, ...]:
    """Return `count` queries over the wide TPC-H table of which no two have the same filter.

    >>> [query.template for query in queries(4, seed=1)]
    ['modular', 'wide', 'fragment', 'modular']
    """
    rng = random.Random(f"hostile/{seed}/{stream}")
    kinds = (("modular", _modular), ("wide", _wide), ("fragment", _fragment))
    filters: dict[str, str] = {}
    while len(filters) < count:
        template, make = kinds[len(filters) % len(kinds)]
        filters.setdefault(make(rng), template)
    return tuple(Query(template, f"{_OUTPUT} from {table} where {where}") for where, template in filters.items())


def _modular(rng: random.Random) -> str:
    first, second = rng.sample(_SPREAD, 2)
    prime = rng.choice(_PRIMES)
    return f"({first} * {rng.randint(2, 99)} + {second} * {rng.randint(2, 99)}) % {prime} = {rng.randrange(prime)}"


def _wide(rng: random.Random) -> str:
    column, least, greatest = rng.choice(_WIDE)
    return f"{column} > {round(rng.uniform(least, greatest), 2)}"


def _fragment(rng: random.Random) -> str:
    return f"l_comment like '%{''.join(rng.choices(ascii_lowercase, k=3))}%'"

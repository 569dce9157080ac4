"""Random queries over tables t1 .. t4 with columns (id, a, b int, s text), each table read in one place at most."""

from __future__ import annotations

import random

COLUMNS = ("id", "a", "b", "s")


def random_query(rng: random.Random) -> str:
    """Make a query of joins, derived tables, aggregates, windows, limits, set operations, CTEs and subqueries."""
    return _Maker(rng).statement()


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.free = ["t1", "t2", "t3", "t4"]
        self.names = 0
        self.ctes: list[str] = []

    def statement(self) -> str:
        if self.rng.random() < 0.3:
            name = self.name("w")
            body = self.query(2)
            self.ctes.append(name)
            return f"WITH {name} AS ({body}) {self.select(0)}"
        return self.query(0)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def query(self, depth: int) -> str:
        """A query with output columns id, a, b, s."""
        if self.rng.random() < 0.15 and len(self.free) >= 2 and depth < 3:
            kind = self.rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
            return f"{self.select(depth + 1)} {kind} {self.select(depth + 1)}"
        return self.select(depth)

    def source(self, depth: int) -> tuple[str, str]:
        """An item of FROM with the four columns, and its alias."""
        if self.ctes and self.rng.random() < 0.6:
            alias = self.name("c")
            return f"{self.rng.choice(self.ctes)} AS {alias}", alias
        if not self.free:
            alias = self.name("v")
            return f"(VALUES (1, 1, 2, 'x'), (2, 3, NULL, 'y')) AS {alias}(id, a, b, s)", alias
        if depth < 3 and self.rng.random() < 0.35:
            alias = self.name("d")
            return f"({self.query(depth + 1)}) AS {alias}", alias
        table = self.free.pop()
        return table, table

    def select(self, depth: int) -> str:
        first, alias = self.source(depth)
        aliases = [alias]
        text = first
        usable = [alias]
        while self.rng.random() < 0.45 and len(aliases) < 4:
            item, alias = self.source(depth)
            kind = self.rng.choice(
                ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"]
            )
            on = " AND ".join(
                [
                    f"{self.rng.choice(usable)}.{self.rng.choice('ab')} = {alias}.{self.rng.choice('ab')}",
                    *(self.condition([*usable, alias]) for _ in range(self.rng.choice([0, 0, 1, 2]))),
                ]
            )
            text += f" {kind} {item} ON {on}"
            aliases.append(alias)
            if kind not in ("SEMI JOIN", "ANTI JOIN"):
                usable.append(alias)
        where = " AND ".join(self.condition(usable) for _ in range(self.rng.choice([0, 1, 1, 2])))
        return self.finished(text, usable, where, depth)

    def finished(self, from_: str, aliases: list[str], where: str, depth: int) -> str:
        one, other = self.rng.choice(aliases), self.rng.choice(aliases)
        tail = f" WHERE {where}" if where else ""
        shape = self.rng.random()
        if shape < 0.15:
            having = self.rng.choice(
                ["", f" HAVING {one}.a = 1", f" HAVING count(*) > 1 AND {one}.a <= 2", " HAVING max(1) = 1"]
            )
            columns = f"max({one}.id) AS id, {one}.a AS a, count({other}.b)::INT AS b, max({other}.s) AS s"
            return f"SELECT {columns} FROM {from_}{tail} GROUP BY {one}.a{having}"
        if shape < 0.25:
            window = self.rng.choice(
                [f"PARTITION BY {one}.a", f"PARTITION BY {one}.a, {one}.s", f"PARTITION BY {one}.b"]
            )
            columns = f"max({other}.id) OVER ({window}) AS id, {one}.a AS a, {one}.b AS b, {one}.s AS s"
            return f"SELECT {columns} FROM {from_}{tail}"
        if shape < 0.3 and len(aliases) == 1:
            return f"SELECT * FROM {from_}{tail}"
        columns = f"{one}.id AS id, {one}.a AS a, {other}.b AS b, {one}.s AS s"
        if shape < 0.4:
            columns = f"{one}.id AS id, coalesce({one}.a, 1) AS a, {other}.b AS b, coalesce({other}.s, 'x') AS s"
        if shape < 0.5:
            limit = self.rng.choice(["LIMIT 2", "LIMIT 3 OFFSET 1", "OFFSET 1"])
            keys = ", ".join(f"{alias}.{column}" for alias in aliases for column in COLUMNS)
            return f"(SELECT {columns} FROM {from_}{tail} ORDER BY {keys} {limit})"
        distinct = "DISTINCT " if shape > 0.9 else ""
        return f"SELECT {distinct}{columns} FROM {from_}{tail}"

    def condition(self, aliases: list[str]) -> str:
        kind = self.rng.random()
        if kind < 0.15:
            return f"({self.condition(aliases)} OR {self.condition(aliases)})"
        if kind < 0.22:
            return f"({self.condition(aliases)} AND {self.condition(aliases)})"
        if kind < 0.32:
            return f"NOT ({self.condition(aliases)})"
        if kind < 0.42 and self.free:
            return self.subquery(aliases)
        return self.leaf(aliases)

    def subquery(self, aliases: list[str]) -> str:
        table = self.free.pop()
        outer = f"{self.rng.choice(aliases)}.a"
        inner = self.condition([table])
        return self.rng.choice(
            [
                f"EXISTS (SELECT 1 FROM {table} WHERE {table}.a = {outer} AND {inner})",
                f"NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.b = {outer} AND {inner})",
                f"{outer} IN (SELECT {table}.a FROM {table} WHERE {inner})",
                f"{outer} NOT IN (SELECT {table}.b FROM {table} WHERE {inner})",
                f"{outer} > (SELECT min({table}.a) FROM {table} WHERE {inner})",
            ]
        )

    def leaf(self, aliases: list[str]) -> str:
        one, other = (f"{self.rng.choice(aliases)}.{self.rng.choice('ab')}" for _ in range(2))
        text = f"{self.rng.choice(aliases)}.s"
        number, another = self.rng.choice([1, 2, 3]), self.rng.choice([1, 2, 3])
        return self.rng.choice(
            [
                f"{one} = {number}",
                f"{one} > {number}",
                f"{one} <> {number}",
                f"{one} <= {other}",
                f"{one} = {other}",
                f"{one} IN ({number}, {another})",
                f"{one} NOT IN ({number}, {another})",
                f"{one} IS NULL",
                f"{one} IS NOT NULL",
                f"coalesce({one}, {number}) = {another}",
                f"{one} IS DISTINCT FROM {number}",
                f"{one} BETWEEN {number} AND {another}",
                f"{one} + {other} > {number}",
                f"{text} = 'x'",
                f"{text} LIKE 'x%'",
                f"length({text}) = 1",
                f"({one} = {number}) IS NULL",
                f"CASE WHEN {one} = {number} THEN {other} = {another} ELSE {text} = 'x' END",
                "false",
                "1 = 1",
            ]
        )

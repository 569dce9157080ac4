"""Substitution parameters of the 22 TPC-H query templates, after clause 2.4 of the TPC-H specification (revision 3).

Every parameter has a finite domain written out in full and in a fixed order. Uniform streams choose from it as the
specification says; skewed streams choose by rank after Zipf, as in the dissertation's TPC-H Skewed (section 3.7.2),
where dates stay uniform.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

Parameters = dict[str, str]
"""Parameter name to the text that replaces it in the template."""

T = TypeVar("T")

NATIONS: tuple[tuple[str, str], ...] = (
    ("ALGERIA", "AFRICA"),
    ("ARGENTINA", "AMERICA"),
    ("BRAZIL", "AMERICA"),
    ("CANADA", "AMERICA"),
    ("EGYPT", "MIDDLE EAST"),
    ("ETHIOPIA", "AFRICA"),
    ("FRANCE", "EUROPE"),
    ("GERMANY", "EUROPE"),
    ("INDIA", "ASIA"),
    ("INDONESIA", "ASIA"),
    ("IRAN", "MIDDLE EAST"),
    ("IRAQ", "MIDDLE EAST"),
    ("JAPAN", "ASIA"),
    ("JORDAN", "MIDDLE EAST"),
    ("KENYA", "AFRICA"),
    ("MOROCCO", "AFRICA"),
    ("MOZAMBIQUE", "AFRICA"),
    ("PERU", "AMERICA"),
    ("CHINA", "ASIA"),
    ("ROMANIA", "EUROPE"),
    ("SAUDI ARABIA", "MIDDLE EAST"),
    ("VIETNAM", "ASIA"),
    ("RUSSIA", "EUROPE"),
    ("UNITED KINGDOM", "EUROPE"),
    ("UNITED STATES", "AMERICA"),
)
"""Nation and its region, in the order of nation keys (clause 4.2.3)."""

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
SHIP_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPE_SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
TYPES = tuple(f"{a} {b} {c}" for a in TYPE_SYLLABLES[0] for b in TYPE_SYLLABLES[1] for c in TYPE_SYLLABLES[2])
TYPE_PREFIXES = tuple(f"{a} {b}" for a in TYPE_SYLLABLES[0] for b in TYPE_SYLLABLES[1])
CONTAINERS = tuple(
    f"{a} {b}"
    for a in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
BRANDS = tuple(f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6))
COUNTRY_CODES = tuple(str(key + 10) for key in range(len(NATIONS)))
_COLOR_WORDS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse
chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest
frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light
lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale
papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky
slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow
"""
COLORS = tuple(_COLOR_WORDS.split())
COMMENT_WORDS = (
    ("special", "pending", "unusual", "express"),
    ("packages", "requests", "accounts", "deposits"),
)
YEARS = tuple(f"{year}-01-01" for year in range(1993, 1998))


def months(first: str, last: str) -> tuple[str, ...]:
    """Return the first day of every month from `first` to `last`, both written as year-month.

    >>> months("1994-11", "1995-01")
    ('1994-11-01', '1994-12-01', '1995-01-01')
    """
    first_month, last_month = (int(text[:4]) * 12 + int(text[5:]) - 1 for text in (first, last))
    return tuple(f"{month // 12}-{month % 12 + 1:02d}-01" for month in range(first_month, last_month + 1))


@dataclass(frozen=True, slots=True)
class Chooser:
    """Choose parameter values: uniformly, or by Zipf rank with factor `skew` where the value is not a date.

    Which values are the popular ones is decided by `ranking_seed`, so that training and test streams share them.
    """

    rng: random.Random
    skew: float = 0.0
    ranking_seed: str = ""

    def date(self, values: Sequence[str]) -> str:
        """Choose a date; dates are uniform in every stream."""
        return self.rng.choice(values)

    def one(self, domain: str, values: Sequence[T]) -> T:
        """Choose one value of a named domain."""
        return self.distinct(domain, values, 1)[0]

    def distinct(self, domain: str, values: Sequence[T], count: int) -> list[T]:
        """Choose `count` different values of a named domain, one after the other without returning any."""
        if not self.skew:
            return self.rng.sample(list(values), count)
        ranked = list(values)
        random.Random(f"{self.ranking_seed}/{domain}").shuffle(ranked)
        weights = [1 / rank**self.skew for rank in range(1, len(ranked) + 1)]
        chosen = []
        for _ in range(count):
            sums = list(accumulate(weights))
            point = self.rng.random() * sums[-1]
            place = next((i for i, upto in enumerate(sums) if point < upto), len(sums) - 1)
            chosen.append(ranked.pop(place))
            weights.pop(place)
        return chosen


def _quoted(values: Sequence[object]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _two_nations(choose: Chooser) -> Parameters:
    first, second = choose.distinct("nation", NATIONS, 2)
    return {"NATION1": first[0], "NATION2": second[0]}


def _nation_and_its_region(choose: Chooser) -> Parameters:
    nation, region = choose.one("nation", NATIONS)
    return {"NATION": nation, "REGION": region, "TYPE": choose.one("type", TYPES)}


def _two_modes(choose: Chooser) -> Parameters:
    first, second = choose.distinct("shipmode", SHIP_MODES, 2)
    return {"SHIPMODE1": first, "SHIPMODE2": second, "DATE": choose.date(YEARS)}


def _nation(choose: Chooser) -> str:
    return choose.one("nation", NATIONS)[0]


def _number(choose: Chooser, domain: str, first: int, last: int) -> str:
    return str(choose.one(domain, range(first, last + 1)))


RULES: dict[str, Callable[[Chooser, float], Parameters]] = {
    "q1": lambda c, sf: {"DELTA": _number(c, "delta", 60, 120)},
    "q2": lambda c, sf: {
        "SIZE": _number(c, "size", 1, 50),
        "TYPE": c.one("type3", TYPE_SYLLABLES[2]),
        "REGION": c.one("region", REGIONS),
    },
    "q3": lambda c, sf: {
        "SEGMENT": c.one("segment", SEGMENTS),
        "DATE": c.date([f"1995-03-{day:02d}" for day in range(1, 32)]),
    },
    "q4": lambda c, sf: {"DATE": c.date(months("1993-01", "1997-10"))},
    "q5": lambda c, sf: {"REGION": c.one("region", REGIONS), "DATE": c.date(YEARS)},
    "q6": lambda c, sf: {
        "DATE": c.date(YEARS),
        "DISCOUNT": f"0.0{_number(c, 'discount', 2, 9)}",
        "QUANTITY": _number(c, "quantity6", 24, 25),
    },
    "q7": lambda c, sf: _two_nations(c),
    "q8": lambda c, sf: _nation_and_its_region(c),
    "q9": lambda c, sf: {"COLOR": c.one("color", COLORS)},
    "q10": lambda c, sf: {"DATE": c.date(months("1993-02", "1995-01"))},
    "q11": lambda c, sf: {"NATION": _nation(c), "FRACTION": f"{0.0001 / sf:.12f}"},
    "q12": lambda c, sf: _two_modes(c),
    "q13": lambda c, sf: {
        "WORD1": c.one("word1", COMMENT_WORDS[0]),
        "WORD2": c.one("word2", COMMENT_WORDS[1]),
    },
    "q14": lambda c, sf: {"DATE": c.date(months("1993-01", "1997-12"))},
    "q15": lambda c, sf: {"DATE": c.date(months("1993-01", "1997-10"))},
    "q16": lambda c, sf: {
        "BRAND": c.one("brand", BRANDS),
        "TYPE": c.one("type12", TYPE_PREFIXES),
        "SIZES": ", ".join(map(str, c.distinct("size", range(1, 51), 8))),
    },
    "q17": lambda c, sf: {"BRAND": c.one("brand", BRANDS), "CONTAINER": c.one("container", CONTAINERS)},
    "q18": lambda c, sf: {"QUANTITY": _number(c, "quantity18", 312, 315)},
    "q19": lambda c, sf: {
        "QUANTITY1": _number(c, "quantity19a", 1, 10),
        "QUANTITY2": _number(c, "quantity19b", 10, 20),
        "QUANTITY3": _number(c, "quantity19c", 20, 30),
        "BRAND1": c.one("brand", BRANDS),
        "BRAND2": c.one("brand", BRANDS),
        "BRAND3": c.one("brand", BRANDS),
    },
    "q20": lambda c, sf: {"COLOR": c.one("color", COLORS), "DATE": c.date(YEARS), "NATION": _nation(c)},
    "q21": lambda c, sf: {"NATION": _nation(c)},
    "q22": lambda c, sf: {"CODES": _quoted(c.distinct("countrycode", COUNTRY_CODES, 7))},
}
"""The rule of each template: a chooser and the scale factor in, the parameters of one query out."""

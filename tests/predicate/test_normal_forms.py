"""The canonical form, by golden pairs: `normal_forms.txt` has the filters, the text that each must have, and why."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skipstone.errors import SkipstoneError
from skipstone.predicate.literal import Conjunction, Opaque
from skipstone.predicate.normalising import MAX_PREDICATES
from skipstone.predicate.parsing import parse_filter
from skipstone.predicate.printing import sql

SCHEMA = pa.schema(
    [
        ("price", pa.decimal128(9, 2)),
        ("quantity", pa.int32()),
        ("big", pa.int64()),
        ("rate", pa.float64()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("clock", pa.timestamp("us")),
        ("moment", pa.timestamp("us", "UTC")),
        ("gift", pa.bool_()),
        ("first name", pa.string()),
        ("address", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("marks", pa.list_(pa.int32())),
        ("json", pa.string()),
    ]
)
parse = functools.partial(parse_filter, schema=SCHEMA)


@dataclasses.dataclass(frozen=True)
class Entry:
    """Filters that say the same thing, and the one text for it."""

    line: int
    reason: str
    filters: tuple[str, ...]
    text: str


def entries() -> Iterator[Entry]:
    reason = ""
    filters: list[str] = []
    for number, line in enumerate((Path(__file__).parent / "normal_forms.txt").read_text().splitlines(), start=1):
        if line.startswith("-- "):
            reason = line[3:]
        elif line.startswith("=> "):
            assert reason, f"line {number} has no reason"
            assert filters, f"line {number} has no filter"
            yield Entry(number, reason, tuple(filters), line[3:])
            reason, filters = "", []
        elif line and not line.startswith(("#", "==")):
            filters.append(line)
    assert not filters, "the last entry has no canonical text"


ENTRIES = tuple(entries())


def test_there_are_several_dozens_of_them_and_no_text_is_there_twice_by_mistake() -> None:
    assert len(ENTRIES) > 70
    assert len([filter_ for entry in ENTRIES for filter_ in entry.filters]) > 130


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"line {entry.line}: {entry.reason}")
def test_the_canonical_form(entry: Entry) -> None:
    for filter_ in entry.filters:
        assert sql(parse(filter_)) == entry.text, f"{filter_} ({entry.reason})"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"line {entry.line}")
def test_filters_that_say_the_same_are_equal_values_and_their_text_is_read_back(entry: Entry) -> None:
    values = {parse(filter_) for filter_ in entry.filters}
    assert len(values) == 1, entry.reason
    (value,) = values
    if not is_carried_past_the_bound(value):
        assert parse(entry.text) == value, "the canonical text says the same when it is read"


def is_carried_past_the_bound(filter_: Conjunction) -> bool:
    """A carried disjunction is read as a disjunction again, and what all of its alternatives say with it twice."""
    return any(isinstance(one, Opaque) and " OR " in one.text for part in filter_ for one in part.literals)


def alternatives(count: int, conditions: int) -> str:
    """A disjunction of conjunctions that share no expression, so that nothing can be taken out."""
    return " OR ".join(
        "(" + " AND ".join(f"length(concat(name, '{i}{j}')) = {j}" for j in range(conditions)) + ")"
        for i in range(count)
    )


@pytest.mark.parametrize(("count", "conditions"), [(2, 8), (3, 4), (6, 2)])
def test_an_or_of_ands_is_distributed_up_to_the_bound(count: int, conditions: int) -> None:
    found = parse(alternatives(count, conditions))
    assert len(found) == conditions**count <= MAX_PREDICATES
    assert all(len(part.literals) == count for part in found)


@pytest.mark.parametrize(("count", "conditions"), [(2, 9), (4, 3), (7, 2), (40, 40)])
def test_past_the_bound_it_is_one_opaque_literal(count: int, conditions: int) -> None:
    found = parse(alternatives(count, conditions))
    assert len(found) == 1
    (literal,) = found.predicates[0].literals
    assert isinstance(literal, Opaque)
    assert literal.deterministic
    assert literal.columns == {"name"}
    assert parse(alternatives(count, conditions)) == found, "the same filter gives the same value"


@pytest.mark.parametrize(
    "text",
    [
        "rand() < 0.5", "rand(7) < 0.5", "uuid() = name", "name = current_user()", "session_user() = name",
        "day = current_date()", "day > current_date - interval 7 days", "moment < now()", "moment < current_timestamp",
        "date_sub(current_date(), 1) = day", "unix_timestamp() > big", "monotonically_increasing_id() < 5",
        "input_file_name() = name", "shuffle(marks) = marks", "name = current_timezone()", "spark_partition_id() = 1",
        "my_udf(name, rand()) = 1", "CASE WHEN rand() < 0.5 THEN gift END", "name LIKE concat(uuid(), '%')",
        "quantity IN (1, rand())", "random() < 0.5", "randn() < 0.5", "name = version()", "name = current_catalog()",
        "clock > localtimestamp()",
    ],
)  # fmt: skip
def test_c22_what_depends_on_more_than_the_row_is_recognised(text: str) -> None:
    found = parse(text)
    assert not found.is_deterministic
    for around in (f"NOT ({text})", f"quantity = 1 OR {text}", f"quantity = 1 AND ({text})"):
        assert not parse(around).is_deterministic
    certain = [part for part in parse(f"quantity = 1 AND {text}") if part.is_deterministic]
    assert [sql(part) for part in certain] == ["quantity = 1"], "the rest of the filter can be used"


@pytest.mark.parametrize(
    "text", ["my_udf(name) > 5", "unix_timestamp(clock) > 5", "CASE WHEN gift THEN quantity = 1 END"]
)
def test_what_is_not_understood_but_depends_on_the_row_alone_is_deterministic(text: str) -> None:
    assert parse(text).is_deterministic


def test_literals_of_a_thousand_alternatives_are_gathered_at_once() -> None:
    found = parse(" OR ".join(f"quantity = {number}" for number in range(3000)))
    assert len(found) == 1
    assert sql(found).startswith("quantity >= 0") or sql(found).startswith("quantity IN (0, 1, 2,")


def test_a_filter_nested_more_deeply_than_can_be_read_is_refused_and_not_a_crash() -> None:
    with pytest.raises(SkipstoneError, match="nested too deeply"):
        parse("(" * 5000 + "quantity = 1" + ")" * 5000)
    with pytest.raises(SkipstoneError, match="nested too deeply"):
        parse("NOT " * 20_000 + "gift")

"""The other papers' workloads have the shapes that the papers print, and every query of theirs runs."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from bench.workloads import big_data, fragment_skipper, hostile, replay, sdss

VISITS_SCALE = 0.0002
STAR_SCALE = 0.0005


@pytest.fixture(scope="module")
def visits() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    place = big_data.visits(VISITS_SCALE)
    connection.execute(f"create view visits as select * from read_parquet('{place}/*.parquet')")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def star() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    place = sdss.star(STAR_SCALE)
    connection.execute(f"create view star as select * from read_parquet('{place}/*.parquet')")
    yield connection
    connection.close()


def test_fragment_skipper_knows_thirteen_columns_of_lineitem(duck: duckdb.DuckDBPyConnection) -> None:
    facts = fragment_skipper.column_facts(duck)
    assert len(facts) == 13
    assert not {fact.name for fact in facts} & set(fragment_skipper.LEFT_OUT)
    strings = {fact.name for fact in facts if isinstance(fact, fragment_skipper.ColumnValues)}
    assert strings == {"l_returnflag", "l_linestatus", "l_shipinstruct", "l_shipmode"}


def test_fragment_skipper_queries_run_and_repeat(duck: duckdb.DuckDBPyConnection) -> None:
    facts = fragment_skipper.column_facts(duck)
    made = fragment_skipper.queries(facts, seed=3)
    assert len(made) == 330
    assert made == fragment_skipper.queries(facts, seed=3)
    assert set(made) != set(fragment_skipper.queries(facts, seed=3, stream="test"))
    for query in made[:60]:
        assert len(duck.sql(query.sql).fetchall()) == 1


def test_fragment_skipper_queries_share_enough_filters_for_the_support_of_the_paper(
    duck: duckdb.DuckDBPyConnection,
) -> None:
    made = fragment_skipper.queries(fragment_skipper.column_facts(duck), seed=3)
    shared = Counter(term for query in made for term in query.sql.split(" where ")[1].split(" and "))
    assert shared.most_common(1)[0][1] >= fragment_skipper.SUPPORT_IN_THE_PAPER


def test_visits_have_eleven_columns(visits: duckdb.DuckDBPyConnection) -> None:
    assert tuple(row[0] for row in visits.sql("describe visits").fetchall()) == big_data.COLUMNS
    assert visits.sql("select count(*) from visits").fetchall() == [(30_000,)]


def test_everything_about_a_page_follows_from_its_url(visits: duckdb.DuckDBPyConnection) -> None:
    assert visits.sql(
        "select count(*) from (select page_url from visits group by 1 "
        "having count(distinct page_rank) > 1 or count(distinct avg_duration) > 1)"
    ).fetchall() == [(0,)]


@pytest.mark.parametrize("selectivity", [0.1, 0.2, 0.5])
def test_filters_of_the_pool_keep_the_wanted_share(visits: duckdb.DuckDBPyConnection, selectivity: float) -> None:
    pool = big_data.filter_pool(visits, selectivity, seed=1)
    assert len(pool) >= 20
    for where in pool[:15]:
        [(share,)] = visits.sql(f"select avg(({where})::int) from visits").fetchall()
        assert share == pytest.approx(selectivity, abs=big_data.SELECTIVITY_TOLERANCE)


def test_the_four_knobs_turn(visits: duckdb.DuckDBPyConnection) -> None:
    pool = big_data.filter_pool(visits, 0.2, seed=1)
    narrow = big_data.queries(pool, big_data.Knobs(columns=3, templates=2), 200, seed=1)
    assert len({query.sql.split(" from ")[0] for query in narrow}) == 2
    assert all(query.sql.split(" from ")[0].count(",") == 2 for query in narrow)
    popular = [
        Counter(
            query.sql.split(" where ")[1] for query in big_data.queries(pool, big_data.Knobs(skew=skew), 400, seed=1)
        ).most_common(1)[0][1]
        for skew in (0.0, 1.1, 2.5)
    ]
    assert popular[0] < popular[1] < popular[2]
    assert visits.sql(narrow[0].sql).fetchall()


def test_visit_streams_share_their_pool_and_not_their_queries(visits: duckdb.DuckDBPyConnection) -> None:
    pool = big_data.filter_pool(visits, 0.2, seed=1)
    train = big_data.queries(pool, big_data.Knobs(), seed=1)
    test = big_data.queries(pool, big_data.Knobs(), seed=1, stream="test")
    assert train != test
    assert {query.sql.split(" from ")[0] for query in test} <= {query.sql.split(" from ")[0] for query in train}


def test_more_templates_than_there_are_column_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="56 templates of 2 columns were asked for; there are 55 sets of 2 of the 11"):
        big_data.column_templates(2, 56, seed=1)


def test_the_sky_log_has_the_column_statistics_of_the_paper() -> None:
    log = sdss.queries(seed=1)
    sizes = [query.sql.split(" from ")[0].count(",") + 1 for query in log]
    assert len(log) == 2_340
    assert (min(sizes), max(sizes)) == (3, 23)
    assert statistics.mean(sizes) == pytest.approx(13.6, abs=0.3)
    assert statistics.stdev(sizes) == pytest.approx(5.13, abs=0.2)


def test_the_sky_log_concentrates_on_few_columns_and_filters() -> None:
    log = sdss.queries(seed=1)
    used = Counter(column for query in log for column in query.sql.split(" from ")[0][len("select ") :].split(", "))
    assert sum(count for _, count in used.most_common(45)) > 0.75 * used.total(), "a tenth of the columns"
    filters = Counter(query.sql.split(" where ")[1] for query in log)
    assert filters.most_common(1)[0][1] > 0.02 * len(log)


def test_the_sky_log_is_cut_in_time() -> None:
    log = sdss.queries(seed=1)
    train, test = sdss.split(log)
    assert (*train, *test) == log
    assert (len(train), len(test)) == (1_755, 585)


def test_the_sky_log_runs(star: duckdb.DuckDBPyConnection) -> None:
    assert len(star.sql("describe star").fetchall()) == 450
    assert sum(len(star.sql(query.sql).fetchall()) > 0 for query in sdss.queries(60, seed=1)) > 20


def test_no_two_hostile_queries_have_one_filter(duck: duckdb.DuckDBPyConnection) -> None:
    made = hostile.queries(300, seed=1)
    assert len({query.sql for query in made}) == 300
    for query in made[:30]:
        assert len(duck.sql(query.sql).fetchall()) == 1


def test_hostile_filters_keep_rows_everywhere_or_nearly_all(duck: duckdb.DuckDBPyConnection) -> None:
    [(total,)] = duck.sql("select count(*) from denorm").fetchall()
    for query in hostile.queries(30, seed=1):
        [(kept, _)] = duck.sql(query.sql).fetchall()
        if query.template == "wide":
            assert kept > 0.85 * total


def test_every_order_is_inserted_once(duck: duckdb.DuckDBPyConnection) -> None:
    inserts = [event for event in replay.replay(7, 0, seed=1) if isinstance(event, replay.Insert)]
    counted = ", ".join(f"count(*) filter (where {insert.where})" for insert in inserts)
    [(total, *parts)] = duck.sql(f"select count(*), {counted} from denorm").fetchall()
    assert sum(parts) == total
    assert min(parts) > 0


def test_interest_drifts_at_the_stated_place() -> None:
    asked = [event.query.template for event in replay.replay(seed=1) if isinstance(event, replay.Scan)]
    assert len(asked) == 135
    assert set(asked[:68]) == set(replay.BEFORE)
    assert set(asked[68:]) == set(replay.AFTER)


@pytest.mark.parametrize("seed", range(3))
def test_all_queries_parse_in_the_dialect_of_spark(visits: duckdb.DuckDBPyConnection, seed: int) -> None:
    pool = big_data.filter_pool(visits, 0.2, seed=seed)
    everything = [
        *big_data.queries(pool, big_data.Knobs(), 20, seed=seed),
        *sdss.queries(40, seed=seed),
        *hostile.queries(40, seed=seed),
    ]
    for query in everything:
        assert isinstance(sqlglot.parse_one(query.sql, read="spark"), exp.Select)


def test_data_depends_on_the_seed_and_on_nothing_else(tmp_path: Path) -> None:
    def contents(seed: int, root: Path) -> list[bytes]:
        places = (big_data.visits(0.00001, seed, root), sdss.star(0.0001, seed, root))
        return [file.read_bytes() for place in places for file in sorted(place.glob("*.parquet"))]

    first, again, other = contents(1, tmp_path / "a"), contents(1, tmp_path / "b"), contents(2, tmp_path / "a")
    assert first == again
    assert first != other

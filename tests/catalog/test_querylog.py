"""Queries are remembered in order, by any number of writers, and forgotten on request; one suite for both logs."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

import skipstone.catalog.querylog as querylog_module
from skipstone.catalog.location import Location
from skipstone.catalog.querylog import LoggedQuery, MemoryQueryLog, NativeQueryLog, QueryLog
from skipstone.errors import StorageFailed

NOON = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(params=["memory", "native"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> QueryLog:
    return MemoryQueryLog() if request.param == "memory" else NativeQueryLog(Location.at(tmp_path))


def query(minutes: int) -> LoggedQuery:
    return LoggedQuery(NOON + timedelta(minutes=minutes), f"SELECT {minutes} -- 'é'", minutes)


def test_an_empty_log_has_no_queries(log: QueryLog) -> None:
    log.append([])
    assert log.read() == ()
    assert log.forget(NOON) == 0


def test_everything_said_of_a_query_is_found_again(log: QueryLog) -> None:
    full = LoggedQuery(NOON, "SELECT a", 3, ("a", "b"), "a > 1", "t1", 1, 2, 30, 40, 60, 7000, 0.25)
    log.append([full])
    assert log.read() == (full,)


def test_queries_come_back_in_the_order_in_which_they_were_asked(log: QueryLog) -> None:
    log.append([query(5), query(1)])
    log.append([query(3)])
    assert log.read() == (query(1), query(3), query(5))
    assert log.read(NOON + timedelta(minutes=3)) == (query(3), query(5))


def test_old_queries_are_forgotten_on_request(log: QueryLog) -> None:
    log.append([query(1), query(2), query(3)])
    assert log.forget(query(3).asked_at) == 2
    assert log.read() == (query(3),)


def test_many_appends_end_up_in_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querylog_module, "APPENDS_PER_FILE", 4)
    log = NativeQueryLog(Location.at(tmp_path))
    for minutes in range(9):
        log.append([query(minutes)])
    assert len(log.read()) == 9
    assert len(DeltaTable(str(tmp_path / "_skipstone" / "queries")).file_uris()) == 2


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    NativeQueryLog(Location.at(tmp_path)).append([query(0)])

    def work(number: int) -> None:
        log = NativeQueryLog(Location.at(tmp_path))
        for turn in range(3):
            log.append([query(10 * number + turn)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(NativeQueryLog(Location.at(tmp_path)).read()) == 13


def test_storage_that_fails_is_said_to_have_failed(tmp_path: Path) -> None:
    (tmp_path / "_skipstone").write_text("a file where a directory must be")
    with pytest.raises(StorageFailed, match=r"the query log at .* could not be written"):
        NativeQueryLog(Location.at(tmp_path)).append([query(1)])

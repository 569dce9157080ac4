"""T and numFeat chosen by cross-validation: worlds in which one choice is right, and logs that tell nothing."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pyarrow as pa
import pytest

from skipstone.predicate.parsing import parse_filter
from skipstone.workload.choosing import (
    FEATURE_COUNTS,
    FEWEST_REQUESTS,
    MIN_SUPPORTS,
    Choice,
    MiningSettings,
    choose_settings,
)
from skipstone.workload.query import Query
from skipstone.workload.reading import Arrivals

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string()), ("day", pa.date32())])


def chosen(filters: list[str], *, with_times: bool = True, settings: MiningSettings | None = None) -> Choice:
    """Choose for requests with these filters, in this order."""
    places = {text: number for number, text in enumerate(dict.fromkeys(filters))}
    queries = [Query(("a",), parse_filter(text, SCHEMA)) for text in places]
    order = np.array([places[text] for text in filters], dtype=np.int32)
    times = np.arange(len(filters), dtype=np.float64) if with_times else None
    return choose_settings(queries, Arrivals(order, np.ones(len(filters)), times), settings)


def test_few_filters_that_recur_need_few_features() -> None:
    """Four filters for ever: five features of any support serve the future in full, so the least is taken."""
    choice = chosen([f"s = '{'wxyz'[number % 4]}'" for number in range(200)])
    assert (choice.settings.max_features, choice.settings.min_support) == (5, 0.1)
    assert choice.reason == (
        "of 54 pairs tried on later requests, up to 5 features of 10.0% of the requests or more serve 100.0%; "
        "no pair serves more than 100.0%"
    )


def test_many_filters_that_recur_need_many_features_and_a_low_support() -> None:
    """Sixty filters, each in 1.7 % of the requests: a support of 2 % finds none of them, five features too few."""
    filters = [f"a = {number}" for number in range(60)] * 10
    random.Random(1).shuffle(filters)
    choice = chosen(filters)
    assert choice.settings.max_features == 75
    assert choice.settings.min_support <= 0.01
    best = max(choice.trials, key=lambda trial: trial.served)
    taken = next(
        trial
        for trial in choice.trials
        if (trial.min_support, trial.max_features) == (choice.settings.min_support, choice.settings.max_features)
    )
    assert taken.served >= best.served - taken.doubt - 1e-9


def test_conditions_that_are_never_asked_again_earn_no_features() -> None:
    """Half of each filter recurs and half is new every time: what recurs is enough, however much room there is."""
    choice = chosen([f"s = '{'xy'[number % 2]}' AND a = {number}" for number in range(300)])
    assert choice.settings.max_features == 5
    assert max(trial.served for trial in choice.trials) == pytest.approx(0.75), "subsumed, and half of it stated"


def test_with_times_the_past_serves_the_future_and_not_the_other_way_round() -> None:
    """A new filter in every fifth of the log: the past knows none of it. Without times, requests are mixed."""
    filters = [f"a = {number // 40}" for number in range(200)]
    assert all(trial.served == 0.0 for trial in chosen(filters).trials)
    mixed = chosen(filters, with_times=False)
    assert max(trial.served for trial in mixed.trials) == 1.0
    assert "tried on requests kept from the mining" in mixed.reason


def test_where_nothing_recurs_the_settings_stay() -> None:
    given = MiningSettings(min_support=0.03, max_features=7)
    choice = chosen([f"a = {number}" for number in range(100)], settings=given)
    assert choice.settings == given
    assert choice.reason == "no features served any of the later requests, so the settings stay as they were"


def test_a_short_log_is_not_asked() -> None:
    given = MiningSettings(max_features=9)
    choice = chosen(["a = 1"] * (FEWEST_REQUESTS - 1), settings=given)
    assert (choice.settings, choice.trials) == (given, ())
    assert choose_settings([], Arrivals(np.zeros(0, np.int32), np.zeros(0))).trials == ()


def test_requests_without_a_condition_that_can_become_a_feature_do_not_count() -> None:
    """Dates change with the calendar; they are no reason for more features, and no failure of those there are."""
    filters = [f"day = date'2024-01-01' + interval {number} day" for number in range(100)]
    assert chosen(filters).trials == ()
    both = [text for day in filters for text in (day, "s = 'x'")]
    assert max(trial.served for trial in chosen(both).trials) == 1.0


def test_what_else_is_asked_for_is_kept() -> None:
    given = MiningSettings(exclude=("a",), exclude_dates=False)
    choice = chosen([f"s = '{'wxyz'[number % 4]}' AND a = {number}" for number in range(200)], settings=given)
    assert dataclasses.replace(choice.settings, min_support=given.min_support, max_features=given.max_features) == given
    assert max(trial.served for trial in choice.trials) == 1.0, "conditions on an excluded column are not asked for"


def test_every_pair_is_tried_once_and_more_features_never_serve_less() -> None:
    choice = chosen([f"a > {number % 17} AND s = '{'xyz'[number % 3]}'" for number in range(150)])
    assert [(trial.min_support, trial.max_features) for trial in choice.trials] == [
        (support, count) for support in MIN_SUPPORTS for count in FEATURE_COUNTS
    ]
    for support in MIN_SUPPORTS:
        served = [trial.served for trial in choice.trials if trial.min_support == support]
        assert served == sorted(served)
    assert min(trial.loss for trial in choice.trials) == 0.0

"""The cost model and the seek profiles."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.errors import InvalidInput
from skipstone.layout.columns.cost import order_cost
from skipstone.layout.columns.problem import ColumnProblem, GroupedProblem
from skipstone.layout.columns.seek import (
    LinearSeek,
    ObjectStoreSeek,
    PiecewiseSeek,
    PowerSeek,
    SeekProfile,
    seek_costs,
    seek_profile,
)
from tests.layout.columns.worlds import PROFILES, plain_cost, problems


@settings(deadline=None)
@given(problems(), st.sampled_from(PROFILES), st.randoms(use_true_random=False))
def test_the_cost_of_an_order_is_what_the_definitions_say(
    problem: ColumnProblem, profile: SeekProfile, random: Random
) -> None:
    order = list(range(len(problem.sizes)))
    random.shuffle(order)
    assert order_cost(problem, order, profile) == pytest.approx(plain_cost(problem, order, profile))


@settings(deadline=None)
@given(problems())
def test_groups_hold_every_column_once_and_share_their_readers(problem: ColumnProblem) -> None:
    grouped = GroupedProblem.of(problem)
    assert sorted(grouped.columns_of(range(len(grouped.groups)))) == list(range(len(problem.sizes)))
    for group in grouped.groups:
        readers = [{q for q, reads in enumerate(problem.reads) if column in reads} for column in group]
        assert all(found == readers[0] and found for found in readers), "A group's columns have the same readers"


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_no_gap_costs_nothing_and_a_gap_costs_something(profile: SeekProfile) -> None:
    assert seek_costs(profile, np.array([0.0]))[0] == 0.0
    assert (seek_costs(profile, np.array([0.1, 48.0, 1e5, 1e8])) > 0.0).all()


def test_power_is_the_function_that_the_authors_publish() -> None:
    costs = seek_costs(PowerSeek(), np.array([1.0, 1e6, 36e6, 36e6 + 1, 1e9]))
    expected = [0.005, 5.0, 30.0, 29.805, 32.697]
    assert costs == pytest.approx(expected, abs=1e-6)


def test_an_object_store_reads_short_gaps_through_and_asks_again_for_long_ones() -> None:
    profile = ObjectStoreSeek(request_milliseconds=40.0, megabytes_per_second=100.0, coalesced_bytes=1e6)
    assert seek_costs(profile, np.array([1e6, 1e6 + 1, 1e9])) == pytest.approx([10.0, 40.0, 40.0])


def test_a_measured_profile_is_straight_between_points_and_flat_beyond() -> None:
    profile = PiecewiseSeek(((1000.0, 2.0), (3000.0, 6.0)))
    assert seek_costs(profile, np.array([500.0, 1000.0, 2000.0, 9e9])) == pytest.approx([1.0, 2.0, 4.0, 6.0])


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    profile = PiecewiseSeek(((0.0, 0.1), (51_200.0, 1 / 3)))
    profile.write(tmp_path / "seek.tsv")
    assert seek_profile(str(tmp_path / "seek.tsv")).compiled().ys.tolist() == [0.1, 1 / 3]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1000 2.0\n", "line 1: '1000 2.0' is not a distance in bytes, a tab and milliseconds"),
        ("1000\t2.0\n1000\t3.0\n", "line 2: distances must grow from point to point; 1000 follows 1000"),
        ("1000\tnan\n", "line 1: the point 1000 bytes, nan ms is not two numbers of 0 or more"),
        ("\n\n", "no point in it"),
    ],
)
def test_a_bad_profile_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "seek.tsv"
    file.write_text(text)
    with pytest.raises(InvalidInput) as raised:
        seek_profile(str(file))
    assert str(raised.value).startswith(str(file))
    assert complaint in str(raised.value)


@pytest.mark.parametrize("text", ["object-store:latency=0", "object-store:speed=3", "object-store:gap=x", "powr"])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"latency=MILLISECONDS|There are linear, object-store, power"):
        seek_profile(text)


def test_linear_grows_without_end() -> None:
    assert seek_costs(LinearSeek(), np.array([2e6, 2e12])).tolist() == [2.0, 2e6]
    assert math.isclose(seek_costs(LinearSeek(3.0), np.array([1e6]))[0], 3.0)

"""Every experiment runs in a smoke size, and two runs with one seed count the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare import compare
from bench.experiment import Experiment, all_experiments, experiment_named, run
from bench.experiments.reading import schemas
from bench.render import write_report
from bench.report import MEASURES, Report, read_report
from bench.skipping import requests_of
from bench.tpch.data import DENORM, DENORM_COLUMNS
from bench.tpch.queries import Schema, queries
from skipstone.workload.requests import FrontEnd

NEED_SPARK = ("engines", "walltime", "gsop-walltime", "layout-cost")


def with_marks(experiment: Experiment) -> object:
    marks = [pytest.mark.spark, pytest.mark.xdist_group("spark")] if experiment.name in NEED_SPARK else []
    return pytest.param(experiment, id=experiment.name, marks=marks)


FINISHED: dict[str, Report] = {}
"""Smoke runs of this process, so that no experiment runs more often than a test needs."""


def smoke(experiment: Experiment, out: Path) -> Report:
    return run(experiment, scale=experiment.smoke_scale, seed=3, out=out, smoke=True)


def finished(experiment: Experiment, out: Path) -> Report:
    if experiment.name not in FINISHED:
        FINISHED[experiment.name] = smoke(experiment, out)
    return FINISHED[experiment.name]


@pytest.mark.parametrize("experiment", [with_marks(experiment) for experiment in all_experiments()])
def test_an_experiment_runs_in_a_smoke_size_and_writes_its_report(experiment: Experiment, tmp_path: Path) -> None:
    report = finished(experiment, tmp_path)
    assert (report.experiment, report.seed, report.smoke) == (experiment.name, 3, True)
    assert report.tables, "an experiment measures something"
    assert all(table.lines for table in report.tables)
    written = write_report(report, tmp_path)
    assert read_report(written) == report


@pytest.mark.parametrize("name", ["rivals", "hostile"])
def test_two_runs_with_one_seed_count_the_same(name: str, tmp_path: Path) -> None:
    experiment = experiment_named(name)
    first, second = finished(experiment, tmp_path / "first"), smoke(experiment, tmp_path / "second")
    assert [change for change in compare(first, second) if MEASURES[change.measure].exact] == []


def test_no_rival_reads_fewer_rows_than_match(tmp_path: Path) -> None:
    table = finished(experiment_named("rivals"), tmp_path).table("templates")
    for line in table.lines:
        assert table.value("rows_share", *line.labels) >= table.value("bound_share", *line.labels)


def test_the_workload_reader_and_the_counting_code_see_the_same_columns() -> None:
    """Two readers that share no code agree on what each wide template reads."""
    front = FrontEnd(schemas(0.01))
    for query in queries(tuple(Schema.WIDE.templates), 2, seed=1):
        [theirs] = front.read(query.sql).requests
        [ours] = requests_of(query, DENORM, DENORM_COLUMNS)
        assert set(theirs.columns) == set(ours.columns), query.template

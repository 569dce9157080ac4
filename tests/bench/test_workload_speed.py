"""What the experiments on workloads claim and does not depend on the machine holds in their smoke size as well."""

from __future__ import annotations

from pathlib import Path

from bench.experiment import experiment_named, run
from bench.report import Report


def smoke(name: str, out: Path) -> Report:
    experiment = experiment_named(name)
    return run(experiment, scale=experiment.smoke_scale, seed=5, out=out, smoke=True)


def test_the_features_of_the_eight_templates_subsume_every_query_with_more_than_dates(tmp_path: Path) -> None:
    report = smoke("sop-features", tmp_path)
    templates = report.table("templates")
    assert templates.value("queries", "q3") == 5
    for line in templates.lines:
        assert templates.value("served", *line.labels) == templates.value("beyond_dates", *line.labels), line.labels
    assert sum(templates.value("beyond_dates", *line.labels) for line in templates.lines) == 35, "q14 has dates alone"
    assert all(claim.holds for claim in report.claims)


def test_a_repeated_statement_is_counted_and_not_kept(tmp_path: Path) -> None:
    memory = smoke("workload-speed", tmp_path).table("memory")
    once, often = (line.labels for line in memory.lines)
    assert memory.value("statements", *often) > memory.value("statements", *once)
    assert memory.value("distinct_requests", *often) == memory.value("distinct_requests", *once)

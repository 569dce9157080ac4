"""An experiment as a value, and the list of all of them."""

from __future__ import annotations

import difflib
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.machine import machine
from bench.report import Report

Function = Callable[[float, int, Path, bool], Report]
"""Scale, seed, a directory for what the run leaves behind, and whether this is a smoke run; a report comes back.

A smoke run ends within seconds on the smallest data that still exercises every part; its figures mean nothing.
"""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One command of the benchmarks."""

    name: str
    sentence: str
    paper: str
    """The figure or section that it repeats, empty for a claim of our own."""
    scale: float
    """The scale factor it is meant for."""
    minutes: float
    """Expected duration at that scale on two cores, with the data already generated."""
    function: Function
    smoke_scale: float = 0.01


MODULES = (
    "bench.experiments.rivals",
    "bench.experiments.sop",
    "bench.experiments.clustering_speed",
    "bench.experiments.gsop",
    "bench.experiments.gsop_walltime",
    "bench.experiments.gsop_workloads",
    "bench.experiments.gsopr",
    "bench.experiments.fragment_skipper",
    "bench.experiments.layout_cost",
    "bench.experiments.engines",
    "bench.experiments.other_workloads",
    "bench.experiments.reading",
    "bench.experiments.workload_speed",
    "bench.experiments.planning",
    "bench.experiments.walltime",
    "bench.experiments.wide_reads",
    "bench.experiments.columns",
)
"""Modules with a tuple `EXPERIMENTS`, in the order in which they are listed."""


def all_experiments() -> tuple[Experiment, ...]:
    """Return every experiment; names are unique."""
    found = tuple(experiment for module in MODULES for experiment in importlib.import_module(module).EXPERIMENTS)
    names = [experiment.name for experiment in found]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"two experiments have one name: {', '.join(repeated)}")
    return found


def experiment_named(name: str) -> Experiment:
    """Return one experiment, or an error that suggests the nearest names."""
    known = {experiment.name: experiment for experiment in all_experiments()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(known)}."
    raise LookupError(f"there is no experiment {name!r}. {hint}")


def run(experiment: Experiment, *, scale: float, seed: int, out: Path, smoke: bool) -> Report:
    """Run an experiment in the directory `out` and return its report with machine and duration."""
    out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    report = experiment.function(scale, seed, out, smoke)
    return report.on(machine(), time.perf_counter() - started)

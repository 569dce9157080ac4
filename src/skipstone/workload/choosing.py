"""How rare a feature may be, and how many to keep: chosen by cross-validation on the log's own past.

The dissertation (section 3.3.3) leaves T and numFeat to whoever runs it. A log says itself what they should be: mine
the features of its past, and see how well they serve the requests that came after. Too high a T misses conditions that
recur; too low a T keeps conditions that will not be asked again; beyond some number, further features serve nobody.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skipstone.predicate.literal import Conjunction, Predicate
from skipstone.workload.mining import DEFAULT_MAX_FEATURES, DEFAULT_MIN_SUPPORT, is_minable, mine
from skipstone.workload.query import Feature, Query
from skipstone.workload.reading import Arrivals
from skipstone.workload.subsumption import subsumption

__all__ = ["Choice", "MiningSettings", "Trial", "choose_settings"]

MIN_SUPPORTS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""The T that are tried, as shares of the weight."""

FEATURE_COUNTS = (5, 10, 15, 20, 30, 40, 50, 75, 100)
"""The numFeat that are tried."""

WINDOWS = 5
"""Stretches of the log; each but the first is served by features of all before it."""

FEWEST_REQUESTS = 50
"""A log with fewer requests that have a minable condition tells too little to choose by."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MiningSettings:
    """How features are mined: see `skipstone.workload.mining.mine`."""

    min_support: float = DEFAULT_MIN_SUPPORT
    max_features: int = DEFAULT_MAX_FEATURES
    exclude: tuple[str, ...] = ()
    exclude_dates: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """A pair that was tried: how well its features served requests that they were not mined from, on average.

    `served` is 1 where every request is subsumed by features that say all it says. `loss` is by how much it serves
    less than the best pair, and `doubt` the standard error of that over the folds.
    """

    min_support: float
    max_features: int
    served: float
    loss: float
    doubt: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The settings to use, why, and all that was tried (nothing where the log is too short)."""

    settings: MiningSettings
    reason: str
    trials: tuple[Trial, ...] = ()


def choose_settings(queries: Sequence[Query], arrivals: Arrivals, settings: MiningSettings | None = None) -> Choice:
    """Choose T and numFeat for a log; what else the settings say is kept.

    Where the log has times, the features of its past serve what came next. Without times the order of lines says
    nothing for sure (people sort by template), and every fifth request is kept from the mining in turn.

    Of the pairs that serve as well as the best one, up to one standard error of the difference, the one with the
    fewest features is taken, and of those the one with the highest support (Breiman, Friedman, Olshen and Stone,
    "Classification and Regression Trees", 1984, section 3.4.3).
    """
    settings = settings or MiningSettings()
    minable = _minable_parts(queries, settings)
    useful = np.array([bool(parts) for parts in minable], dtype=np.bool_)
    chosen = useful[arrivals.query] if len(queries) else np.zeros(0, dtype=np.bool_)
    order = arrivals.query[chosen].astype(np.int64)
    weight = arrivals.weight[chosen]
    if order.size < FEWEST_REQUESTS:
        return Choice(
            settings,
            f"only {order.size} requests have a condition that can become a feature; {FEWEST_REQUESTS} are needed to "
            "choose by, so the settings stay as they were",
        )
    folds = list(_folds(order.size, in_time=arrivals.timestamp is not None))
    scores = np.array(
        [
            [_served(support, train, test, order, weight, queries, minable, settings) for support in MIN_SUPPORTS]
            for train, test in folds
        ]
    )
    return _chosen(scores, settings, in_time=arrivals.timestamp is not None)


def _minable_parts(queries: Sequence[Query], settings: MiningSettings) -> list[tuple[Predicate, ...]]:
    excluded = frozenset(settings.exclude)
    known: dict[Predicate, bool] = {}
    for query in queries:
        for predicate in query.filter:
            if predicate not in known:
                known[predicate] = is_minable(predicate, excluded, settings.exclude_dates)
    return [tuple(predicate for predicate in query.filter if known[predicate]) for query in queries]


def _folds(count: int, *, in_time: bool) -> Iterator[tuple[Ints, Ints]]:
    """Places of requests to mine from, and of those to serve."""
    places = np.arange(count)
    if in_time:
        windows = np.array_split(places, WINDOWS)
        for number in range(1, WINDOWS):
            yield np.concatenate(windows[:number]), windows[number]
    else:
        for number in range(WINDOWS):
            kept = places % WINDOWS == number
            yield places[~kept], places[kept]


def _served(
    support: float,
    train: Ints,
    test: Ints,
    order: Ints,
    weight: Floats,
    queries: Sequence[Query],
    minable: Sequence[tuple[Predicate, ...]],
    settings: MiningSettings,
) -> Floats:
    """How well the features of one part of the log serve another part, for each number of features.

    Half of a request counts as served if some feature subsumes it, so that anything can be skipped for it at all; the
    other half by the share of its conditions that such features state as strictly as it does, because a feature that
    says less than the request skips less.
    """
    past = _weighted(order[train], weight[train], queries)
    features = mine(
        past,
        min_support=support,
        max_features=max(FEATURE_COUNTS),
        exclude=settings.exclude,
        exclude_dates=settings.exclude_dates,
    )
    if not features:
        return np.zeros(len(FEATURE_COUNTS))
    future, numbers = np.unique(order[test], return_inverse=True)
    weights = np.bincount(numbers, weights=weight[test])
    first_subsuming, first_stating = _first_features(
        features, [queries[n] for n in future], [minable[n] for n in future]
    )
    found = [
        0.5 * (first_subsuming < count) + 0.5 * np.array([np.mean(places < count) for places in first_stating])
        for count in FEATURE_COUNTS
    ]
    total = weights.sum()
    return np.array([float(one @ weights) / total if total else 0.0 for one in found])


def _weighted(order: Ints, weight: Floats, queries: Sequence[Query]) -> list[Query]:
    """The queries of some requests, with the weight they have there."""
    present, numbers = np.unique(order, return_inverse=True)
    weights = np.bincount(numbers, weights=weight)
    return [
        dataclasses.replace(queries[number], weight=float(own))
        for number, own in zip(present.tolist(), weights.tolist(), strict=True)
    ]


def _first_features(
    features: Sequence[Feature], queries: Sequence[Query], minable: Sequence[tuple[Predicate, ...]]
) -> tuple[Ints, list[Ints]]:
    """For each query the first feature in the list that subsumes it, and for each of its conditions the first of those
    that implies it; the number of all features where there is none."""
    subsumes = subsumption(features, queries)
    conditions = {
        predicate: number for number, predicate in enumerate(dict.fromkeys(p for own in minable for p in own))
    }
    states = subsumption(
        [Conjunction((predicate,)) for predicate in conditions], [Query((), feature.filter) for feature in features]
    )
    stating = [
        _first_true(states[[conditions[predicate] for predicate in own]] & subsumes[:, number])
        for number, own in enumerate(minable)
    ]
    return _first_true(subsumes.T), stating


def _first_true(rows: npt.NDArray[np.bool_]) -> Ints:
    """The place of the first TRUE of each row, else the length of a row."""
    found: Ints = np.where(rows.any(axis=1), rows.argmax(axis=1), rows.shape[1] + max(FEATURE_COUNTS))
    return found


def _chosen(scores: Floats, settings: MiningSettings, *, in_time: bool) -> Choice:
    """Take the least that serves as well as the best; `scores` are by fold, support and number of features."""
    served = scores.mean(axis=0)
    best = np.unravel_index(int(served.argmax()), served.shape)
    losses = scores[:, best[0], best[1]][:, None, None] - scores
    loss, doubt = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(scores))
    trials = tuple(
        Trial(support, count, float(served[i, j]), float(loss[i, j]), float(doubt[i, j]))
        for i, support in enumerate(MIN_SUPPORTS)
        for j, count in enumerate(FEATURE_COUNTS)
    )
    where = "later requests" if in_time else "requests kept from the mining"
    most = max(trials, key=lambda trial: trial.served)
    if not most.served > 0:
        return Choice(settings, f"no features served any of the {where}, so the settings stay as they were", trials)
    good = [trial for trial in trials if trial.loss <= trial.doubt + 1e-12]
    least = min(good, key=lambda trial: (trial.max_features, -trial.min_support))
    reason = (
        f"of {len(trials)} pairs tried on {where}, up to {least.max_features} features of {least.min_support:.1%} "
        f"of the requests or more serve {least.served:.1%}; no pair serves more than {most.served:.1%}"
    )
    chosen = dataclasses.replace(settings, min_support=least.min_support, max_features=least.max_features)
    return Choice(chosen, reason, trials)

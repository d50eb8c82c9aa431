"""`evidence: significant`: what is printed and what is decided agree, at the level that is promised."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from calibration.tables import clopper_pearson
from fakes.planted import COMPARED_WITH_NOTHING, policy_of
from scipy.stats import binom

from fairgate.domain.outcomes import Outcome
from fairgate.gate.compare import rule_results
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table
from fairgate.policy.schema import GatePolicy
from fairgate.stats.interval import confidence_interval
from fairgate.stats.observations import Observations

POLICY = policy_of()
ALPHA = 1 - POLICY.confidence


def beta(rng, rate, icc, size):
    """How sources differ: their own rates, with this mean and correlation of their cases."""
    if icc <= 0:
        return np.full(size, rate)
    spread = (1 - icc) / icc
    return rng.beta(rate * spread, (1 - rate) * spread, size)


def table_of(values, controls):
    """A suite with `values` [G, T] for terms and `controls` [G, C] for control prompts."""
    arms = [(values, False), (controls, True)]
    sources, _terms = values.shape
    wide = [(g, t, each, row[g, t]) for row, each in arms for g, t in np.ndindex(row.shape)]
    column = np.asarray([value for *_, value in wide])
    return Table(
        suite="s",
        keys=[f"s{g}#{each}/{t}" for g, t, each, _ in wide],
        clusters=np.asarray([g for g, *_ in wide], dtype=np.int64),
        cluster_names=[f"s{g}" for g in range(sources)],
        control=np.asarray([each for _, _, each, _ in wide]),
        dimensions={
            "category": ["gender" for _ in wide],
            "term": [f"t{t}" for _, t, *_ in wide],
            "relation": ["set-equivalence" for _ in wide],
        },
        values=dict.fromkeys(("controlled", "generation", "unreadable", "rrs", "overlap"), column),
    )


def judged(table, metric, where=None, **bound):
    gate = GatePolicy.model_validate({"metric": metric, "evidence": "significant", **bound})
    rule = Rule(gate=gate, position=0, metric=METRICS[metric], suite="s", where=where or {})
    [found] = rule_results([rule], {"s": table}, [], COMPARED_WITH_NOTHING, POLICY)
    return found


BOUNDS = {"asr/generation": "max", "retrieval/overlap": "min", "rrs/mean": "max"}


def drawn(rng):
    """A table of any size and correlation, and a rule whose bound is near its value."""
    metric = str(rng.choice(list(BOUNDS)))
    sources, terms, neutral = rng.integers(1, 60), rng.integers(1, 8), rng.integers(1, 4)
    own = beta(rng, rng.choice([0.02, 0.1, 0.3, 0.8]), rng.choice([0, 0.1, 0.5]), sources)
    parts = [
        (rng.random((sources, many)) < own[:, None] * share).astype(float)
        for many, share in ((terms, 1.0), (neutral, rng.random()))
    ]
    if metric in ("rrs/mean", "retrieval/overlap"):
        parts = [0.5 * part + 0.5 * rng.random(part.shape) for part in parts]
    for part in parts:
        part[rng.random(part.shape) < rng.choice([0, 0.2])] = math.nan
    value = float(np.nanmean(parts[0])) if not np.isnan(parts[0]).all() else 0.5
    bound = abs(round(value + rng.normal(0, 0.1), 3))
    where = {"term": "t0"} if rng.random() < 0.3 else {}
    return table_of(*parts), metric, where, {BOUNDS[metric]: min(bound, 1.0)}


def excludes(interval, kind, bound):
    """Whether a printed range is beyond the bound as a whole."""
    low, high = interval
    if kind == "min":
        return high < bound
    return low > bound or (kind == "max_abs" and high < -bound)


@pytest.mark.whole
def test_a_rule_fails_exactly_where_the_printed_range_excludes_its_bound():
    """1,000 drawn tables; 3 metrics, 1 to 59 sources of 1 to 7 pairs, rates 2 to 80 %."""
    outcomes = dict.fromkeys(Outcome, 0)
    wrong = []
    for seed in range(1000):
        table, metric, where, bound = drawn(np.random.default_rng(seed))
        found = judged(table, metric, where, **bound)
        outcomes[found.outcome] += 1
        [(kind, limit)] = bound.items()
        apart = found.interval is not None and excludes(found.interval, kind, limit)
        if apart != (found.outcome is Outcome.FAIL):
            wrong.append((seed, metric, found.value, found.interval, bound, found.reasons))
    assert not wrong, (len(wrong), wrong[:3])
    assert min(outcomes[outcome] for outcome in (Outcome.PASS, Outcome.FAIL)) > 100


WORLDS = [
    (sources, rate, icc)
    for sources in (6, 15, 100)
    for rate in (0.03, 0.15, 0.25)
    for icc in (0.02, 0.3, 0.9)
]


def alarms(world, kind, tries):
    """How often a rule fails whose bound is the true rate; beta-binomial sources of 21 pairs."""
    sources, rate, icc = world
    rng = np.random.default_rng([sources, round(100 * rate), round(100 * icc)])
    failed = 0
    for _ in range(tries):
        own = beta(rng, rate, icc, sources)[:, None]
        values = (rng.random((sources, 21)) < own).astype(float)
        found = judged(table_of(values, np.zeros((sources, 1))), "asr/generation", **{kind: rate})
        failed += found.outcome is Outcome.FAIL
    return failed


@pytest.mark.walk(1)
@pytest.mark.parametrize("tries", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_at_the_bound_a_rule_seldom_fails(kind, tries):
    """27 worlds of 6, 15 and 100 sources; the level is 5 %, and half of it on each side."""
    found = {world: alarms(world, kind, tries) for world in WORLDS}
    often = {world: many for world, many in found.items() if many > 0.03 * tries}
    assert sum(found.values()) <= ALPHA / 2 * tries * len(WORLDS), often
    assert all(clopper_pearson(many, tries)[0] <= ALPHA for many in found.values()), often


def test_the_range_of_a_share_holds_its_level_with_few_events():
    """One case a source: the exact chance of every count whose range misses the true rate."""
    often = {}
    for sources in (6, 12, 25, 60):
        ends = [
            confidence_interval(
                _means((np.arange(sources) < events).astype(float)),
                is_share=True,
            )
            for events in range(sources + 1)
        ]
        for rate in np.linspace(0.005, 0.995, 199):
            chances = binom.pmf(range(sources + 1), sources, rate)
            below = sum(p for p, end in zip(chances, ends, strict=True) if end.low > rate)
            above = sum(p for p, end in zip(chances, ends, strict=True) if end.high < rate)
            # The end beside few events is exact; Wilson's swing around the level.
            is_few = min(rate, 1 - rate) * sources <= 5
            near = below if rate < 0.5 else above
            if max(below, above) > 0.0501 or (is_few and near > 0.0251):
                often[sources, round(float(rate), 3)] = below, above
    assert not often


def _means(values):
    return Observations(
        keys=[str(number) for number in range(len(values))],
        clusters=np.arange(len(values)),
        arms=np.zeros(len(values), dtype=np.int64),
        values=values,
        weights=(1.0,),
        n_clusters=len(values),
    )


@pytest.mark.parametrize("tries", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_range_of_few_large_losses_holds_its_level(tries):
    """Means that are no shares, of some sources that lose much: exposure, direction."""
    often = {}
    for sources, losing, size in product((25, 60, 100), (0.2, 0.3), (0.5,)):
        rng = np.random.default_rng([sources, round(100 * losing), round(100 * size)])
        missed = np.zeros(2)
        truth = -losing * size / 2
        for _ in range(tries):
            loses = rng.random(sources) < losing
            values = np.where(loses, -size * rng.random(sources), rng.normal(0, 0.02, sources))
            ends = confidence_interval(_means(values), is_share=False)
            missed += ends.low > truth, ends.high < truth
        if clopper_pearson(int(missed.max()), tries)[0] > ALPHA / 2:
            often[sources, losing, size] = missed.tolist()
    assert not often

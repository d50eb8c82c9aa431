"""Sources that all say the same are evidence, for as many as there are, of every metric with limits."""

import math
from dataclasses import replace

import numpy as np
from unit.metrics.tables import table_for

from fairgate.domain.outcomes import Better, Outcome
from fairgate.gate.bounds import judge_bounds
from fairgate.gate.measure import measure_slice
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.social_bias import compares_settings
from fairgate.policy.schema import GatePolicy


def constant(metric, table):
    """Give every case of an identity the same row, the worst one of the metric, and others none."""
    everywhere = ["full"] * len(table.keys)
    settings = table.dimensions["setting"] if compares_settings(metric) else everywhere
    worst = metric.row_limits[0 if metric.better is Better.HIGHER else 1]
    is_harmed = ~table.control & (table.dimension("setting").equal("full") | (len(metric.arms) < 2))
    fair = 1.0 if metric.better is Better.HIGHER else 0.0
    column = np.where(is_harmed, worst, fair)
    return replace(
        table,
        dimensions={**table.dimensions, "setting": settings},
        values={**table.values, metric.column: column},
    )


def test_what_every_source_says_has_a_range_that_more_sources_make_narrower():
    wrong, seen = [], 0
    for metric in METRICS:
        # With the stereotype it is right, against it wrong: that varies.
        is_mixed = metric.column == "correct" and metric.better is Better.TOWARD_ZERO
        is_bounded = math.isfinite(metric.least) and math.isfinite(metric.greatest)
        if not is_bounded or "band" in metric.dimensions or is_mixed or metric.values:
            continue
        widths = []
        for times in (1, 4):
            table = constant(metric, table_for(metric))
            several = table
            for number in range(1, times):
                names = [f"{name}/{number}" for name in table.cluster_names]
                keys = [f"{key}/{number}" for key in table.keys]
                several = several.followed_by(replace(table, cluster_names=names, keys=keys))
            ends = measure_slice(metric, several, {}).interval
            widths.append(None if ends is None else ends[1] - ends[0])
        seen += 1
        if None in widths or not widths[1] < widths[0]:
            wrong.append((metric.id, widths))
    assert not wrong
    assert seen > 15


def judged(metric, table, **gate):
    policy = GatePolicy.model_validate({"metric": metric.id, **gate})
    rule = Rule(gate=policy, position=0, metric=metric, suite="s", where={})
    measured = measure_slice(metric, table, {})
    return [check.outcome for check in judge_bounds(rule, measured)]


def test_a_system_that_always_does_the_same_is_judged_by_how_often_it_was_asked():
    """Answers that are always stereotyped fail; few sources show nothing."""
    bias = METRICS["diff-bias/ambiguous"]
    stereotyped = constant(bias, table_for(bias))
    for evidence in ("significant", "estimate"):
        gate = {"max_abs": 0.2, "evidence": evidence}
        assert judged(bias, stereotyped, **gate) == [Outcome.FAIL], evidence
    few = stereotyped.of_rows(np.flatnonzero(stereotyped.clusters < 4))
    assert judged(bias, few, max_abs=0.2, evidence="significant") == [Outcome.PASS]
    assert judged(bias, few, max_abs=0.2) == [Outcome.FAIL]


def test_the_range_is_that_of_a_count_of_none():
    bias = METRICS["diff-bias/ambiguous"]
    assert bias.better is Better.TOWARD_ZERO
    table = constant(bias, table_for(bias))
    ends = measure_slice(bias, table.of_rows(np.flatnonzero(~table.control)), {}).interval
    share = 1 - math.pow(0.025, 1 / 8)  # a third of the 24 sources is ambiguous
    assert ends == (round(1 - share, 6), 1.0)  # they say nothing, not the opposite

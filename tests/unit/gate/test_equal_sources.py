"""Sources that all say the same are evidence, for as many as there are, of every metric with limits."""

import math
from dataclasses import replace

import numpy as np
from unit.metrics.test_harms import table_for

from fairgate.domain.outcomes import Better, Outcome
from fairgate.gate.bounds import judge_bounds, limits_of, range_in
from fairgate.gate.measure import measure_slice
from fairgate.gate.rules import Rule
from fairgate.metrics.catalogue import BY_ID, METRICS
from fairgate.metrics.social_bias import compares_settings
from fairgate.policy.schema import GatePolicy


def constant(metric, table):
    """Put all identities of a table to the same harm in every case, and nobody else to any."""
    everywhere = ["full"] * len(table.keys)
    settings = table.dimensions["setting"] if compares_settings(metric) else everywhere
    table = replace(table, dimensions={**table.dimensions, "setting": settings})
    bad = metric.harm.values(table)
    is_harmed = metric.harm.rows(table) & ~(table.control & (len(metric.arms) > 1))
    fair = {"overlap": 1.0, "correct": 1.0}
    values = {
        name: np.where(is_harmed, bad[name], fair.get(name, 0.0)) if name in bad else column
        for name, column in table.values.items()
    }
    return replace(table, values=values)


def test_what_every_source_says_has_a_range_that_more_sources_make_narrower():
    wrong = []
    for metric in METRICS:
        is_slice = metric.compares_terms or "band" in metric.dimensions
        # With the stereotype it is right, against it wrong: that varies.
        is_mixed = metric.id.endswith("accuracy/disambiguated")
        if metric.harm is None or limits_of(metric) is None or is_slice or is_mixed:
            continue
        widths = []
        for times in (1, 4):
            table = constant(metric, table_for(metric))
            several = table
            for number in range(1, times):
                names = [f"{name}/{number}" for name in table.cluster_names]
                keys = [f"{key}/{number}" for key in table.keys]
                several = several.followed_by(replace(table, cluster_names=names, keys=keys))
            ends = range_in(metric, several, {}, confidence=0.95)
            widths.append(None if ends is None else ends.high - ends.low)
        if None in widths or not widths[1] < widths[0]:
            wrong.append((metric.id, widths))
    assert not wrong


def judged(metric, table, **gate):
    policy = GatePolicy.model_validate({"metric": metric.id, **gate})
    rule = Rule(gate=policy, position=0, metric=metric, suite="s", where={})
    measured = measure_slice(metric, table, {}, confidence=0.95)
    _, checks = judge_bounds(rule, table, measured, 0.95)
    return [check.outcome for check in checks]


def test_a_system_that_always_does_the_same_is_judged_by_how_often_it_was_asked():
    """Documents that never move pass; answers that are always stereotyped fail; few show neither."""
    overlap, bias = BY_ID["retrieval/overlap/net"], BY_ID["diff-bias/ambiguous"]
    table = table_for(overlap)
    same = replace(table, values={**table.values, "overlap": np.ones(len(table.keys))})
    few = same.of_rows(np.flatnonzero(same.clusters < 3))
    interval = {"min": -0.2, "evidence": "interval"}
    assert judged(overlap, same, **interval) == [Outcome.PASS]
    assert judged(overlap, few, **interval) == [Outcome.INCONCLUSIVE]
    stereotyped = constant(bias, table_for(bias))
    for evidence in ("significant", "interval", "estimate"):
        gate = {"max_abs": 0.2, "evidence": evidence}
        assert judged(bias, stereotyped, **gate) == [Outcome.FAIL], evidence
    few = stereotyped.of_rows(np.flatnonzero(stereotyped.clusters < 4))
    assert judged(bias, few, max_abs=0.2, evidence="significant") == [Outcome.INCONCLUSIVE]


def test_the_range_is_that_of_a_count_of_none():
    bias = BY_ID["diff-bias/ambiguous"]
    assert bias.better is Better.TOWARD_ZERO
    table = constant(bias, table_for(bias))
    ends = range_in(bias, table, {}, confidence=0.95)
    share = 1 - math.pow(0.025, 1 / 8)  # a third of the 24 sources is ambiguous
    assert (ends.low, ends.high) == (round(1 - share, 6), 1.0)  # they say nothing, not the opposite

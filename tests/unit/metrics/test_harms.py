"""Every metric counts harm to one identity in its cases, or no case by itself shows what it counts."""

from dataclasses import replace

import numpy as np

from fairgate.domain.outcomes import Better
from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import DEMOGRAPHIC, Table, observe
from fairgate.stats.observations import estimate

WITHOUT = {
    "/control": "it is about neutral wording",
    "stability": "repeats of one pair, whoever it is about",
    "entropy": "repeats of one pair, whoever it is about",
    "letter/": "where an option stands, whoever it is about",
    "attribution/": "which way a changed answer took, by answers that are asked afterwards",
    "intersectional/hidden": "pairs of identities",
    "shift/degree": "how probable a label is, in every case a little",
    "label/expected-rank": "how probable a label is, in every case a little",
    "rank/change": "a rank has no end",
    "answer/recurring": "what all answers to an identity have in common",
    "answer/missing": "how well a sentence is covered, in every case a little",
    "answer/grounded": "how well a sentence is covered, in every case a little",
}
SOURCES = 24
SIGNED = (
    "direction", "exposure-net", "shift/direction", "shift/unreadable", "shift/exposure",
    "shift/unknown", "shift/changes",
)  # fmt: skip
TERMS = {"a": "one", "b": "two", "neutral": "neutral"}


def columns():
    """Values of a fair system: each term gets the same."""
    rng = np.random.default_rng(5)
    drawn = {}
    for name in dict.fromkeys(metric.column for metric in METRICS):
        of_sources = (rng.random(SOURCES) < 0.3).astype(float)
        if name in ("overlap", "exposure", "exposure-placebo"):
            of_sources = 0.3 + 0.5 * of_sources
        if name in SIGNED:
            of_sources *= 0.0
        if name in ("choice", "bias"):  # as often with the stereotype as against it
            of_sources = np.where(np.arange(SOURCES) // 6 % 2, 1.0, -1.0)
        if name == "correct":
            of_sources[:] = 0.9
        drawn[name] = np.tile(of_sources, len(TERMS))
    drawn["exposure-placebo"] = drawn["exposure"]
    return drawn


def table_for(metric):
    terms = np.repeat(list(TERMS), SOURCES).tolist()
    size = len(terms)
    by_source = [("ambiguous", ""), ("disambiguated", "stereotype"), ("disambiguated", "counter")]
    items = [by_source[row % SOURCES % 3] for row in range(size)]
    return Table(
        suite="s",
        keys=[f"s{row % SOURCES}#{terms[row]}" for row in range(size)],
        clusters=np.arange(size) % SOURCES,
        cluster_names=[f"s{n}" for n in range(SOURCES)],
        control=np.asarray([term == "neutral" for term in terms]),
        dimensions={
            "category": [TERMS[term] for term in terms],
            "term": terms,
            "relation": [metric.relation.replace("*", "x")] * size,
            "setting": ["none" if row % SOURCES % 2 else "full" for row in range(size)],
            **{name: ["x"] * size for name in ("retriever", "k", "instruction")},
            "condition": [item[0] for item in items],
            "alignment": [item[1] for item in items],
        },
        values=columns(),
        bands=(0.2, 0.5),
    )


def harmed(metric, table):
    own = np.flatnonzero(table.dimension("term").equal("a") & metric.harm.rows(table))
    values = dict(table.values)
    for name, bad in metric.harm.values(table).items():
        values[name] = values[name].copy()
        values[name][own] = bad[own]
    return replace(table, values=values)


def value(metric, table, where):
    if not metric.compares_terms:
        return estimate(observe(metric, table, where))
    alone = replace(metric, arms=DEMOGRAPHIC, dimensions=("term",))
    one, others = (estimate(observe(alone, table, {"term": term})) for term in ("a", "b"))
    return -abs(one - others) if metric.better is Better.HIGHER else abs(one - others)


def test_every_metric_counts_harm_or_has_a_reason_not_to():
    wrong = []
    for metric in METRICS:
        why = [
            name
            for name in WITHOUT
            if metric.id.startswith(name) or (name[0] == "/" and metric.id.endswith(name))
        ]
        if bool(why) == bool(metric.harm):
            wrong.append((metric.id, why))
    assert not wrong


def test_harm_that_is_planted_makes_what_counts_it_worse():
    wrong = []
    for metric in METRICS:
        if metric.harm is None:
            continue
        table = table_for(metric)
        where = {"band": "low"} if "band" in metric.dimensions else {}
        before, after = (value(metric, each, where) for each in (table, harmed(metric, table)))
        sign = -1 if metric.better is Better.HIGHER else 1
        if metric.better is Better.TOWARD_ZERO:
            before, after = abs(before), abs(after)
        if not sign * (after - before) > 0.01:
            wrong.append((metric.id, before, after))
    assert not wrong


def test_harm_has_columns_that_metrics_read():
    read = {metric.column for metric in METRICS}
    for metric in METRICS:
        if metric.harm is not None:
            assert metric.column in metric.harm.columns, metric.id
            assert metric.harm.columns.keys() <= read, metric.id

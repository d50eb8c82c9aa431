"""A table of each metric: a fair system, every term the same."""

import numpy as np

from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.metric import Table

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
        if name in ("overlap", "exposure", "exposure-control"):
            of_sources = 0.3 + 0.5 * of_sources
        if name in SIGNED:
            of_sources *= 0.0
        if name in ("choice", "bias"):  # as often with the stereotype as against it
            of_sources = np.where(np.arange(SOURCES) // 6 % 2, 1.0, -1.0)
        if name == "correct":
            of_sources[:] = 0.9
        drawn[name] = np.tile(of_sources, len(TERMS))
    drawn["exposure-control"] = drawn["exposure"]
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
            "relation": [metric.needs.relation.replace("*", "x")] * size,
            "setting": ["none" if row % SOURCES % 2 else "full" for row in range(size)],
            **{name: ["x"] * size for name in ("retriever", "k", "instruction")},
            "condition": [item[0] for item in items],
            "alignment": [item[1] for item in items],
        },
        values=columns(),
        bands=(0.2, 0.5),
    )

"""A baseline of the same cases holds no texts of its own; of other cases it keeps what it has."""

from __future__ import annotations

import numpy as np

from fairgate.domain.cases import TestPlan
from fairgate.domain.outcomes import Provenance
from fairgate.domain.units import Unit
from fairgate.gate.baseline import Baseline, BaselineSuite, with_texts_of
from fairgate.metrics.table import Table


def copied(text: str) -> str:
    return "".join(list(text))


def unit(key: str, content: str) -> Unit:
    return Unit(
        key=key,
        suite="s",
        asks={"answer": key},
        cluster=key,
        dimensions={"term": "t"},
        content=content,
    )


def baseline(contents: dict[str, str]) -> Baseline:
    table = Table(
        suite="s",
        keys=list(contents),
        clusters=np.arange(len(contents)),
        cluster_names=list(contents),
        control=np.zeros(len(contents), dtype=bool),
        dimensions={"term": ["t"] * len(contents)},
        values={"generation": np.arange(float(len(contents)))},
    )
    suite = BaselineSuite(must_match={}, contents=contents, table=table, quartiles=None)
    return Baseline(
        policy="p",
        reason="r",
        date="",
        suites={"s": suite},
        measurements=(),
        metric_versions={},
        provenance=Provenance(under_test={}, environment={}, fairgate="", policy_path=""),
    )


def test_equal_texts_are_the_plans_and_others_stay():
    plan = TestPlan(cases=(), units=[unit("same", "hash of one"), unit("edited", "new hash")])
    contents = {
        "gone": "old one",
        copied("edited"): "old hash",
        copied("same"): copied("hash of one"),
    }
    kept = baseline(dict(contents))
    found = with_texts_of(kept, plan).suites["s"]
    assert found.contents == contents
    assert found.table.keys == list(contents)
    assert list(found.contents) == found.table.keys
    assert found.table.keys[2] is plan.units[0].key
    assert next(key for key in found.contents if key == "same") is plan.units[0].key
    assert found.contents["same"] is plan.units[0].content
    assert found.table.values is kept.suites["s"].table.values

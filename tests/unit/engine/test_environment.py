"""A change of machine is said beside the result, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.engine.environment import environment_notices


@pytest.fixture
def baseline():
    bench = Bench(policy=policy_of(), sources=4, sets=("gender",))
    found = bench.baseline(Plant())
    environment = {"cpu": "x86_64 avx2", "numpy": "2.0"}
    return replace(found, provenance=replace(found.provenance, environment=environment))


def test_the_same_environment_is_not_mentioned(baseline):
    assert environment_notices(baseline.provenance, baseline) == []
    assert environment_notices(baseline.provenance, None) == []


def test_every_difference_is_named(baseline):
    now = replace(
        baseline.provenance, environment={"cpu": "x86_64 avx2 avx512_vnni", "numpy": "2.0"}
    )
    (notice,) = environment_notices(now, baseline)
    assert "cpu x86_64 avx2 → x86_64 avx2 avx512_vnni" in notice
    assert "numpy" not in notice
    assert "unstable_margin" in notice

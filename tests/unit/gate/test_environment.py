"""A change of machine is said beside the result, and only then."""

from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.gate.baseline import environment_notices


@pytest.fixture
def baseline():
    found = Bench(policy=policy_of(), sources=4, sets=("gender",)).baseline(Plant())
    environment = {"cpu": "x86_64 avx2", "numpy": "2.0"}
    return replace(found, provenance=replace(found.provenance, environment=environment))


def test_every_difference_is_named_and_nothing_else(baseline):
    assert environment_notices(baseline.provenance, baseline) == []
    assert environment_notices(baseline.provenance, None) == []
    cpu = "x86_64 avx2 avx512_vnni"
    now = replace(baseline.provenance, environment={"cpu": cpu, "numpy": "2.0"})
    (notice,) = environment_notices(now, baseline)
    assert f"cpu was x86_64 avx2, is {cpu}" in notice
    assert "numpy" not in notice
    assert "unstable_margin" in notice

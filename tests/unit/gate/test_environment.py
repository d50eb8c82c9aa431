"""A change of machine is said beside the result, and only then."""

from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.gate.baseline import UNRECORDED, environment_notices
from fairgate.io.machine import OPTIONAL, describe_environment, libraries_of_answers


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
    assert f"cpu x86_64 avx2 → {cpu}" in notice
    assert "numpy" not in notice
    assert "unstable_margin" in notice


def test_a_package_that_few_models_ask_is_no_part_of_a_runs_environment(baseline):
    """transformers knows windows that a model's files leave out; tokens are the file's own."""
    assert not UNRECORDED & describe_environment("cpu").keys()
    assert UNRECORDED == OPTIONAL
    assert libraries_of_answers().keys() >= UNRECORDED  # workers compare it where both have it
    own = baseline.provenance
    for then, now in (("4.57.1", {}), ("5.0", {"transformers": "5.1"})):
        seen = {"transformers": then}, now
        older, other = (replace(own, environment={**own.environment, **more}) for more in seen)
        assert environment_notices(other, replace(baseline, provenance=older)) == []

"""A change of machine is said beside the result, and only then."""

from dataclasses import replace

import pytest
from fakes.planted import Bench, Plant, policy_of

from fairgate.gate.baseline import UNRECORDED, environment_notices
from fairgate.io.machine import OPTIONAL, describe_environment, libraries_of_answers


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


def test_a_package_that_few_models_ask_is_no_part_of_a_runs_environment(baseline):
    """transformers knows windows that a model's files leave out; tokens are the file's own."""
    assert not UNRECORDED & describe_environment("cpu").keys()
    assert UNRECORDED == OPTIONAL
    assert libraries_of_answers().keys() >= UNRECORDED  # workers compare it where both have it
    for then, now in (("4.57.1", {}), ("5.0", {"transformers": "5.1"})):
        known = {**baseline.provenance.environment, "transformers": then}
        older = replace(baseline, provenance=replace(baseline.provenance, environment=known))
        other = replace(baseline.provenance, environment={**baseline.provenance.environment, **now})
        assert environment_notices(other, older) == []

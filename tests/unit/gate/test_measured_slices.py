"""Every slice is measured, and one slice's cases at a time are held."""

import pytest
from fakes.planted import GATES, Bench, Plant, policy_of

from fairgate.domain.ports import SILENT
from fairgate.gate.gate import run_gate
from fairgate.gate.measure import measure, measure_slice
from fairgate.metrics.catalogue import METRICS

BENCH = Bench(policy=policy_of(GATES, attribution="off"), sources=15)


@pytest.fixture(scope="module")
def tables():
    plant = Plant(sensitive=0.3, neutral_retrieval=0.3)
    return run_gate(BENCH.given(), BENCH.system(plant), SILENT).tables


def test_a_slice_measured_alone_is_the_slice_among_all(tables):
    [table] = tables.values()
    for each in measure(tables)[::17]:
        assert each == measure_slice(METRICS[each.metric], table, each.where)

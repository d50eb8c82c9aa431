"""A proposed bound is kept by the run and broken by what was missed, or there is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairgate.features.mutation.mutants import Mutant, MutationKind, MutationReach, separating
from fairgate.features.mutation.mutation_test import propose
from fairgate.policy.schema import GatePolicy


def metric_of(kind, reach, **where):
    return separating(Mutant(kind=kind, reach=reach, suite="s", where=where))


UPPER = metric_of(MutationKind.ANSWERS, MutationReach.TERM, category="gender", term="man")
LOWER = metric_of(MutationKind.DOCUMENTS, MutationReach.TERM, category="gender", term="man")
EITHER = metric_of(
    MutationKind.STEREOTYPES, MutationReach.CATEGORY, category="Age", condition="ambiguous"
)
SHARES = st.floats(-1, 1).map(lambda share: round(share, 6))


@given(
    st.sampled_from([UPPER, LOWER, EITHER]),
    st.lists(SHARES, min_size=1, max_size=5),
    st.lists(st.lists(SHARES, min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_a_bound_separates_or_there_is_none(by, own, targets, needed):
    found = propose(by, {}, own, targets, needed)

    def breaks(value, bound):
        return {"max": value > bound, "min": value < bound, "max_abs": abs(value) > bound}[by.bound]

    bounds = [n / 100 for n in range(0 if by is EITHER else -100, 101)]
    if found is None:
        good = [
            b
            for b in bounds
            if not any(breaks(v, b) for v in own)
            and all(sum(breaks(v, b) for v in values) >= needed for values in targets)
        ]
        assert not good
        return
    bound = getattr(found[0], by.bound)
    assert not any(breaks(value, bound) for value in own)
    assert all(sum(breaks(value, bound) for value in values) >= needed for values in targets)


@pytest.mark.parametrize("by", [UPPER, EITHER])
@pytest.mark.parametrize(
    "slices", [{}, {"suite": "yes"}, {"suite": 'a"b: {c}', "where": {"setting": "none"}}]
)
def test_the_line_is_the_gate(by, slices):
    gate, line = propose(by, slices, [0.05], [[0.3, 0.31]], 2)
    (read,) = YAML(typ="safe").load(line)
    assert GatePolicy.model_validate(read) == gate
    assert getattr(gate, by.bound) == 0.29
    assert (gate.suite, gate.where) == (slices.get("suite"), slices.get("where", {}))


def test_too_few_values_give_no_line():
    assert propose(UPPER, {}, [0.0], [[0.3]], 2) is None
    assert propose(UPPER, {}, [], [[0.3]], 1) is None

"""A proposed bound is kept by the run and broken by what was missed, or there is none."""

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairgate.engine.mutants import Kind, Reach
from fairgate.engine.suggested_gates import SEPARATING, propose
from fairgate.policy.gates import GatePolicy

UPPER = SEPARATING[Kind.ANSWERS, Reach.TERM]
LOWER = SEPARATING[Kind.DOCUMENTS, Reach.TERM]
SHARES = st.floats(0, 1).map(lambda share: round(share, 6))


@given(
    st.sampled_from([UPPER, LOWER]),
    st.lists(SHARES, min_size=1, max_size=5),
    st.lists(st.lists(SHARES, min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_a_bound_separates_or_there_is_none(by, own, targets, needed):
    found = propose(by, None, own, targets, needed)
    breaks = (lambda v, b: v > b) if by.is_upper else (lambda v, b: v < b)
    bounds = [n / 100 for n in range(101)]
    if found is None:
        good = [
            b
            for b in bounds
            if not any(breaks(v, b) for v in own)
            and all(sum(breaks(v, b) for v in values) >= needed for values in targets)
        ]
        assert not good
        return
    bound = found.gate.max if by.is_upper else found.gate.min
    assert not any(breaks(value, bound) for value in own)
    assert all(sum(breaks(value, bound) for value in values) >= needed for values in targets)


def test_the_line_is_the_gate():
    for suite in (None, "yes", 'a"b: {c}'):
        found = propose(UPPER, suite, [0.05], [[0.3, 0.31]], 2)
        (read,) = YAML(typ="safe").load(found.line)
        assert GatePolicy.model_validate(read) == found.gate
        assert (found.gate.max, found.gate.suite) == (0.29, suite)


def test_too_few_values_give_no_line():
    assert propose(UPPER, None, [0.0], [[0.3]], 2) is None
    assert propose(UPPER, None, [], [[0.3]], 1) is None

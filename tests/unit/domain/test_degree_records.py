"""Degrees as records hold them: what is written is read again, and nothing else is."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.degrees import Degrees, degrees_fields, degrees_from
from fairgate.domain.executions import Execution
from fairgate.systems.execute import answer_from, answer_to

SCORES = st.lists(st.floats(min_value=-2000, max_value=0), min_size=2, max_size=8)


@given(SCORES, st.data())
def test_what_is_written_is_read_again(nats, data):
    total = math.fsum(map(math.exp, nats))
    if total > 1:
        nats = [each - math.log(total) for each in nats]
    labels = [f"label {n % max(2, len(nats) // 2)}" for n in range(len(nats))]
    degrees = Degrees.summed(labels, nats)
    bounded = tuple(sorted(data.draw(st.sets(st.sampled_from(labels)))))
    degrees = Degrees(degrees.log_probabilities, bounded)
    assert degrees_from(json.loads(json.dumps(degrees_fields(degrees)))) == degrees
    answer = Execution(response="x", degrees=degrees)
    assert answer_from(json.loads(answer_to(answer))) == answer
    assert 0 <= degrees.mass <= 1


def test_an_answer_without_degrees_is_stored_as_before():
    assert json.loads(answer_to(Execution(response="x"))).keys() == {
        "text",
        "margin",
        "tokens",
        "stopped",
    }


def test_forms_of_a_label_are_summed():
    found = Degrees.summed(["a", "b", "a"], [math.log(0.25), math.log(0.125), math.log(0.5)])
    assert found.log_probabilities == (("a", round(math.log(0.75), 4)), ("b", -2.0794))
    assert found.mass == pytest.approx(0.875, abs=1e-4)
    assert found.likeliest == ("a", pytest.approx(math.log(6), abs=1e-3))
    assert math.isfinite(Degrees.summed(["a", "b"], [-math.inf, -0.1]).log_probabilities[0][1])


BAD = {
    "no object": {"degrees": [-1.0, -2.0]},
    "one label": {"degrees": {"a": -1.0}},
    "none": {"degrees": {}},
    "a text": {"degrees": {"a": "-1", "b": -2.0}},
    "true": {"degrees": {"a": True, "b": -2.0}},
    "nothing": {"degrees": {"a": None, "b": -2.0}},
    "NaN": {"degrees": {"a": math.nan, "b": -2.0}},
    "infinite": {"degrees": {"a": -math.inf, "b": -2.0}},
    "above 0": {"degrees": {"a": 0.1, "b": -2.0}},
    "probabilities": {"degrees": {"a": 0.7, "b": 0.3}},
    "more than 1": {"degrees": {"a": -0.1, "b": -0.2}},
    "bounds of nothing": {"at_most": ["a"]},
    "a bound of another label": {"degrees": {"a": -1.0, "b": -2.0}, "at_most": ["c"]},
    "bounds that are no list": {"degrees": {"a": -1.0, "b": -2.0}, "at_most": "a"},
    "bounds that are no texts": {"degrees": {"a": -1.0, "b": -2.0}, "at_most": [["a"]]},
    "too many": {"degrees": {str(n): -900.0 for n in range(5000)}},
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_degrees_is_refused(name):
    with pytest.raises(ValueError, match=r"degrees|at_most"):
        degrees_from(BAD[name])
    assert answer_from({"text": "x", **BAD[name]}) is None

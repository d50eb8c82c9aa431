"""What a bound says of a value is true of the numbers that it prints, signs included."""

import itertools
import re

from fairgate.domain.outcomes import Measurement
from fairgate.gate.bounds import check_bounds
from fairgate.metrics.catalogue import METRICS
from fairgate.policy.schema import GatePolicy

VALUES = (-0.4, -0.052, -0.047, 0.0, 0.047, 0.052, 0.4)
LIMITS = (-0.3, -0.05, 0.0, 0.05, 0.3)
JUDGED = ("retrieval/overlap", "intersectional/hidden", "diff-bias/ambiguous", "rrs/mean")


def test_the_sentence_of_a_bound_holds_for_its_printed_numbers():
    wrong = []
    for metric, limit, value, key in itertools.product(
        JUDGED, LIMITS, VALUES, ("min", "max", "max_abs")
    ):
        is_size = key == "max_abs" or (key == "max" and metric == "diff-bias/ambiguous")
        if is_size and limit < 0:
            continue
        gate = GatePolicy.model_construct(metric=metric, evidence="estimate", **{key: limit})
        measured = Measurement(metric=metric, suite="s", value=value, interval=(value, value))
        (check,) = check_bounds(gate, measured, METRICS[metric])
        text = check.reason.replace("−", "-")
        now, then = map(float, re.findall(r"-?\d+\.?\d*", text)[:2])
        size = abs(now) if is_size else now
        holds = size >= then if key == "min" else size <= then
        is_within = "within the limit" in text
        if holds != is_within:
            wrong.append((metric, key, limit, value, check.reason))
    assert not wrong

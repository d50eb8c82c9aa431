"""Stability and entropy count the repeats that have a verdict, and say why there are none."""

from itertools import product
from math import log2
from types import SimpleNamespace

from fairgate.domain.units import Reason
from fairgate.suites.metamorphic.assess import _steadiness

VERDICTS = (1.0, 0.0, Reason.UNREADABLE, Reason.CALLED_INVALID)


def steadiness(verdicts):
    unit = SimpleNamespace(asks={"source": "s", "follow-up": "f"}, verdicts=())
    readings = SimpleNamespace(
        repeats_of=lambda key, *_: verdicts if key == "f" else [0.0] * len(verdicts)
    )
    relation = SimpleNamespace(id="r", claims=lambda _left, right, _expected: {"generation": right})
    return _steadiness(unit, relation, readings)


def test_the_repeats_with_a_verdict_decide_and_else_the_reason_of_most():
    wrong = []
    for verdicts in product(VERDICTS, repeat=4):
        found = steadiness(verdicts)
        biased, unbiased = verdicts.count(1.0), verdicts.count(0.0)
        reasons = [verdict for verdict in verdicts if isinstance(verdict, Reason)]
        if biased + unbiased >= 2:
            shares = [count / (biased + unbiased) for count in (biased, unbiased) if count]
            expected = (float(len(shares) == 1), -sum(p * log2(p) for p in shares) + 0.0)
        else:
            most = max(reasons, key=lambda reason: (reasons.count(reason), -reasons.index(reason)))
            expected = (most, most)
        values = (found["stability"], found["entropy"])
        if values[0] != expected[0] or (
            values[1] != expected[1]
            and (isinstance(expected[1], Reason) or abs(values[1] - expected[1]) > 1e-9)
        ):
            wrong.append((verdicts, values, expected))
    assert not wrong

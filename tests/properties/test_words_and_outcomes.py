"""What a reason prints never contradicts its outcome: limits, ranges, chances and levels."""

import re

import numpy as np
import pytest
from properties.test_confidence_intervals import drawn, judged

from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import MINUS, probability, told_apart

NUMBER = rf"({MINUS}?[\d.]+)(?: %| points)?"
SAID = re.compile(rf"{NUMBER} is (in size )?(within|above|below) the limit of (at least )?{NUMBER}")


def number(text):
    return float(text.replace(MINUS, "-"))


def contradicts(reason):
    """Whether a value and its limit, as they are printed, do not stand as the words say."""
    value, is_size, side, at_least, limit = SAID.search(reason).groups()
    left, right = abs(number(value)) if is_size else number(value), number(limit)
    holds = {
        "within": left >= right if at_least else left <= right,
        "above": left > right,
        "below": left < right,
    }
    return not holds[side]


@pytest.mark.parametrize("tables", [100, pytest.param(400, marks=pytest.mark.whole)])
@pytest.mark.parametrize("evidence", ["estimate", "significant"])
def test_no_printed_value_is_on_the_other_side_of_its_printed_limit(evidence, tables):
    """Drawn tables, with limits that are the value but for its last digits."""
    wrong = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        table, metric, where, bound = drawn(rng)
        [(kind, _)] = bound.items()
        found = judged(table, metric, where, **{kind: 0.5, "evidence": "estimate"})
        if found.value is None or not 0 < abs(found.value) < 1:
            continue
        near = abs(found.value) + rng.choice([-1, 1]) * 10.0 ** -rng.integers(3, 7)
        found = judged(table, metric, where, **{kind: float(max(near, 0)), "evidence": evidence})
        if found.outcome is not Outcome.NOT_EVALUATED and contradicts(found.reasons[0]):
            wrong.append((seed, metric, found.value, near, found.reasons[0]))
    assert not wrong, (len(wrong), wrong[:3])


def test_a_p_value_is_printed_on_its_side_of_the_level():
    rng = np.random.default_rng(1)
    near = 0.05 + rng.choice([-1, 1], 2000) * 10.0 ** -rng.uniform(2, 7, 2000)
    wrong = [
        p for p in [*near.tolist(), 0.0504, 0.0495, 0.05]
        if (float(probability(p).removeprefix("p = ")) <= 0.05) != (p <= 0.05)
    ]  # fmt: skip
    assert not wrong, [(p, probability(p)) for p in wrong[:5]]
    assert probability(0.0504) == "p = 0.0504"


def test_two_values_that_differ_are_printed_apart():
    rng = np.random.default_rng(2)
    for is_rate in (True, False):
        for _ in range(2000):
            limit = round(float(rng.random()), 2)
            value = round(limit + float(rng.choice([-1, 1]) * 10.0 ** -rng.integers(2, 7)), 6)
            left, right = (number(text.removesuffix(" %")) for text in told_apart(
                value, limit, is_rate=is_rate
            ))  # fmt: skip
            assert (left > right) == (value > limit), (value, limit, left, right)

"""What a reason prints never contradicts its outcome: limits, ranges, chances and levels."""

import re

import numpy as np
import pytest
from properties.test_likely_ranges import drawn, judged

from fairgate.domain.outcomes import IdentityFinding, Outcome, TermFinding
from fairgate.domain.wording import MINUS, probability, told_apart
from fairgate.gate.bounds import check_identity
from fairgate.policy.schema import GatePolicy
from fairgate.stats.permutation import holm

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
@pytest.mark.parametrize("evidence", ["estimate", "significant", "interval"])
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


def test_what_counts_of_a_difference_is_within_what_is_allowed_where_it_passes():
    rng = np.random.default_rng(3)
    wrong = []
    for _ in range(2000):
        value, chance = (
            round(float(rng.uniform(0.05, 0.6)), 6),
            round(float(rng.uniform(0, 0.3)), 6),
        )
        limit = round(float(rng.uniform(0, 0.5)), 3)
        if rng.random() < 0.5:
            limit = round(max(0.0, value - chance) + float(rng.choice([0, 1e-6, 4e-4])), 6)
        top = TermFinding(category="c", term="t", difference=value, p_value=0.01,
                          p_corrected=0.01, decided=9)  # fmt: skip
        finding = IdentityFinding(suite="s", where={}, metric="identity/max-difference", value=value,
                                  p_value=0.01, sources=9, terms=[top], by_chance=chance)  # fmt: skip
        gate = GatePolicy(metric=finding.metric, max=limit)
        check = check_identity(gate, finding, holm([0.01], alpha=0.05)[0], alpha=0.05)
        said = re.search(rf": {NUMBER} count, {NUMBER} are allowed", check.reason)
        if check.outcome is Outcome.PASS and said:
            counted, allowed = map(number, said.groups())
            if counted > allowed:
                wrong.append((value, chance, limit, check.reason))
    assert not wrong, (len(wrong), wrong[:3])

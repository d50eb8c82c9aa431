"""Unstable answers take a verdict only where follow-ups have more of them than neutral wording."""

import pytest
from calibration.pipeline import PHRASES
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.errors import ExitCode
from fairgate.domain.units import Reason

GATES = [
    {"metric": "asr/generation/controlled", "max": 0.15},
    {"metric": "asr/generation/net", "max": 0.03, "evidence": "significant"},
    {"metric": "asr/generation/net", "for_each": "category", "max": 0.05, "evidence": "significant"},
    {"metric": "unreadable/net", "max": 0.02},
]  # fmt: skip
BENCH = Bench(policy=policy_of(GATES), sources=40)
SHARES = (0.0, 0.06, 0.15, 0.3, 0.45)


@pytest.mark.walk(6)
@pytest.mark.parametrize("named", SHARES)
@pytest.mark.parametrize("neutral", SHARES)
def test_only_what_follow_ups_have_more_counts(named, neutral):
    run = BENCH.run(Plant(unsure={"": neutral, **dict.fromkeys(PHRASES, named)}))
    table, shares = run.tables["s"], {}
    unstable = [row for row, why in table.reasons["generation"].items() if why == Reason.UNSTABLE]
    for control in (False, True):
        shares[control] = sum(table.control[unstable] == control) / sum(table.control == control)
    pairs = sum(not unit.is_control for unit in BENCH.given().plan.units)
    more = max(0.0, shares[False] - shares[True]) * pairs
    has_verdict = more <= 0.05 * pairs * (1 - min(shares.values()))
    assert (run.result.exit_code is not ExitCode.NO_VERDICT) == has_verdict, (shares, more / pairs)
    if has_verdict:
        assert not run.result.evidence.problems


def test_where_hardly_half_is_decided_nothing_is_shown():
    run = BENCH.run(Plant(unsure={"": 0.6, **dict.fromkeys(PHRASES, 0.6)}))
    assert run.result.exit_code is ExitCode.NO_VERDICT

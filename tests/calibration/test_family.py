"""Which tests share the level: none that cannot reject, and signed bounds of many identities."""

import pytest
from calibration.verdicts import SHOWN, row_of
from fakes.planted import IDENTITY, REGRESSION, Bench, Plant, policy_of

from fairgate.domain.outcomes import Outcome

PLANT = Plant(biased={"A man": 0.2})
IDLE = {
    "nothing is unreadable": {"metric": "identity/unreadable/max-difference", "max": 0.03},
    "no documents differ": {"metric": "identity/retrieval/max-difference", "max": 0.35},
    "nothing changed": REGRESSION,
    "nothing changed for any category": {**REGRESSION, "for_each": "category"},
}


def ruled(*gates):
    bench = Bench(policy=policy_of([IDENTITY, *gates]), sources=30, sets=("gender",))
    return bench.run(PLANT, bench.baseline(PLANT)).result.rules


@pytest.mark.parametrize("kinds", [*([kind] for kind in IDLE), [*IDLE]], ids=" and ".join)
def test_rules_that_cannot_reject_take_no_level_from_others(kinds):
    """Beside any of them, the identity rule says what it says alone."""
    [alone, *_], [beside, *others] = ruled(), ruled(*(IDLE[kind] for kind in kinds))
    assert beside == alone
    assert "p = " in alone.reasons[0]
    assert all(rule.outcome is Outcome.PASS for rule in others), others


@pytest.mark.parametrize(("worlds", "off"), [(1, 0), pytest.param(6, 1, marks=pytest.mark.whole)])
def test_signed_bounds_of_many_identities_are_one_family(worlds, off):
    """Of fair worlds with noise at most one of ten is red; a harmed identity is found."""
    cells = [cell for cell in SHOWN["direction/net"] if cell.sources == 60]
    red = {cell.name: int(row_of(cell, range(worlds))[1].split(" ")[0]) for cell in cells}
    fair = {name: many for name, many in red.items() if "worst" not in name}
    assert len(fair) == 2
    assert max(fair.values()) <= off, red
    assert all(many >= worlds - off for name, many in red.items() if "worst of 70 %" in name), red

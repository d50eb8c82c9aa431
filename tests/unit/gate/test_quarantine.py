"""Quarantined cases count for nothing until their date, and are always shown."""

import datetime as dt
from dataclasses import replace

import numpy as np
from fakes.planted import Bench, Plant, policy_of
from fakes.policies import model

from fairgate.domain.outcomes import Outcome
from fairgate.domain.units import Reason
from fairgate.gate.loaded_policy import quarantine_notices, quarantine_problems, quarantined

TODAY = dt.date(2026, 6, 15)
REGRESSION = {"metric": "asr/generation", "regression": 0.02}
BENCH = Bench(policy=policy_of([REGRESSION], control="paper"), sources=12, sets=("gender",))
KEY = "s00000#gender/man"


def with_entries(*entries):
    given = {"case": KEY, "until": "2026-07-01", "reason": "model card says so"}
    policy = policy_of([REGRESSION]).model_dump()
    return model().model_validate({**policy, "quarantine": [given | entry for entry in entries]})


def problems(*entries, today=TODAY):
    return dict(quarantine_problems(with_entries(*entries), BENCH.given().plan, today))


def test_an_expired_entry_and_a_date_that_does_not_exist_are_errors_at_the_date():
    found = problems({}, {"until": "2026-06-14"})
    assert list(found) == [("quarantine", 1, "until")]
    assert "ended on 2026-06-14" in found["quarantine", 1, "until"]
    assert problems({"until": "1999-01-01"}, today=None) == {}
    assert "is no date" in problems({"until": "2026-02-30"})["quarantine", 0, "until"]


def test_unknown_cases_and_suites_are_errors_with_a_hint():
    found = problems({"case": "s00000#gender/mam"}, {"suite": "t"})
    assert f"did you mean `{KEY}`" in found["quarantine", 0, "case"]
    assert "unknown suite 't'" in found["quarantine", 1, "suite"]


def test_the_keys_of_a_suite():
    policy = with_entries({}, {"case": "s00001", "suite": "s"})
    assert quarantined(policy, "s") == {KEY, "s00001"}
    assert quarantined(policy, "other") == {KEY}


def test_a_notice_says_what_is_left_out_until_when_and_why():
    first, second = quarantine_notices(with_entries({}, {"case": "s00001"}), BENCH.given().plan)
    assert first == f"quarantined until 2026-07-01: {KEY} (1 pair left out): model card says so"
    assert "s00001 (12 pairs left out)" in second


def test_a_quarantined_pair_leaves_every_column():
    run = replace(BENCH, quarantined=frozenset({KEY})).run(Plant(biased={"A man": 1.0}))
    item = next(item for item in run.result.assessed if item.unit.key == KEY)
    assert set(item.claims.values()) == {Reason.QUARANTINED}
    table = run.tables["s"]
    row = list(table.keys).index(KEY)
    assert all(np.isnan(column[row]) for column in table.values.values())
    assert run.result.evidence.decided == run.result.evidence.planned - 1


def test_a_quarantined_control_leaves_the_majority():
    left_out = ("person", "reader", "customer", "visitor", "colleague", "neighbour")
    keys = frozenset(f"s00000#neutral/{term}" for term in left_out)
    plant = Plant(refusing=dict.fromkeys(["An individual", "An observer", "An acquaintance"], 1.0))
    run = replace(BENCH, quarantined=keys).run(plant)
    own = [i for i in run.result.assessed if i.unit.cluster == "s00000" and not i.unit.is_control]
    assert {item.claims["controlled"] for item in own} == {Reason.NO_CONTROLS}


def test_quarantine_is_no_growth_of_undecided_cases():
    keys = frozenset(f"s{n:05d}" for n in range(12) if n % 2)
    rule = replace(BENCH, quarantined=keys).run(Plant(), BENCH.baseline(Plant())).result.rules[0]
    assert list(rule.failed) == []
    assert rule.outcome is Outcome.NOT_EVALUATED  # half of the suite: it counts as not decided

"""A waiver of parity is about somebody: it hides that node, up to its value, and nobody else."""

import datetime as dt
from dataclasses import replace

import pytest
from fakes.parity import Planted, compared_with, judged, rule_of
from fakes.planted import Bench, policy_of
from fakes.policies import model

from fairgate.domain.outcomes import Outcome
from fairgate.domain.parity import Against, Level
from fairgate.gate.waivers import waiver_notices, waiver_problems, with_waiver

DAY = "2026-06-15"
ENTRY = {
    "rule": "parity/answers", "who": "woman", "up_to": 0.6, "reason": "known", "owner": "ana",
    "expires": "2026-07-01",
}  # fmt: skip
HARMED = judged(Planted(harm={"woman": 0.4}).table())
TWO = judged(Planted(harm={"woman": 0.5, "white": 0.5}).table())
TABLES = Planted(seed=2, harm={"woman": 0.5}).table(), Planted().table()
WORSE = judged(TABLES[0], rule_of(against=Against.BASELINE), compared_with(*TABLES))


def policy_with(*entries, gates=({"parity": "answers"},)):
    given = policy_of(gates).model_dump() | {"waivers": [ENTRY | entry for entry in entries]}
    return model().model_validate(given)


def waived(result, *entries, day=DAY):
    return with_waiver(result, policy_with(*entries), day)


@pytest.mark.parametrize("who", ["woman", "gender/woman"])
def test_a_waiver_covers_whom_it_names(who):
    found = waived(HARMED, {"who": who})
    assert (found.outcome, found.fails_gate) == (Outcome.FAIL, False)
    assert found.waiver.owner == "ana"
    assert "waived until 2026-07-01 by ana: known" in found.reasons


@pytest.mark.parametrize("who", ["man", "gender", "everybody", "wom", "race/woman"])
def test_a_waiver_of_somebody_else_covers_nothing(who):
    assert waived(HARMED, {"who": who}).fails_gate


@pytest.mark.parametrize(
    ("level", "who"), [(Level.CATEGORY, "race"), (Level.EVERYBODY, "everybody")]
)
def test_categories_and_everybody_are_named_as_reports_name_them(level, who):
    (node,) = HARMED.failing
    people = [("race", "black"), ("race", "white")]
    result = replace(HARMED, failing=[replace(node, level=level, who=people)])
    assert not waived(result, {"who": who}).fails_gate
    for other in {"race", "everybody", "black", "race/black"} - {who}:
        assert waived(result, {"who": other}).fails_gate


def test_everybody_who_fails_needs_a_waiver():
    assert {node.name for node in TWO.failing} == {"woman", "white"}
    assert waived(TWO, {}).fails_gate
    assert waived(TWO, {"who": "white"}).fails_gate
    both = waived(TWO, {}, {"who": "white", "expires": "2026-06-20"})
    assert not both.fails_gate
    assert both.waiver.expires == "2026-06-20", "the first that ends"


@pytest.mark.parametrize(
    ("entry", "day", "said"),
    [
        ({"up_to": 0.1}, DAY, "holds up to 0.1 only"),
        ({}, "2026-07-02", "ended on 2026-07-01"),
    ],
)
def test_what_a_waiver_does_not_cover_says_why(entry, day, said):
    found = waived(HARMED, entry, day=day)
    assert found.fails_gate
    assert said in found.reasons[-1]


def test_without_a_day_no_waiver_counts():
    assert waived(HARMED, {}, day="").fails_gate


def test_what_became_worse_needs_an_entry_of_its_own():
    name = "parity/answers/baseline"
    assert WORSE.metric == name
    assert waived(WORSE, {}).fails_gate, "it is about another rule"
    assert not waived(WORSE, {"rule": name}).fails_gate


def test_favour_is_waived_by_its_size():
    favour = judged(Planted(noise=0.5, favour={"woman": 1.0}).table())
    assert favour.failing[0].estimate < -0.3
    assert not waived(favour, {}).fails_gate
    assert waived(favour, {"up_to": 0.2}).fails_gate


def test_a_waiver_whose_rule_passes_is_told():
    passes = judged(Planted().table())
    (notice,) = waiver_notices([passes], policy_with({}))
    assert "is no longer needed, it passes: remove it" in notice
    assert list(waiver_notices([HARMED], policy_with({}))) == []


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"who": None}], "says whom it is about: add `who`"),
        ([{"rule": "parity/answrs"}], "did you mean `parity/answers`?"),
        ([{}, {}], "waived by `waivers[0]` too"),
        ([{"rule": "asr/generation", "up_to": 0.3}], "is about nobody by name"),
        ([{"expires": "2026-13-01"}], "is no date"),
        ([{}, {"who": "man"}], ""),
        ([{"rule": "parity/answers/baseline"}], ""),
    ],
)
def test_faults_of_an_entry_are_told(entries, said):
    gates = [{"parity": "answers"}, {"metric": "asr/generation", "max": 0.2}]
    given = Bench(policy=policy_of(gates), sources=2, sets=("gender",)).given()
    policy = policy_with(*entries, gates=gates)
    day = dt.date.fromisoformat(DAY)
    found = [message for _, message in waiver_problems(policy, given.plan, given.suites, day)]
    assert (said in found[0]) if said else (found == [])

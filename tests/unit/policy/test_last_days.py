"""Whatever ends on a day ends within a year: one rule for every date of the policy."""

import datetime as dt

import pytest
from fakes.policies import parse_policy, plan_of, suites_of

from fairgate.gate.waivers import waiver_problems
from fairgate.policy import schema
from fairgate.policy.schema import WaiverPolicy

TODAY = dt.date(2026, 6, 15)
TEXT = """\
version: 1
name: p
system: {recorded: a.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 2, perturbations: [gender]}
gates:
  - {metric: asr/generation, max: 0.2}
waivers:
  - {rule: asr/generation, expires: "2026-07-01", reason: r, owner: o, up_to: 0.5}
"""
PLAN, SUITES = plan_of(TEXT), suites_of(TEXT)
ENTRIES = {"waivers": (WaiverPolicy, "expires")}


def faults(entries, name, day, today=TODAY):
    policy = parse_policy(TEXT, "p.yaml").policy
    (entry,) = getattr(policy, entries)
    policy = policy.model_copy(update={entries: [entry.model_copy(update={name: day})]})
    found = waiver_problems(policy, PLAN, SUITES, today)
    return [sentence for where, sentence in found if where == (entries, 0, name)]


def test_no_date_of_the_policy_is_without_the_rule():
    dated = [
        (model, name)
        for model in vars(schema).values()
        if isinstance(model, type) and issubclass(model, schema.Strict)
        for name, field in model.model_fields.items()
        if any("[0-9]{4}-" in str(getattr(part, "pattern", "")) for part in field.metadata)
    ]
    assert sorted(dated, key=str) == sorted(ENTRIES.values(), key=str)


@pytest.mark.parametrize("entries", ENTRIES)
@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("2026-07-01", ""), ("2027-06-16", ""), ("2027-06-17", "2027-06-17 is more than 366 days ahead"),
        ("9999-12-31", "9999-12-31 is more than 366 days ahead"), ("2026-02-30", "is no date"),
    ],
)  # fmt: skip
def test_a_day_is_refused_that_is_none_or_lies_too_far_ahead(entries, day, said):
    found = faults(entries, ENTRIES[entries][1], day)
    assert len(found) == bool(said)
    assert all(said in sentence for sentence in found)


@pytest.mark.parametrize("entries", ENTRIES)
def test_without_a_day_to_hold_it_against_nothing_is_too_far(entries):
    assert faults(entries, ENTRIES[entries][1], "9999-12-31", today=None) == []

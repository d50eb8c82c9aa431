"""Every field of the policy has a decision: a change of it is listed, or cannot make red green."""

import sys

import pytest
from fakes.policies import model, parse_policy, plan_of, suites_of

from fairgate.domain.schema import Strict
from fairgate.github import loosenings
from fairgate.policy.schema import (
    GatePolicy,
    ParityPolicy,
    Policy,
    WaiverPolicy,
)
from fairgate.suites.metamorphic import policy as metamorphic
from fairgate.suites.metamorphic.policy import SuitePolicy
from fairgate.suites.question_items import policy as question_items
from fairgate.suites.question_items.policy import BbqSuitePolicy
from fairgate.systems.catalogue import policy_parts

TEXT = """\
version: 1
name: p
system:
  generator: {model: demo-slm}
suites:
  - {id: s, task: sentiment, sources: demo-reviews}
  - {id: b, kind: bbq, items: demo-bbq, collections: [demo-stances]}
gates:
  - {metric: asr/generation, where: {category: race}, suite: s, max: 0.2, min: 0.1,
     max_abs: 0.3, evidence: estimate, regression: 0.02, budget: 0.04}
  - {parity: answers, where: {category: race}, suite: s, max: 0.2, regression: 0.02, budget: 0.04,
     must_see: 0.15}
waivers:
  - {rule: asr/generation, where: {category: race}, suite: s, expires: "2026-01-01",
     reason: r, owner: o, up_to: 0.5}
"""
GENERATOR = "generator: {model: demo-slm}"


def policy_with(text, system=GENERATOR):
    return parse_policy(text.replace(GENERATOR, system), "p.yaml").policy


POLICY, PLAN, SUITES = policy_with(TEXT), plan_of(TEXT), suites_of(TEXT)
OTHERS = (
    "recorded: a.jsonl", "http: {url: 'http://127.0.0.1/'}", "command: [./ask.sh]", "python: 'a:b'"
)  # fmt: skip
SYSTEMS = [policy_with(TEXT, system).system for system in (GENERATOR, *OTHERS)]
RECORDED = SYSTEMS[1]
JUDGED = policy_with(f"{TEXT}judge: {{id: j, record: r.json, generators: [{{model: demo-slm}}]}}\n")

# A value of each field that holds less, or that may; None where no value can make red green.
POLICY_FIELDS = {
    "version": None,  # there is one
    "name": "q",
    "seed": 1,
    "system": RECORDED,
    "suites": POLICY.suites[:1],
    "gates": [],
    "regression_level": 0.001,
    "constant_answers": "allow",
    "min_decided": 0.5,
    "max_invalid": 0.5,
    "min_overlap": 0.5,
    "judge": None,  # compared whole, below
    "reference": None,  # likewise
    "waivers": [
        *POLICY.waivers,
        POLICY.waivers[0].model_copy(update={"rule": "parity/answers", "who": "black"}),
    ],
    "redact": None,  # how texts are shown
}
GATE_FIELDS = {
    "metric": "asr/retrieval",
    "suite": None,  # every suite is more than one; the reverse is in REVERSED
    "where": {"category": "age"},
    "max": 0.5,
    "min": -1.0,
    "max_abs": 0.9,
    "regression": 0.5,
    "budget": 0.5,
    "evidence": "significant",
    "advisory": True,
    "report": True,
}
PARITY_FIELDS = {
    "parity": "unreadable",
    "suite": None,
    "where": {"category": "age"},
    "max": 0.5,
    "regression": 0.5,
    "budget": 0.5,
    "must_see": 0.5,
    "advisory": True,
}
WAIVER_FIELDS = {
    "rule": "parity/answers",
    "who": "white",
    "where": None,  # without a rule it waives nothing
    "suite": None,  # the rule is of one suite: the same one
    "reason": None,
    "owner": None,
    "expires": "2026-01-02",
    "up_to": 0.6,
}
NAMES = {"id", "kind"}  # a suite of another name is a removed one and a new one


def loosened(before, after):
    return [
        one.sentence for one in loosenings.loosened(before, after, (PLAN, PLAN), (SUITES, SUITES))
    ]


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (Policy, POLICY_FIELDS), (GatePolicy, GATE_FIELDS), (ParityPolicy, PARITY_FIELDS),
        (WaiverPolicy, WAIVER_FIELDS),
    ],
)  # fmt: skip
def test_no_field_is_without_a_decision(model, fields):
    assert set(fields) == set(model.model_fields)


def edits(entry, fields):
    """Return an entry with each of the values in turn, by the field's name."""
    return {name: entry.model_copy(update={name: value}) for name, value in fields.items()}


def decided(fields):
    return {name: value for name, value in fields.items() if value is not None}


GATE, QUESTION = POLICY.gates
WAIVER = POLICY.waivers[0].model_copy(update={"rule": "parity/answers/baseline", "who": "black"})
CHANGES = {
    **{f"policy {name}": {name: value} for name, value in decided(POLICY_FIELDS).items()},
    **{
        f"gate {name}": {"gates": [gate, QUESTION]}
        for name, gate in edits(GATE, decided(GATE_FIELDS)).items()
    },
    **{
        f"parity {name}": {"gates": [GATE, question]}
        for name, question in edits(QUESTION, decided(PARITY_FIELDS)).items()
    },
    **{
        f"waiver {name}": {"waivers": [entry]}
        for name, entry in edits(WAIVER, decided(WAIVER_FIELDS)).items()
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_listed(name):
    before = POLICY.model_copy(update={"waivers": [WAIVER]}) if "waiver " in name else POLICY
    assert loosened(before, before.model_copy(update=CHANGES[name]))


def test_a_rule_of_one_suite_in_the_place_of_one_of_all():
    two = TEXT.replace("gates:", "  - {id: t, task: sentiment, sources: demo-reviews}\ngates:")
    policy, plan, suites = policy_with(two), plan_of(two), suites_of(two)
    everywhere = policy_with(two.replace("suite: s, max", "max"))
    assert loosenings.loosened(everywhere, policy, (plan, plan), (suites, suites))


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(
    ("position", "name"),
    [(0, name) for name in SuitePolicy.model_fields if name not in NAMES]
    + [(1, name) for name in BbqSuitePolicy.model_fields if name not in NAMES],
)
def test_whatever_a_suite_says(position, name):
    suites = list(POLICY.suites)
    suites[position] = suites[position].model_copy(update={name: "another"})
    assert loosened(POLICY, POLICY.model_copy(update={"suites": suites}))


SAID = [*((POLICY, "system", system) for system in SYSTEMS), (JUDGED, "judge", JUDGED.judge),
        (POLICY.model_copy(update={"reference": RECORDED}), "reference", RECORDED)]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(
    ("policy", "part", "said", "name"),
    [(*part, name) for part in SAID for name in type(part[-1]).model_fields],
)
def test_whatever_the_system_is_and_whoever_judges(policy, part, said, name):
    values = said, said.model_copy(update={name: "another"})
    assert loosened(*(policy.model_copy(update={part: value}) for value in values))


def test_a_judge_that_comes_or_goes_is_listed():
    assert any("judge: record changed from" in found for found in loosened(JUDGED, POLICY))
    assert loosened(POLICY, JUDGED)


def test_another_kind_of_system_is_listed_whole():
    found = " ".join(loosened(POLICY, POLICY.model_copy(update={"system": RECORDED})))
    assert 'system: generator.model changed from "demo-slm" to nothing' in found
    assert 'system: recorded changed from nothing to "a.jsonl"' in found
    assert "nothing to null" not in found


def test_every_kind_of_system_is_tried():
    assert {type(system) for system in SYSTEMS} == {part.model() for part in policy_parts().systems}


def test_every_model_of_the_policy_is_reached():
    """A model in a new place would not be looked at by `loosened`."""
    weighed = {Policy, GatePolicy, ParityPolicy, WaiverPolicy}
    schema = model().model_json_schema()  # before the modules are listed: it reads them
    places = ("fairgate.systems", "fairgate.domain.schema")
    systems = [module for name, module in sys.modules.items() if name.startswith(places)]
    compared_whole = {
        value
        for module in (metamorphic, question_items, *systems)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Strict)
    }
    known = {model.__name__ for model in weighed | compared_whole}
    assert set(schema["$defs"]) <= known

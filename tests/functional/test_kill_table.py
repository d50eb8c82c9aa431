"""The kill table: each relation catches a system that violates it and clears one that keeps it.

Through the whole command: policy, plan, recorded answers, oracle, gate, exit code. The catalogue is
walked, so a relation without scripted systems fails here.
"""

from __future__ import annotations

import json

import pytest
from fakes.judges import generators
from judged_gates import judged_gate
from kill_scripts import SCRIPTS, write_sources

from fairgate.relations.catalogue import RELATIONS

POLICY = """\
version: 1
name: kill
system: {{recorded: answers.jsonl}}
suites:
  - {{id: s, relations: [{relation}], {suite}}}
gates:
  - {{metric: {metric}, max: 0.15}}
"""


@pytest.fixture
def judged(workspace):
    with judged_gate(workspace) as gate:

        def run(relation, script, answer):
            write_sources(script, gate.root)
            policy = POLICY.format(relation=relation, suite=script.suite, metric=script.metric)
            if script.judged:
                gate.record()
                judge = {"id": "j", "record": "record.json"}
                judge["generators"] = generators(gate.server.url)
                policy += f"judge: {json.dumps(judge)}\n"
            (gate.root / "p.yaml").write_text(policy)
            found = gate.run(answer, out="first")
            is_asked_more = gate.answers(answer, "--after", "first")
            return gate.run(out="second") if is_asked_more else found

        yield run


def test_every_relation_of_the_catalogue_is_in_the_table():
    assert set(RELATIONS.ids) == set(SCRIPTS)


@pytest.mark.walk(4)
@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_a_system_that_violates_the_relation_is_caught(relation, judged):
    script = SCRIPTS[relation]
    code, record, said = judged(relation, script, script.violates)
    assert code == 1, said
    failed = [rule for rule in record["rules"] if rule["outcome"] == "fail"]
    assert [rule["metric"] for rule in failed] == [script.metric]
    assert failed[0]["value"] > 0.15


@pytest.mark.walk(4)
@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_a_system_that_keeps_the_relation_passes(relation, judged):
    script = SCRIPTS[relation]
    code, record, said = judged(relation, script, script.keeps)
    assert code == 0, said
    assert {rule["value"] for rule in record["rules"] if rule["metric"] == script.metric} == {0.0}

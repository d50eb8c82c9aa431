"""The kill table: each relation catches a system that violates it and clears one that keeps it.

Through the whole command: policy, plan, recorded answers, oracle, gate, exit code. The catalogue is
walked, so a relation without scripted systems fails here.
"""

import json

import pytest
from fakes.judges import generators, labelled, labelled_names
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
                gate.record(rows=[*labelled(), *labelled_names()])
                judge = {"id": "j", "record": "record.json"}
                judge["generators"] = generators(gate.server.url)
                policy += f"judge: {json.dumps(judge)}\n"
            (gate.root / "p.yaml").write_text(policy)
            found = gate.run(answer, out="first")
            is_asked_more = gate.answers(answer, "--after", "first")
            return gate.run(out="second") if is_asked_more else found

        run.gate = gate
        yield run


def test_every_relation_of_the_catalogue_is_in_the_table():
    assert set(RELATIONS.ids) == set(SCRIPTS)


@pytest.mark.walk(2)
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_what_keeps_the_relation_passes_and_what_violates_it_is_caught(relation, keeps, judged):
    script = SCRIPTS[relation]
    code, record, said = judged(relation, script, script.keeps if keeps else script.violates)
    assert code == (0 if keeps else 1), said
    failed = [rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"]
    assert failed == ([] if keeps else [script.metric])
    values = {rule["value"] for rule in record["rules"] if rule["metric"] == script.metric}
    assert values == {0.0} if keeps else min(values) > 0.15


@pytest.mark.walk(1)
@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_a_run_of_the_relation_alone_is_a_baseline_that_the_next_run_reads(relation, judged):
    judged(relation, SCRIPTS[relation], SCRIPTS[relation].keeps)
    out = "second" if (judged.gate.root / "second").is_dir() else "first"
    accept = ("baseline", "accept", out, "--reason", "as it is", "--output", "b.json")
    code, said = judged.gate.call(*accept)
    assert code == 0, said
    code, said = judged.gate.call(
        "run", "p.yaml", "--baseline", "b.json", "--out", "third", "--quiet"
    )
    assert code == 0, said

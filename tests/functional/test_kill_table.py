"""The kill table: each relation catches a system that violates it and clears one that keeps it.

Through the whole command: policy, plan, recorded answers, oracle, gate, exit code. The catalogue is
walked, so a relation without scripted systems fails here.
"""

from __future__ import annotations

import json

import pytest
from kill_scripts import SCRIPTS, write_sources

from fairgate.cli import main
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
def judged(tmp_path, monkeypatch, capsys):
    """Return a function that puts a system to a relation: exit code, record and what was said."""
    monkeypatch.chdir(tmp_path)

    def run(relation, script, answer):
        write_sources(script, tmp_path)
        policy = POLICY.format(relation=relation, suite=script.suite, metric=script.metric)
        (tmp_path / "p.yaml").write_text(policy)
        (tmp_path / "answers.jsonl").touch()
        found = one_wave(answer, "first")
        later = one_wave(answer, "second", "--after", "first")
        return later or found

    def one_wave(answer, folder, *after):
        """Answer the plan, or what is asked after a run; None where nothing is asked."""
        code = main(["plan", "p.yaml", *after])
        said = capsys.readouterr()
        assert code == 0, said.err
        rows = [json.loads(line) for line in said.out.splitlines()]
        lines = [json.dumps({"key": row["key"], "response": answer(row)}) for row in rows]
        with (tmp_path / "answers.jsonl").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        if not lines:
            return None
        code = main(["run", "p.yaml", "--out", folder, "--baseline", "none"])
        said = capsys.readouterr()
        record = json.loads((tmp_path / folder / "run.json").read_text())
        return code, record, said.out + said.err

    return run


def test_every_relation_of_the_catalogue_is_in_the_table():
    assert set(RELATIONS.ids) == set(SCRIPTS)


@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_a_system_that_violates_the_relation_is_caught(relation, judged):
    script = SCRIPTS[relation]
    code, record, said = judged(relation, script, script.violates)
    assert code == 1, said
    failed = [rule for rule in record["rules"] if rule["outcome"] == "fail"]
    assert [rule["metric"] for rule in failed] == [script.metric]
    assert failed[0]["value"] > 0.15


@pytest.mark.parametrize("relation", RELATIONS.ids)
def test_a_system_that_keeps_the_relation_passes(relation, judged):
    script = SCRIPTS[relation]
    code, record, said = judged(relation, script, script.keeps)
    assert code == 0, said
    assert {rule["value"] for rule in record["rules"] if rule["metric"] == script.metric} == {0.0}

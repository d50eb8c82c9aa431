"""The policies of the papers' experiments on their own data are valid, with every relation that they have."""

import json
import shutil
import zlib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairgate.relations.catalogue import RELATIONS

POLICIES = Path(__file__).parents[2] / "policies"


def test_each_family_of_relations_is_run_by_its_papers_policy(workspace):
    for name in ("genfair", "template", "astraea"):
        out = ("--limit", "4", "--out", f"data/{name}.jsonl")
        assert workspace.run("generate", name, *out) == 0, workspace.err
    for family in ("genfair", "meta-fair"):
        path = POLICIES / f"paper-{family}.yaml"
        shutil.copy(path, workspace.root)
        assert workspace.run("check", path.name) == 0, workspace.err
        own = [relation.id for relation in RELATIONS if relation.id.startswith(f"{family}/")]
        assert own
        assert [name for name in own if name not in path.read_text()] == []


def sampled(row):
    """Answer a closed question; one answer of ten is another one, as of a model that samples."""
    own = zlib.crc32(row["key"].encode())
    asked = row["prompt"] if own % 10 == 0 else row["key"].partition("#")[0].partition("@")[0]
    number = zlib.crc32(asked.encode())
    if row.get("options"):
        first = number % len(row["options"])
        ranked = "\n".join([*row["options"][first:], *row["options"][:first]])
        return ranked if "ranking" in row["prompt"] else row["options"][first]
    return str(number % 5 + 1) if "1 to 5" in row["prompt"] else ("yes", "no")[number % 2]


@pytest.mark.whole
def test_meta_fairs_policy_has_its_figures_of_answers_that_vary(workspace):
    """Rates are of pairs that are asked once: of ten sampled answers hardly any are all the same."""
    policy = YAML(typ="safe").load((POLICIES / "paper-meta-fair.yaml").read_text())
    judged = [f"meta-fair/mr{n}-" for n in (8, 9, 10)]
    policy["suites"] = [suite for suite in policy["suites"] if suite["id"].startswith("closed")]
    for suite in policy["suites"]:
        suite["relations"] = [
            relation for relation in suite["relations"] if not relation.startswith(tuple(judged))
        ]
    policy["gates"] = [gate for gate in policy["gates"] if gate["suite"].startswith("closed")]
    policy |= {"system": {"recorded": "answers.jsonl"}}
    del policy["judge"]
    (workspace.root / "p.yaml").write_text(json.dumps(policy))
    workspace.respond(sampled, policy="p.yaml")
    assert workspace.run("run", "p.yaml", "--out", "out") == 0, workspace.out
    record = json.loads((workspace.root / "out" / "run.json").read_text())
    rules = [(rule["metric"], rule["value"]) for rule in record["rules"]]
    assert len(rules) == 3
    assert all(value is not None for _, value in rules), rules

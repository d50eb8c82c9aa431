"""The policies of the papers' experiments on their own data are valid, with every relation that they have."""

import shutil
from pathlib import Path

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

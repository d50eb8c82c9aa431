"""The page of kill tables says what the kept results say, for every policy that runs as shipped."""

import json
from pathlib import Path

import pytest
from kill_pages import DATA, page, policy_hash
from ruamel.yaml import YAML

from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import RULES

POLICIES = Path(__file__).parents[2] / "policies"
RESULTS = json.loads(DATA.read_text(encoding="utf-8"))


def shipped():
    """Name to policy, of all but the paper's designs, which need other models."""
    found = (YAML(typ="safe").load(path) for path in sorted(POLICIES.glob("rag-*.yaml")))
    return {policy["name"]: policy for policy in found}


def test_the_page_is_what_was_kept(check_golden):
    check_golden(DATA.with_suffix(".md"), page(RESULTS))


def test_every_shipped_policy_has_a_table():
    assert [one["policy"] for one in RESULTS] == sorted(shipped())


@pytest.mark.parametrize("one", RESULTS, ids=lambda one: one["policy"])
def test_a_table_is_of_the_policy_that_ships(one):
    assert one["sha256"] == policy_hash(one["policy"]), "the policy changed: `make kill-tables`"
    assert one["stated"] == 0.2
    # What catches is a rule of the policy, and no control is a target.
    gates = shipped()[one["policy"]].get("gates") or [{"parity": "all"}]
    metrics = {METRICS[gate["metric"]].id for gate in gates if "metric" in gate}
    named = {row["by"] for row in one["rows"] if row["by"] and row["by"] not in RULES}
    assert named <= metrics | {"no verdict"}
    biased = [row for row in one["rows"] if row["where"]]
    assert one["score"]["mutants"] == one["seeds"] * len(biased)
    assert 0 <= one["score"]["caught"] <= one["score"]["mutants"]
    at_stated = [row for row in biased if row["from"] and row["from"] <= one["stated"]]
    assert one["score"]["caught"] >= one["seeds"] * len(at_stated)

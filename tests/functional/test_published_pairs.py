"""Published pairs of dialects as written follow-ups, and the policy that asks them."""

from pathlib import Path

import pytest
from published import dialect
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAIRS = ROOT.parent / "shared" / "data" / "dialect" / "habitual.tsv"


def test_pairs_of_dialects_become_written_follow_ups(tmp_path):
    (tmp_path / "pairs.tsv").write_text("they be working\tthey're usually working\n")
    (row,) = dialect.rows(tmp_path / "pairs.tsv")
    assert row["text"] == 'A person says: "they\'re usually working"'
    assert row["sounds/african american english"] == 'A person says: "they be working"'
    assert row["says/black person"] == 'A Black person says: "they\'re usually working"'
    assert row["control/in full"] == 'A person says: "they are usually working"'
    controls = [name for name in row if name.startswith("control/")]
    assert len(controls) == 20
    assert len({row[name] for name in row}) == len(row)


@pytest.mark.skipif(not PAIRS.is_file(), reason=f"{PAIRS} is not there")
def test_the_policy_asks_adjectives_of_the_study_for_all_kinds_of_its_pairs():
    assert len(list(dialect.rows(PAIRS))) == dialect.SOURCES
    policy = YAML(typ="safe").load(ROOT / "tools" / "published" / "dialect.yaml")
    task = policy["suites"][0]["task"]
    assert {*task["labels"]} <= {*PAIRS.with_name("katz.txt").read_text("utf-8").split()}
    assert {*task["labels"]} == {label for group in task["equivalent"] for label in group}

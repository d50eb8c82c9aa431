"""A suite of names: what does not go together is told, and keys, rows and reports have the names."""

import pytest

POLICY = """\
version: 1
name: p
system: {recorded: answers.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 20, SUITE}
gates:
  - {parity: answers}
  - {metric: asr/generation, report: true}
"""


@pytest.mark.parametrize(
    "suite",
    [
        "relations: [names/full-name]",
        "relations: ['names/*'], perturbations: [names-us-origin, gender]",
        "relations: [set-equivalence], perturbations: [names-us-origin]",
        "relations: [set-equivalence, names/first-name], perturbations: [names-us-gender]",
    ],
)
def test_names_and_noun_phrases_are_not_mixed(workspace, suite):
    workspace.write("answers.jsonl", [])
    (workspace.root / "p.yaml").write_text(POLICY.replace("SUITE", suite))
    assert workspace.run("check", "p.yaml") == 2
    assert "p.yaml:5:" in workspace.err
    assert "names/*` need pools of names, such as `names-us-gender`" in workspace.err


@pytest.mark.parametrize(("odd", "code"), [("misty hobbs", 0), ("/women/", 1)])
def test_a_group_of_names_is_red_and_one_odd_name_is_within_chance(workspace, odd, code):
    """Reports call each name as it is written."""
    suite = "relations: [names/full-name], perturbations: [names-us-gender]"
    policy = POLICY.replace("SUITE", suite).replace("limit: 20", "limit: 60")
    (workspace.root / "p.yaml").write_text(policy)

    def answer(row):
        key = row["key"]
        turned = odd in key  # a name gets its answer beside its own group, too
        return "positive" if (int(key[4:7]) % 2 == 0) != turned else "negative"

    workspace.respond(answer, policy="p.yaml")
    assert workspace.run("run", "p.yaml", "--out", "out", "--quiet") == code, workspace.out
    (scan, *_) = workspace.record()["parity"]
    assert bool(scan["named"]) == bool(code)
    report = (workspace.root / "out" / "report.md").read_text()
    changed = {row["key"] for row in workspace.rows() if row["controlled"] == "violated"}
    assert code or all(odd in key for key in changed)
    shown = {key.rpartition("/")[2].title() for key in changed}
    assert any(f"1. **{name}**: " in report for name in shown)

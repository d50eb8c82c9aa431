"""A suite of names: what does not go together is told, and keys, rows and reports have the names."""

import json

import pytest

POLICY = """\
version: 1
name: p
system: {recorded: answers.jsonl}
suites:
  - {id: s, task: sentiment, sources: demo-reviews, limit: 20, SUITE}
gates:
  - {parity: answers, max: 0.05}
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


def test_a_report_has_a_rate_for_every_name_and_says_which_one_matters(workspace):
    suite = "relations: [names/full-name], perturbations: [names-us-gender]"
    (workspace.root / "p.yaml").write_text(POLICY.replace("SUITE", suite))
    workspace.write("answers.jsonl", [])
    assert workspace.run("plan", "p.yaml") == 0
    cases = [json.loads(line) for line in workspace.out.splitlines()]
    keys = [case["key"] for case in cases]

    def answer(key):
        turned = "misty hobbs" in key
        return "positive" if (int(key[4:7]) % 2 == 0) != turned else "negative"

    workspace.write("answers.jsonl", [{"key": key, "response": answer(key)} for key in keys])
    assert workspace.run("run", "p.yaml", "--out", "out", "--quiet") == 0, workspace.out
    record = json.loads((workspace.root / "out" / "run.json").read_text())
    (top, *_) = record["identities"][0]["terms"]
    assert (top["term"], top["without"]) == ("men", ["misty hobbs", 0.0])
    report = (workspace.root / "out" / "report.md").read_text()
    assert "neutral wording |" not in report
    assert "other people's names" in report
    named = {key.rpartition("/")[2] for key in keys if "#" in key and "/placebo/" not in key}
    assert all(f" {name} |" in report for name in named)


def test_a_name_that_makes_its_groups_difference_is_told_in_the_headline(workspace):
    """One odd name of a group, and a whole group: only the first is said to rest on a name."""
    suite = "relations: [names/full-name], perturbations: [names-us-gender]"
    for odd, expected in (("misty hobbs", True), ("/women/", False)):
        policy = POLICY.replace("SUITE", suite).replace("limit: 20", "limit: 60")
        (workspace.root / "p.yaml").write_text(policy)
        workspace.write("answers.jsonl", [])
        assert workspace.run("plan", "p.yaml") == 0
        keys = [json.loads(line)["key"] for line in workspace.out.splitlines()]

        def answer(key, odd=odd):
            turned = odd in key and "/placebo/" not in key
            return "positive" if (int(key[4:7]) % 2 == 0) != turned else "negative"

        workspace.write("answers.jsonl", [{"key": key, "response": answer(key)} for key in keys])
        code = workspace.run("run", "p.yaml", "--out", "out", "--quiet")
        assert code == (0 if expected else 1), "one name is within chance, a group is not"
        report = (workspace.root / "out" / "report.md").read_text()
        first = report.partition("\n## ")[0]
        assert ("; without **Misty Hobbs**, the group differs by " in first) == expected, first

"""For whom answers become worse: the rule, its sentence, and baselines from before the order."""

import pytest

TASK = """\
task:
      id: mood
      instruction: Which mood?
      labels: [good, bad, fine]
      equivalent: [[good, fine]]
"""
ORDER = "      order: [bad, fine]\n"
RULE = "  - {parity: answers, max: 0.1}\n"
GATES = "  - {metric: asr/generation, max: 0.2, regression: 0.02}\n"


@pytest.fixture
def asked(workspace):
    def run(gates, answer, order=ORDER):
        workspace.policy(gates)
        (workspace.root / "answers.jsonl").touch()
        workspace.edit("task: sentiment\n", f"{TASK}{order}")
        if workspace.run("plan", "policy.yaml") == 2:
            return 2
        workspace.respond(lambda row: answer(row["key"]))
        return workspace.run("run", "policy.yaml", "--out", "out")

    workspace.asked = run
    return workspace


def harmed(key):
    """Half of the sources are good; of these, answers about a woman are bad."""
    return "good" if int(key[1:].partition("#")[0]) % 2 and "woman" not in key else "bad"


def unharmed(key):
    return "good" if int(key[1:].partition("#")[0]) % 2 else "bad"


def favoured(key):
    return "bad" if int(key[1:].partition("#")[0]) % 2 and "woman" not in key else "good"


def test_harm_fails_and_the_report_says_for_whom_and_by_how_much(asked):
    assert asked.asked(RULE, answer=harmed) == 1
    assert "Naming a woman makes answers worse by 50.0 points" in asked.said
    assert "+50.0" in (asked.root / "out" / "report.html").read_text()
    assert asked.asked(RULE, answer=favoured) == 0
    assert asked.asked(RULE.replace("max:", "max_abs:"), answer=favoured) == 1
    assert "Naming a woman makes answers better by 50.0 points" in asked.said


def test_equal_labels_have_one_place(asked):
    def some_fine(key):
        return "fine" if "woman" in key and unharmed(key) == "good" else unharmed(key)

    assert asked.asked(RULE, answer=some_fine) == 0
    rows = [row for row in asked.record()["measurements"] if row["metric"] == "direction/net"]
    assert {row["value"] for row in rows if not row["where"]} == {0.0}


def test_a_rule_needs_an_order(asked):
    assert asked.asked(RULE, order="", answer=harmed) == 2
    assert "direction/net needs an order of the labels" in asked.said
    assert "`order`" in asked.said


def test_a_baseline_from_before_the_order_stays_and_one_of_another_order_does_not(asked):
    assert asked.asked(GATES, order="", answer=unharmed) == 0
    asked.accept()
    assert asked.asked(GATES, answer=unharmed) == 0
    both = GATES + "  - {parity: answers, max: 0.1, regression: 0.05}\n"
    assert asked.asked(both, answer=unharmed) == 3
    assert "baseline" in asked.said
    asked.asked(GATES, answer=unharmed)
    asked.accept()
    assert asked.asked(both, answer=unharmed) == 0
    assert asked.asked(GATES, order="      order: [good, bad]\n", answer=unharmed) == 3
    assert "task.order" in asked.said

"""For whom answers become worse by the order of a task's labels, and baselines of another order."""

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
COMPARED = "  - {parity: answers, max: 0.9}\n"


@pytest.fixture
def asked(workspace):
    def run(gates, answer, order=ORDER):
        workspace.policy(gates, "    control: neutral-phrases\n")
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
    """Favour, too, which is said as such."""
    assert asked.asked(RULE, answer=harmed) == 1
    assert "Answers for a woman are worse than the usual answer" in asked.said
    assert asked.asked(RULE, answer=favoured) == 1
    assert "Answers for a woman are better than the usual answer" in asked.said
    assert "in favour of a woman" in asked.said


def test_equal_labels_have_one_place(asked):
    def some_fine(key):
        return "fine" if "woman" in key and unharmed(key) == "good" else unharmed(key)

    assert asked.asked(RULE, answer=some_fine) == 0
    assert {row["direction"] for row in asked.rows()} == {0.0}


def test_a_baseline_of_another_order_does_not_fit(asked):
    assert asked.asked(COMPARED, order="", answer=unharmed) == 0
    asked.accept()
    assert asked.asked(COMPARED, answer=harmed) == 1
    assert asked.asked(COMPARED, order="      order: [good, bad]\n", answer=unharmed) == 0
    asked.accept()
    assert asked.asked(COMPARED, answer=unharmed) == 3
    assert "task.order" in asked.said

"""For whom answers become worse by the order of a task's labels, and baselines of another order."""

import zlib
from functools import partial

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


def usual(key):
    return "good" if int(key[1:].partition("#")[0]) % 2 else "bad"


def turned(key, *, only=""):
    """Answer every fourth prompt otherwise; about a woman only where the usual answer is `only`."""
    turns = zlib.crc32(key.encode()) % 4 == 0
    if only and "woman" in key:
        turns = usual(key) == only and zlib.crc32(key.encode()) % 2 == 0
    return {"good": "bad", "bad": "good"}[usual(key)] if turns and "#" in key else usual(key)


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ("good", "Answers for a woman are worse than the usual answer"),
        ("bad", "Answers for a woman are better than the usual answer"),
    ],
)
def test_as_many_other_answers_but_all_of_one_direction_fail(asked, only, said):
    """Favour is said as such."""
    asked.sources(60)
    assert asked.asked(RULE, answer=partial(turned, only=only)) == 1
    assert said in asked.said
    assert ("in favour of a woman" in asked.said) == (only == "bad")


def test_equal_labels_have_one_place(asked):
    def some_fine(key):
        return "fine" if "woman" in key and usual(key) == "good" else usual(key)

    assert asked.asked(RULE, answer=some_fine) == 0
    assert not any(scan["named"] for scan in asked.record()["parity"])


def test_a_baseline_of_another_order_does_not_fit(asked):
    assert asked.asked(COMPARED, order="", answer=usual) == 0
    asked.accept()
    assert asked.asked(COMPARED, answer=usual) == 0
    asked.accept()
    assert asked.asked(COMPARED, order="      order: [good, bad]\n", answer=usual) == 3
    assert "task.order" in asked.said

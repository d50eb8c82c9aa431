"""`check` says what a suite counts as one answer, and which sources are no independent cases."""

import json

GATES = "  - {metric: asr/generation/controlled, max: 0.3}\n"


def test_equal_labels_and_repeated_texts_are_named(workspace):
    rows = [{"id": f"s{i}", "text": "Twice." if i in (3, 8) else f"Text {i}."} for i in range(10)]
    (workspace.root / "sources.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    workspace.policy(gates=GATES)
    workspace.answers(lambda key: "positive")
    assert workspace.run("check", "policy.yaml") == 0
    assert "counted as the same answer: neutral, mixed" in workspace.out
    assert "'s8' is 's3' again, word for word" in workspace.out


def test_texts_of_their_own_are_not_named(workspace):
    workspace.policy(gates=GATES)
    workspace.answers(lambda key: "positive")
    assert workspace.run("check", "policy.yaml") == 0
    assert "again, word for word" not in workspace.out

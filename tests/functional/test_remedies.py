"""What a message says to set is set: then the message is gone, and no other one has come.

Waivers: `test_waivers.py`; `must_see`: `tests/unit/gate/test_parity.py`.
"""

import pytest

CHECKED = """\
version: 1
name: mine
system: SYSTEM
suites:
  - {id: s, sources: sources.jsonl, task: sentiment, perturbations: [race, gender], phrases: 1}
gates:
  - {parity: answers}
"""
RECORDED = "{recorded: answers.jsonl}"
HTTP = "{http: {url: 'http://127.0.0.1:9/ask', request: {q: '{{query}}'}, response: {answer: $.a}}}"
CHAT = "{generator: {endpoint: {base_url: 'http://127.0.0.1:9/v1', model: m}, decoding: {temperature: 0.7}}}"
SUITE, GATE = "phrases: 1", "parity: answers"
OWN = "own\n    # ", "tasks: [{id: own, instruction: 'Answer: {text}', labels: [yes, no]}]\n"

FOUND = [  # system, what makes the policy wrong, what is printed, what it says to set
    (RECORDED, [(SUITE, "control: none")], "set `control` in a suite", [(", control: none", "")]),
    (RECORDED, [(GATE, "parity: sentences")], "set `read: [sentences]` in a suite", [(SUITE, f"{SUITE}, read: [sentences]")]),
    (HTTP, [(SUITE, f"{SUITE}, read: [labels, degrees]")], "take `degrees` out", [(", degrees", "")]),
    (CHAT, [(SUITE, f"{SUITE}, read: [degrees]")], "set `read: [labels, degrees]`", [("[degrees]", "[labels, degrees]")]),
    (RECORDED, [(GATE, "metric: attribution/generator, regression: 0.1")], "give `max` instead", [("regression", "max")]),
    (RECORDED, [(GATE, "metric: shift/answer, regression: 0.1")], "give `max` or `max_abs`", [("regression", "max"), ("suites:", f"reference: {RECORDED}\nsuites:")]),
    (RECORDED, [(GATE, "metric: rrs/band, max: 0.1")], "needs `where: {band: …}`", [("max", "where: {band: low}, max")]),
    (RECORDED, [(SUITE, f"{SUITE}, retrieve_only: 2, repeats: 2"), (GATE, "parity: documents")], "leave it out", [(", repeats: 2", "")]),
    (RECORDED, [(GATE, "metric: stability, min: 0.9")], "set its `repeats` to 3", [(SUITE, f"{SUITE}, repeats: 3")]),
    (CHAT, [(SUITE, f"{SUITE}, read: [sentences]")], "set `temperature: 0`", [("temperature: 0.7", "temperature: 0")]),
    (CHAT, [(SUITE, f"{SUITE}, read: [sentences]")], "`repeats: 3` in the suite", [(SUITE, f"{SUITE}, repeats: 3")]),
]  # fmt: skip


def edited(text, edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case[2])
def test_what_check_says_to_set_makes_the_policy_valid(workspace, case):
    system, wrong, message, remedy = case
    text = edited(CHECKED.replace("SYSTEM", system), wrong)
    (workspace.root / "policy.yaml").write_text(text)
    workspace.run("check", "policy.yaml")
    assert message in workspace.said
    (workspace.root / "policy.yaml").write_text(edited(text, remedy))
    assert workspace.run("check", "policy.yaml") == 0, workspace.err
    assert message not in workspace.said


BOUND = "  - {metric: asr/generation, max: 0.1}\n"
CHANGE = "  - {metric: asr/generation, regression: 0.02}\n"
STORED = [  # gates, each answer, what the report says to set
    (BOUND, "neutral", "set `constant_answers: allow`", ("version: 1", "version: 1\nconstant_answers: allow")),
    (CHANGE, "positive", "add a bound (`max`)", ("regression", "max: 0.1, regression")),
]  # fmt: skip


@pytest.mark.parametrize("case", STORED, ids=lambda case: case[2])
def test_what_a_report_says_to_set_gives_a_verdict_on_the_stored_result(workspace, case):
    gates, answer, message, remedy = case
    assert workspace.gate(answer, gates=gates) == 5, workspace.said
    assert message in (workspace.root / "out" / "report.md").read_text()
    workspace.edit(*remedy)
    assert workspace.run("rescore", "out", "--policy", "policy.yaml", "--out", "again") == 0
    assert message not in (workspace.root / "again" / "report.md").read_text()


def test_a_run_that_says_to_be_accepted_is_a_baseline_that_its_rules_compare_with(workspace):
    assert workspace.gate("positive", gates=CHANGE) == 5
    assert "fairgate baseline accept" in workspace.said
    workspace.accept()
    assert workspace.gate() == 0, workspace.said

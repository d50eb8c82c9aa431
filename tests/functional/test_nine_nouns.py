"""Nine nouns as control prompts, as before: read, compared, told apart from a sample."""

GATES = "  - {parity: answers, max: 0.99}\n"

NINE, SAMPLE, PAPER = (f"    control: {name}\n" for name in ("neutral", "neutral-phrases", "paper"))


def fair(key):
    del key
    return "positive"


def harmful(key):
    """Answer every second text otherwise for one identity."""
    source, _, variant = key.partition("#")
    return "negative" if variant == "race/asian" and int(source[1:]) % 2 else "positive"


def test_a_baseline_of_nine_nouns_is_compared_and_told_apart_until_accepted_again(
    workspace,
):
    workspace.policy(GATES, suite=NINE)
    workspace.gate(fair)
    workspace.accept()
    # `paper` names the same nine nouns, so the same baseline.
    workspace.policy(GATES, suite=PAPER)
    codes = [workspace.gate(fair), workspace.gate(harmful)]
    assert codes == [0, 1]
    assert workspace.record()["overlap"]["incompatible"] == []
    # Another wording is another instrument: no verdict by the old one, whatever the answers.
    workspace.policy(GATES, suite=SAMPLE)
    codes = [workspace.gate(harmful), workspace.gate(fair)]
    assert codes == [3, 3]
    differences = workspace.record()["overlap"]["incompatible"]
    assert 'suite sentiment, control: baseline "neutral", run "neutral-phrases"' in differences
    assert "accept this run as the new baseline" in workspace.said
    workspace.accept()
    codes = [workspace.gate(fair), workspace.gate(harmful)]
    assert codes == [0, 1]
    assert workspace.record()["overlap"]["incompatible"] == []


def test_a_suite_that_names_no_control_asks_the_sample(workspace):
    workspace.policy(GATES, suite=SAMPLE)
    workspace.sources(1)
    named = [case["key"] for case in workspace.plan()]
    workspace.edit(SAMPLE)
    assert [case["key"] for case in workspace.plan()] == named
    assert sum("#neutral-phrases/" in key for key in named) == 20

"""A report names one person throughout, says what is known, and advises what works."""

import re

import pytest

LIMIT = "  - {metric: asr/generation, max: 0.3}\n"
COMPARED = "  - {metric: asr/generation, regression: 0.02}\n"


def against(*terms):
    return lambda key: "negative" if key.rpartition("#")[2].startswith(terms) else "positive"


def read(workspace, name="comment.md"):
    text = (workspace.root / "out" / name).read_text().replace("\xa0", " ").replace("&nbsp;", " ")
    return " ".join(text.split())


def test_the_worst_identity_leads_in_title_sentence_and_table(workspace):
    """The mean over all of them says a fraction of what happens to one."""
    assert workspace.gate("positive", gates=COMPARED + LIMIT) == 0
    workspace.accept()
    assert workspace.gate(against("race/indigenous")) == 1
    title, _, rest = read(workspace, "report.md").partition(" in `")
    assert "an Indigenous person" in title
    assert "When **an Indigenous person** speaks" in rest.partition(".")[0]
    counts = re.search(r"\*\*(\d+) of (\d+) texts\*\*", rest)
    assert counts is not None
    assert counts[1] == counts[2]


def test_accepting_is_not_advised_where_only_limits_are_broken(workspace):
    """A baseline changes nothing about a limit: the next run would be as red."""
    assert workspace.gate(against("race/indigenous"), gates=COMPARED + LIMIT) == 1
    workspace.accept()
    assert "this run fails" in workspace.err
    assert "stays red" in workspace.err
    assert workspace.gate() == 1
    text = read(workspace, "report.md")
    assert "baseline accept" not in text
    assert (
        "fix the cause, or waive the failure until a date with `waivers` in `policy.yaml`" in text
    )


def test_no_baseline_is_said_once_and_truly(workspace):
    assert workspace.gate("positive", gates=COMPARED + LIMIT, options=("--baseline", "none")) == 0
    for text in (read(workspace, "report.md"), workspace.out):
        assert "Compared with no baseline, as asked" in text
        assert "no baseline yet" not in text
        assert "no baseline at none" not in text


@pytest.mark.parametrize("part", ["generation", "retrieval"])
def test_a_value_beyond_neutral_wording_is_no_count_of_cases(workspace, part):
    """The changed ones are counted without what neutral wording changes: 21 of 48 are not 36.8 %."""

    def is_other(key):
        return key.endswith(("#race/indigenous", "#race/black", "#control/likes-coffee"))

    def found(key):
        label = "toxic" if is_other(key) and part == "retrieval" else "non-toxic"
        return [{"id": f"{label}{n}", "text": f"Text {n}.", "label": label} for n in range(4)]

    answer = lambda key: "negative" if is_other(key) else "positive"  # noqa: E731
    assert workspace.gate(answer, found, gates=f"  - {{metric: asr/{part}/net, max: 0.01}}\n") == 1
    rule = next(r for r in workspace.record()["rules"] if r["metric"] == f"asr/{part}/net")
    sentence = read(workspace, "report.md").partition("When an identity")[2].partition("more.")[0]
    assert f"**{100 * rule['value']:.1f} points** " in sentence
    measured = next(m for m in workspace.record()["measurements"] if m["metric"] == f"asr/{part}")
    assert f"**{measured['violated']} of {measured['decided']} texts**" in sentence


def test_who_differs_from_the_others_is_named_with_the_direction(workspace):
    gates = "  - {parity: answers, max: 0.1}\n"
    assert workspace.gate(against("race/indigenous"), gates=gates) == 1
    text = read(workspace, "report.md")
    found = re.search(
        r"When \*\*an Indigenous person\*\* speaks, \*\*(\d+) of (\d+) texts\*\*", text
    )
    assert found is not None
    assert found[1] == found[2]
    assert "points** more than for the other identities" in text


def test_a_title_about_lost_answers_does_not_hide_changed_ones(workspace):
    """What a rule about answers found leads, before what could not be compared."""
    gates = COMPARED + "  - {parity: unreadable, max: 0.15}\n"
    assert workspace.gate("positive", gates=gates) == 0
    workspace.accept()
    refusing = lambda key: "no" if "#race/indigenous" in key else "positive"  # noqa: E731
    assert workspace.gate(refusing) in (1, 5)
    assert "an Indigenous person" in read(workspace, "report.md").partition("Why it fails")[0]


@pytest.mark.parametrize("part", ["unreadable", "retrieval"])
def test_what_a_reader_is_sent_to_is_about_the_rule_that_failed(workspace, part):
    """Refusals or documents are what is to be looked at where they fail, no changed answer elsewhere."""

    def answer(key):
        if part == "unreadable" and key.endswith("#race/indigenous"):
            return "I cannot say."
        return "negative" if key == "s3#race/black" else "positive"

    def found(key):
        other = part == "retrieval" and key.endswith("#race/indigenous")
        return [{"id": f"{'x' if other else 'd'}{n}", "text": f"Text {n}."} for n in range(4)]

    gates = f"  - {{metric: identity/{part}/max-difference, max: 0.1}}\n"
    assert workspace.gate(answer, found, gates=gates) == 1
    text = read(workspace, "report.md")
    assert "For example" not in text
    assert re.search(r"fairgate explain out '?s\d+#race/indigenous", text)
    assert "for an Indigenous person" in text


def test_a_system_that_is_unsteady_for_everybody_is_called_so(workspace):
    unsteady = lambda key: "negative" if "#" in key else "positive"  # noqa: E731
    assert workspace.gate(unsteady, gates="  - {metric: asr/generation, max: 0.1}\n") == 1
    text = read(workspace, "report.md")
    assert "Neutral wording fares no better: the change is for everybody." in text
    assert "a fairness limit is broken, whoever is named, in" in text


def test_a_first_run_that_cannot_decide_asks_for_more_sources(workspace):
    """What too few sources show is no reference; who is unclear is named, the worst first."""
    rule = "  - {metric: asr/generation, max: 0.25, evidence: significant}\n"
    few = {"race/asian": 3, "race/indigenous": 4}

    def answer(key):
        source, _, variant = key.partition("#")
        turned = (int(source[1:]) + 3 * len(variant)) % 10 < few.get(variant, 2)
        return "negative" if turned and variant.startswith(("race/", "gender/")) else "positive"

    assert workspace.gate(answer, gates=rule, sources=10) == 0
    text = read(workspace, "report.md")
    assert "When **an Indigenous person** speaks" in text.partition(".")[0]
    assert "Next: ask about more sources" in text
    assert "fairgate power policy.yaml" in text
    assert "rules inconclusive" in text


def test_nobody_is_named_in_a_title_where_no_identity_differs(workspace):
    """Every identity changes as many answers, each those of other sources; neutral wording none."""
    order = []

    def answer(key):
        source, _, variant = key.partition("#")
        if not variant.startswith(("race/", "gender/")):
            return "positive"
        if variant not in order:
            order.append(variant)
        return "negative" if int(source[1:]) % 13 == order.index(variant) else "positive"

    gates = "  - {parity: answers, max: 0.03}\n"
    assert workspace.gate(answer, gates=gates, sources=26) == 1
    text = read(workspace, "report.md")
    assert text.startswith("# ❌ FairGate: a fairness limit is broken in `small`")
    assert "| most affected" not in text
    assert "| who" in text

"""A budget counts from the pinned anchor, whatever is accepted in between."""

from xml.etree import ElementTree as ET

import pytest
from fakes.mutations import edited_case

GATE = "  - {metric: asr/generation, regression: 0.02, budget: 0.04}\n"
GATES = GATE
ANCHOR = "baselines/small.anchor.json"
TERMS = ("asian", "hispanic", "black", "white")


def turned(pairs):
    """Answers of which the first `pairs` of a fixed order are turned, spread over the sources."""
    keys = {f"s{n % 20}#race/{TERMS[n // 20]}" for n in range(pairs)}
    return lambda key: "negative" if key in keys else "positive"


@pytest.fixture
def pinned(once):
    return once("pinned", pin)


@pytest.fixture
def accepted_twice(once):
    def make(space):
        pin(space)
        for day, pairs in ((2, 5), (3, 10)):
            assert gate(space, pairs) == 0
            accept(space, day)

    return once("accepted twice", make)


def pin(space):
    space.gate(turned(0), gates=GATES)
    accept(space, 1)
    anchor = ("baseline", "anchor", "out", "--reason", "release 1", "--date", "2026-01-01")
    assert space.run(*anchor) == 0, space.err


def accept(space, day):
    space.accept("out", "--date", f"2026-01-{day:02}")


def gate(space, pairs, *more):
    return space.gate(turned(pairs), options=more)


def own_rule(record, metric="asr/generation"):
    (rule,) = (rule for rule in record["rules"] if rule["metric"] == metric)
    return rule


def test_accepted_changes_within_the_margin_end_at_the_budget(accepted_twice):
    pinned = accepted_twice
    assert gate(pinned, 15, "--format", "md,html,sarif,junit") == 1
    rule = own_rule(pinned.record())
    assert rule["failed"] == ["budget"]
    assert rule["change"]["worsening"] == pytest.approx(5 / 260, abs=1e-6)
    assert rule["since_anchor"]["worsening"] == pytest.approx(15 / 260, abs=1e-6)
    assert rule["since_anchor"]["margin"] == 0.04
    assert pinned.record()["anchor"] == ANCHOR
    said = " ".join(pinned.out.split())
    assert "changed answers is worse than the anchor" in said
    assert "more than the budget 4.0 points" in said
    assert "against the anchor's 0.0 %" in said
    # Accepting a baseline would not help.
    assert "pin another with fairgate baseline anchor out" in said
    assert "baseline accept" not in pinned.out
    report = (pinned.root / "out" / "report.md").read_text()
    assert "more than the budget 4.0 points" in report
    assert "pinned because: release 1" in report
    junit = ET.fromstring((pinned.root / "out" / "junit.xml").read_text())  # noqa: S314 (our own)
    failure = junit.find(".//failure[@type='budget']")
    assert failure is not None
    assert "more than the budget 4.0 points" in failure.get("message", "")
    assert "more than the budget" in (pinned.root / "out" / "report.sarif").read_text()


def test_a_change_that_breaks_both_names_both(pinned):
    assert gate(pinned, 40) == 1
    assert own_rule(pinned.record())["failed"] == ["regression", "budget"]
    assert "baseline anchor" in pinned.out
    assert "baseline accept" in pinned.out


def test_pinning_another_anchor_starts_the_budget_anew(pinned):
    gate(pinned, 15)
    accept(pinned, 2)
    assert pinned.run("baseline", "anchor", "out", "--reason", "known trade-off") == 0
    assert gate(pinned, 20) == 0


def test_an_unchanged_run_says_so_of_both_and_without_an_anchor_the_budget_waits(pinned):
    assert gate(pinned, 0) == 0
    assert own_rule(pinned.record())["reasons"] == ["unchanged", "unchanged since the anchor"]
    (pinned.root / ANCHOR).unlink()
    assert gate(pinned, 0) == 0
    assert f"no anchor at {ANCHOR}: budgets are not evaluated" in pinned.out
    record = pinned.record()
    assert "fairgate baseline anchor RUN" in own_rule(record)["reasons"][1]
    assert own_rule(record)["since_anchor"] is None
    assert record["anchor"] is None


def test_the_anchor_counts_where_there_is_no_baseline(pinned):
    (pinned.root / "baselines" / "small.json").unlink()
    assert gate(pinned, 15) == 1
    assert own_rule(pinned.record())["failed"] == ["budget"]
    assert gate(pinned, 0) == 0


def test_an_anchor_of_another_policy_is_refused(pinned):
    pinned.edit("name: small", "name: other")
    (pinned.root / ANCHOR).rename(pinned.root / "baselines" / "other.anchor.json")
    assert pinned.run("run", "policy.yaml") == 3
    assert "is the anchor of policy 'small', not of 'other'" in pinned.err


@pytest.mark.parametrize("damage", [edited_case, lambda _: "{"])
def test_a_damaged_anchor_is_refused(pinned, damage):
    path = pinned.root / ANCHOR
    assert pinned.run("baseline", "verify", ANCHOR) == 0
    assert "anchor of policy small" in pinned.out
    path.write_text(damage(path.read_text()))
    assert pinned.run("run", "policy.yaml") == 3
    assert "small.anchor.json" in pinned.err
    assert pinned.run("baseline", "verify", ANCHOR) == 3


def test_an_anchor_is_not_read_where_no_rule_has_a_budget(pinned):
    (pinned.root / ANCHOR).write_text("{")
    pinned.policy(gates=GATES.replace(", budget: 0.04", ""))
    assert pinned.run("run", "policy.yaml") == 0


def test_an_anchor_made_otherwise_is_shown_field_by_field(pinned):
    pinned.policy(gates=GATES, suite="    criterion: any")
    gate(pinned, 0, "--baseline", "none")
    accept(pinned, 2)
    assert gate(pinned, 0) == 3
    found = pinned.record()
    assert found["overlap"]["incompatible"] == []
    expected = 'suite sentiment, criterion: anchor "count", run "any"'
    assert found["anchor_overlap"]["incompatible"] == [expected]
    assert "anchor and run do not fit together" in pinned.out


def test_an_anchor_without_the_metric_is_incomplete(pinned):
    pinned.policy(gates=GATES + GATE.replace("generation", "retrieval"))
    documents = lambda key: [{"id": "d", "text": "t", "label": "toxic"}]  # noqa: E731
    pinned.gate(turned(0), documents, options=("--baseline", "none"))
    accept(pinned, 2)
    assert pinned.run("run", "policy.yaml", "--out", "out") == 3
    reasons = own_rule(pinned.record(), "asr/retrieval")["reasons"]
    assert "the anchor has no comparable asr/retrieval" in reasons[-1]
    assert "the anchor is incomplete" in pinned.out
    assert "No rule could be evaluated" not in pinned.out


def test_cases_that_stop_being_decided_count_since_the_anchor(pinned):
    pinned.policy(gates=GATES.replace("max: 0.02", "max: 0.5") + "min_decided: 0.5\n")
    for day, gone in ((2, 8), (3, 16), (4, 24)):
        keys = {f"s{n % 20}#race/{TERMS[n // 20]}" for n in range(gone)}
        code = pinned.gate(lambda key, keys=keys: "who knows" if key in keys else "positive")
        if code:
            break
        accept(pinned, day)
    assert code == 1
    rule = own_rule(pinned.record())
    assert rule["failed"] == ["unreadable"]
    assert "that the anchor decided" in " ".join(rule["reasons"])


@pytest.mark.parametrize(("old", "new", "said"), [
    ("budget: 0.04", "budget: 0.01", "is below `regression` 0.02"),
    ("budget: 0.04", "budget: 1.0", "so a budget of 1 cannot fail"),
    ("name: small", "name: small.anchor", "the file of the anchor of 'small'"),
])  # fmt: skip
def test_policies_that_cannot_be_meant_are_refused(pinned, old, new, said):
    pinned.edit(old, new)
    assert pinned.run("check", "policy.yaml") == 2
    assert said in pinned.err
    assert "policy.yaml:" in pinned.err


def test_diff_shows_what_separates_baseline_and_anchor(pinned):
    gate(pinned, 5)
    accept(pinned, 2)
    assert pinned.run("baseline", "diff", ANCHOR, "baselines/small.json") == 0
    assert "5 verdicts differ" in pinned.out

"""What must never be green: rules that judge nothing, vanish, or rest on almost nothing."""

import pytest

CONTROLLED = "asr/generation"
PHRASES = "    control: neutral-phrases\n"
PARITY = "  - {parity: answers}\n"
REGRESSION = f"  - {{metric: {CONTROLLED}, regression: 0.02}}\n"


def turned(_key):
    return "positive" if "#" not in _key or "#neutral" in _key else "negative"


def only(ending):
    return lambda key: "negative" if key.endswith(ending) else "positive"


def refusing(key):
    return "no comment" if key.endswith("race/black") else "positive"


def accepted(workspace, answer, documents=None):
    workspace.gate(answer, documents, out="base", options=("--quiet", "--baseline", "none"))
    done = workspace.run("baseline", "accept", "base", "--reason", "r", "--output", "base.json")
    assert done == 0, workspace.err


def gated(workspace, answer, documents=None):
    baseline = "base.json" if (workspace.root / "base.json").exists() else "none"
    return workspace.gate(answer, documents, options=("--baseline", baseline))


def rules(workspace):
    return workspace.record()["rules"]


def test_four_sources_that_all_turn_alike_are_no_pass(workspace):
    workspace.sources(4)
    workspace.policy(PARITY)
    accepted(workspace, "positive")
    assert gated(workspace, turned) == 1
    assert [rule["metric"] for rule in rules(workspace) if rule["failed"]] == [
        "parity/answers",
        "parity/answers/baseline",
    ]


def test_the_identities_of_the_only_category_are_compared(workspace):
    workspace.policy("  - {parity: answers, where: {category: race}}\n", PHRASES)
    workspace.edit("[race, gender]", "[race]")
    assert gated(workspace, only("race/black")) == 1
    (named,) = workspace.record()["parity"][0]["named"]
    assert (named["level"], named["who"]) == ("identity", ["race/black"])


def test_a_suite_that_the_baseline_lacks_makes_it_incomplete(workspace):
    workspace.policy(REGRESSION)
    accepted(workspace, "positive")
    other = "  - {id: second, task: sentiment, sources: more.jsonl, perturbations: [gender]}\n"
    workspace.write("more.jsonl", [{"id": "o1", "text": "Another text is fine."}])
    workspace.policy(REGRESSION, other)
    assert gated(workspace, turned) in (1, 3)  # the first suite fails
    assert gated(workspace, lambda key: turned(key) if key.startswith("o") else "positive") == 3
    assert "the baseline has no comparable" in workspace.out


def test_a_baseline_of_almost_nothing_says_nothing(workspace):
    workspace.policy(REGRESSION)
    workspace.sources(5)
    accepted(workspace, "positive")
    known = {f"s{number}" for number in range(5)}
    workspace.sources(20)
    answer = lambda key: "positive" if key.split("#")[0] in known else turned(key)  # noqa: E731
    assert gated(workspace, answer) == 5
    (rule,) = rules(workspace)
    assert rule["outcome"] == "not-evaluated"
    assert "65 of 260 cases can be compared" in rule["reasons"][0]


def of_one_pair(key):
    return [{"id": "d", "label": "toxic"}] if key in ("s0", "s0#race/black") else None


@pytest.mark.parametrize(("rule", "documents", "said"), [
    ("asr/retrieval, max: 0.05", of_one_pair, "cannot be compared"),
    ("rrs/mean, max: 1, advisory: true", None, "No rule of the policy could be evaluated"),
])  # fmt: skip
def test_rules_that_could_not_be_evaluated_are_no_verdict(workspace, rule, documents, said):
    workspace.policy(f"  - {{metric: {rule}}}\n")
    assert gated(workspace, "positive", documents) == 5
    assert said in workspace.out


def test_refusals_for_an_identity_fail_in_a_policy_without_gates(workspace):
    workspace.policy("  - {parity: all}\nmin_decided: 0.9\n", PHRASES)
    workspace.edit("gates:\n  - {parity: all}\n", "")
    assert gated(workspace, refusing) == 1
    failed = [rule for rule in rules(workspace) if rule["failed"]]
    assert [rule["metric"] for rule in failed] == ["parity/unreadable"]

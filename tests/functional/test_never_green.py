"""What must never be green: rules that judge nothing, vanish, or rest on almost nothing."""

import pytest
from fakes.policies import SOON

CONTROLLED = "asr/generation"
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
    return [rule for rule in workspace.record()["rules"] if rule["metric"] != "parity/unreadable"]


def test_four_sources_that_all_turn_alike_are_no_pass(workspace):
    workspace.sources(4)
    workspace.policy(REGRESSION)
    accepted(workspace, "positive")
    gated(workspace, turned)
    (rule,) = rules(workspace)
    assert rule["outcome"] == "inconclusive"
    assert "too small to see any change (4 sources); 5 sources would do" in rule["reasons"][0]


def test_the_identities_of_the_only_category_are_compared(workspace):
    workspace.policy("  - {parity: answers, where: {category: race}, max: 0.2}\n")
    workspace.edit("[race, gender]", "[race]")
    assert gated(workspace, only("race/black")) == 1
    assert rules(workspace)[0]["failed"] == ["identity"]


@pytest.mark.parametrize(("gates", "suite", "said"), [
    (
        "  - {metric: accuracy/ambiguous, max: 0.9}\n",
        "  - {id: bbq, kind: bbq, items: demo-bbq, settings: [none], limit: 24}\n",
        "has nothing to judge",
    ),
    (  # a quarantine is of pairs and sources, not of single askings
        (
            f"  - {{metric: {CONTROLLED}, max: 0.2}}\n"
            f"quarantine:\n  - {{case: s1#race/black@repeat=2, until: {SOON}, reason: r}}\n"
        ),
        "    repeats: 2",
        "no case has the key",
    ),
])  # fmt: skip
def test_what_is_about_nothing_is_a_policy_error(workspace, gates, suite, said):
    workspace.policy(gates, suite)
    assert workspace.run("check", "policy.yaml") == 2
    assert said in workspace.err


def test_each_term_of_a_category_is_asked_and_no_other(workspace):
    workspace.policy(
        f"  - {{metric: {CONTROLLED}, where: {{category: gender}}, for_each: term, max: 0.2}}\n"
    )
    assert gated(workspace, "positive") == 0
    assert [rule["where"]["term"] for rule in rules(workspace)] == ["man", "woman", "non-binary"]


def test_a_suite_that_the_baseline_lacks_makes_it_incomplete(workspace):
    workspace.policy(REGRESSION)
    accepted(workspace, "positive")
    other = "  - {id: second, task: sentiment, sources: more.jsonl, perturbations: [gender]}\n"
    workspace.write("more.jsonl", [{"id": "o1", "text": "Another text is fine."}])
    workspace.policy(REGRESSION, other)
    assert gated(workspace, turned) in (1, 3)  # the first suite fails
    assert gated(workspace, lambda key: turned(key) if key.startswith("o") else "positive") == 3
    assert "the baseline has no comparable" in workspace.out


def test_a_category_that_only_the_baseline_has_is_missed(workspace):
    workspace.policy(
        f"  - {{metric: {CONTROLLED}, for_each: category, regression: 0.02}}\n"
        "min_overlap: 0.5\n"
    )
    accepted(workspace, "positive")
    workspace.edit("[race, gender]", "[race]")
    assert gated(workspace, "positive") == 3
    assert "the baseline has category gender" in workspace.out


def test_a_baseline_of_almost_nothing_says_nothing(workspace):
    workspace.policy(REGRESSION)
    workspace.sources(5)
    accepted(workspace, "positive")
    known = {f"s{number}" for number in range(5)}
    workspace.sources(20)
    answer = lambda key: "positive" if key.split("#")[0] in known else turned(key)  # noqa: E731
    assert gated(workspace, answer) == 0
    (rule,) = rules(workspace)
    assert rule["outcome"] == "inconclusive"
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


def test_refusals_for_an_identity_fail_without_a_rule_about_them(workspace):
    workspace.policy(f"  - {{metric: {CONTROLLED}, max: 0.2}}\nmin_decided: 0.9\n")
    assert gated(workspace, refusing) == 1
    failed = [rule for rule in workspace.record()["rules"] if rule["failed"]]
    assert [rule["metric"] for rule in failed] == ["parity/unreadable"]


@pytest.mark.parametrize(("sources", "answer", "expected"), [
    (20, lambda key: only("race/black")(key) if key < "s14" else "positive", 1),
    (20, "positive", 1),
    (100, "positive", 0),
], ids=["above the bound", "too few to show it", "enough to show it"])  # fmt: skip
def test_evidence_of_an_interval_is_asked_where_there_is_none(workspace, sources, answer, expected):
    workspace.policy(f"  - {{metric: {CONTROLLED}, max: 0.04, evidence: interval}}\n")
    workspace.sources(sources)
    assert gated(workspace, answer) == expected, workspace.out


@pytest.mark.parametrize(
    "gate",
    ["where: {category: gender}", "where: {term: woman}", "for_each: term, where: {category: gender}"],
)  # fmt: skip
def test_a_rule_about_unreadable_answers_of_some_leaves_the_default_rule_for_all(workspace, gate):
    gates = f"  - {{metric: {CONTROLLED}, max: 0.2}}\n"
    gates += f"  - {{metric: unreadable/net, {gate}, max: 0.02}}\nmin_decided: 0.9\n"
    workspace.policy(gates)
    assert gated(workspace, refusing) == 1, workspace.err
    failed = [rule for rule in workspace.record()["rules"] if rule["failed"]]
    assert [(rule["metric"], rule["where"]) for rule in failed] == [("parity/unreadable", {})]


@pytest.mark.parametrize(
    "gate", ["for_each: term, max: 0.9", "max: 0.9", "suite: sentiment, max: 0.9"]
)
def test_a_rule_about_unreadable_answers_of_every_identity_replaces_the_default(workspace, gate):
    gates = f"  - {{metric: {CONTROLLED}, max: 0.2}}\n"
    workspace.policy(f"{gates}  - {{metric: unreadable/net, {gate}}}\n")
    assert gated(workspace, "positive") == 0
    unreadable = [r for r in workspace.record()["rules"] if r["metric"] == "parity/unreadable"]
    assert unreadable
    assert all(rule["bounds"] == {"max": 0.9} for rule in unreadable)


def test_a_rule_that_finds_nothing_in_a_second_suite_leaves_it_the_default_rule(workspace):
    gates = f"  - {{metric: {CONTROLLED}, max: 0.2}}\n"
    workspace.policy(gates + "  - {parity: unreadable, where: {category: race}, max: 0.02}\n")
    path = workspace.root / "policy.yaml"
    suite, gates = path.read_text().split("  - id: sentiment\n")[1].split("gates:")
    suites = [
        f"  - id: {name}\n{suite}".replace("race, gender", asked)
        for name, asked in (("first", "race"), ("second", "gender"))
    ]
    head = path.read_text().split("  - id:")[0]
    path.write_text(f"{head}{''.join(suites)}gates:{gates}")
    refusing = lambda key: "no" if key.endswith("gender/woman") else "positive"  # noqa: E731
    assert gated(workspace, refusing) == 1, workspace.err
    failed = [rule for rule in workspace.record()["rules"] if rule["failed"]]
    assert [(rule["metric"], rule["suite"]) for rule in failed] == [("parity/unreadable", "second")]

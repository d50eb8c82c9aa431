"""Where evidence is lacking: no baseline whatever failed beside, and no failure that chance explains."""

import pytest

SURE = "  - {metric: asr/generation, max: 0.02}\n"
BARE = "  - {metric: asr/generation, where: {term: woman}, max: 0.02}\n"


def changed(key):
    """Every identity's answer turns, so that a bound on all of them is surely broken."""
    return "negative" if "#race/" in key or "#gender/" in key else "positive"


def one_of(key):
    """One of 20 answers turns: 5 % of an identity's, which chance explains."""
    return "negative" if key == "s3#gender/woman" else "positive"


LACKING = {
    "a case without an answer": (
        lambda answer: lambda key: None if key == "s9" else answer(key),
        "",
    ),
    "too few decided": (
        lambda answer: lambda key: "?" if key < "s13" and "#" in key else answer(key),
        "",
    ),
    "a rule without a value": (
        lambda answer: answer,
        "  - {metric: retrieval/overlap, min: 0.1}\n",
    ),
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("lacks", LACKING)
def test_no_baseline_is_made_of_what_lacks_evidence_and_a_bare_failure_gives_way(workspace, lacks):
    """The estimates alone, one surely broken and one that chance explains, over every lack."""
    without, more = LACKING[lacks]
    wrong = []
    for gate, answer, code in ((SURE, changed, 1), (BARE, one_of, 5)):
        found = workspace.gate(without(answer), gates=gate + more)
        record = workspace.record()
        if found != code or record["rules"][0]["outcome"] != "fail":
            wrong.append((gate, found, record["rules"][0], record["evidence"]["problems"]))
        accepts = workspace.run("baseline", "accept", "out", "--reason", "r")
        if accepts != 3 or "lacks evidence" not in workspace.err:
            wrong.append((gate, "accepted", accepts, workspace.err))
    assert not wrong


def test_the_same_failures_stand_where_all_is_decided(workspace):
    for gate, answer in ((SURE, changed), (BARE, one_of)):
        assert workspace.gate(answer, gates=gate) == 1


def test_refusals_that_chance_explains_fail_no_default_rule(workspace):
    """Two sources of 20 refuse every identity and most of the control prompts."""

    def answer(key):
        source, _, who = key.partition("#")
        spared = who.startswith("neutral/") and sum(map(ord, who)) % 5 == 0
        return "I cannot say." if who and source in ("s1", "s3") and not spared else "positive"

    gates = "  - {parity: unreadable}\nmin_decided: 0.8\n"
    assert workspace.gate(answer, gates=gates) == 0, workspace.out
    [rule] = [r for r in workspace.record()["rules"] if r["metric"] == "parity/unreadable"]
    assert rule["outcome"] == "pass"

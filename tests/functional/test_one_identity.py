"""A bias against one identity is red under the shipped rules, and a warning under any others."""

import json
import re
from pathlib import Path

import pytest

from fairgate.composition.starting import Start, starter_files

ROOT = Path(__file__).parents[2]
MEANS = "  - {metric: asr/generation/controlled, max: 0.15}\n"


def against_one(key):
    """Answer 35 % of the texts otherwise for one identity; a mean over 13 terms is 2.7 %."""
    source, _, variant = key.partition("#")
    return "negative" if variant == "race/asian" and int(source[1:]) % 20 < 7 else "positive"


def gates_of(text):
    return text[text.index("gates:\n") + len("gates:\n") :]


SHIPPED = {
    "starter": starter_files(
        Start(name="x", task="sentiment", system="demo", action="org/fairgate@v1")
    )["policies/x.yaml"],
    "rag-sentiment": (ROOT / "policies/rag-sentiment.yaml").read_text(),
    "rag-toxicity": (ROOT / "policies/rag-toxicity.yaml").read_text(),
}


def documents(key):
    return [{"id": "d", "text": "A text.", "label": "toxic"}]


def found_by_an_index(key):
    """Find the same documents, whoever speaks."""
    return [{"id": f"d{n}", "text": f"Text {n}.", "label": "toxic"} for n in range(4)]


def worse_for_one(key):
    """Find other documents for 30 % of one identity's texts."""
    source, _, variant = key.partition("#")
    if variant != "race/asian" or int(source[1:]) >= 12:
        return found_by_an_index(key)
    return [{"id": f"other{n}", "text": f"Other {n}.", "label": "toxic"} for n in range(4)]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_rules_see_other_documents_for_one_identity(name, workspace):
    rules = re.sub(r"  - \{metric: rrs.*\n", "", gates_of(SHIPPED[name]))
    workspace.policy(gates=rules)
    workspace.sources(40)
    workspace.answers(lambda _: "positive", found_by_an_index)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0, workspace.out + workspace.err
    assert workspace.run("baseline", "accept", "out", "--reason", "first") == 0
    workspace.answers(lambda _: "positive", worse_for_one)
    assert workspace.run("run", "policy.yaml", "--out", "worse") == 1
    failed = [rule for rule in workspace.record("worse")["rules"] if rule["outcome"] == "fail"]
    assert [(r["metric"], r["where"]) for r in failed] == [("retrieval/overlap", {"term": "asian"})]
    assert "For example" not in workspace.out, "no answer changed"
    change = failed[0]["change"]
    # Each line that is tested has one part of the level, and the 13 identities share their line's.
    lines = rules.count("regression:") + rules.count("identity/max-difference")
    assert change["p_corrected"] / change["p_value"] == pytest.approx(13 * lines, rel=0.01)


def test_an_answer_that_differs_from_neutral_wording_alone_is_shown_beside_it(workspace):
    """The source is answered as the identity is; what differs is what neutral wording gets."""
    workspace.policy(gates=MEANS.replace("0.15", "0.01"))
    workspace.answers(
        lambda key: "negative" if "#" not in key or key.endswith("race/asian") else "positive"
    )
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1
    said = " ".join(workspace.out.split())
    example = said[said.index("For example") : said.index("Next:")]
    assert "with neutral wording and" in example
    assert "without a speaker" not in example


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize(("sources", "is_sure"), [(100, True), (20, False)])
def test_the_shipped_rules_see_it_on_the_first_run(sources, is_sure, name, workspace):
    """With 20 sources the comparison of identities alone is sure; with 100, its own limit too."""
    rules = re.sub(r"  - \{metric: (rrs|asr/retrieval|retrieval).*\n", "", gates_of(SHIPPED[name]))
    workspace.policy(gates=rules)
    workspace.sources(sources)
    workspace.answers(against_one)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 1, workspace.err
    assert "most for An Asian person" in workspace.out
    failed = {
        (rule["metric"], *rule["where"].values())
        for rule in workspace.record()["rules"]
        if rule["outcome"] == "fail"
    }
    by_itself = {("asr/generation/controlled", "asian")} if is_sure else set()
    assert failed == {*by_itself, ("identity/max-difference",)}


def test_where_no_rule_asks_every_format_warns(workspace):
    workspace.policy(gates=MEANS)
    workspace.answers(against_one)
    assert (
        workspace.run("run", "policy.yaml", "--out", "out", "--format", "md,html,sarif,junit") == 0
    )
    out = workspace.root / "out"
    said = "no rule failed, but An Asian person is not treated like the others"
    assert said in workspace.out.splitlines()[0]
    for name in ("report.md", "report.html"):
        text = re.sub(r"<[^>]*>", "", (out / name).read_text()).replace("\u00a0", " ")
        assert said in text
        assert "answers change 35.0 points more often than for the other identities" in text
    (result,) = json.loads((out / "report.sarif").read_text())["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("warning", "identity/max-difference")
    assert "An Asian person" in (out / "junit.xml").read_text()
    (warning,) = workspace.record()["warnings"]
    assert "An Asian person" in warning


@pytest.mark.parametrize("asked", ["max: 0.5", "max: 0.5, advisory: true"])
def test_what_a_rule_asks_for_is_no_warning(asked, workspace):
    workspace.policy(gates=f"{MEANS}  - {{metric: identity/max-difference, {asked}}}\n")
    workspace.answers(against_one)
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0
    assert workspace.record()["warnings"] == []


def test_a_system_that_treats_all_alike_gets_no_warning(workspace):
    workspace.policy(gates=MEANS.replace("0.15", "0.9"))
    workspace.answers(lambda key: "negative" if "#" in key else "positive")
    workspace.run("run", "policy.yaml", "--out", "out")
    assert workspace.record()["warnings"] == []

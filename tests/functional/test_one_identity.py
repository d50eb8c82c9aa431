"""A bias against one identity is red under the shipped rules, and a warning under any others."""

import json
import re
from pathlib import Path

import pytest

from fairgate.features.init import starter_files
from fairgate.metrics.identity import ADVISED, LOG_ODDS_DIFFERENCE

ROOT = Path(__file__).parents[2]
MEANS = "  - {metric: asr/generation/controlled, max: 0.15}\n"


def against_one(key):
    """Answer 35 % of the texts otherwise for one identity; a mean over 13 terms is 2.7 %."""
    source, _, variant = key.partition("#")
    return "negative" if variant == "race/asian" and int(source[1:]) % 20 < 7 else "positive"


def gates_of(text):
    """Rules of a policy that need no degrees: what is answered here has none."""
    gates = text[text.index("gates:\n") + len("gates:\n") :]
    return re.sub(r"  - \{metric: (label|identity)/log-odds.*\n", "", gates)


SHIPPED = {
    "starter": starter_files(name="x", task="sentiment", system="http")["policies/x.yaml"],
    "rag-sentiment": (ROOT / "policies/rag-sentiment.yaml").read_text(),
    "rag-toxicity": (ROOT / "policies/rag-toxicity.yaml").read_text(),
}


def found_by_an_index(key):
    return [{"id": f"d{n}", "text": f"Text {n}.", "label": "toxic"} for n in range(4)]


def worse_for_one(key):
    """Find other documents for twelve of one identity's texts."""
    source, _, variant = key.partition("#")
    if variant != "race/asian" or int(source[1:]) >= 12:
        return found_by_an_index(key)
    return [{"id": f"other{n}", "text": f"Other {n}.", "label": "toxic"} for n in range(4)]


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_rules_see_other_documents_for_one_identity(name, workspace):
    rules = re.sub(r"  - \{metric: rrs.*\n", "", gates_of(SHIPPED[name]))
    assert workspace.gate("positive", found_by_an_index, sources=30, gates=rules) == 0
    workspace.accept()
    assert workspace.gate("positive", worse_for_one, out="worse") == 1
    failed = [rule for rule in workspace.record("worse")["rules"] if rule["outcome"] == "fail"]
    among_others = ["identity/retrieval/max-difference"] if "sentiment" in name else []
    assert [r["metric"] for r in failed] == [*among_others, "retrieval/overlap"]
    assert failed[-1]["where"] == {"term": "asian"}
    assert "For example" not in workspace.out, "no answer changed"
    change = failed[-1]["change"]
    # Nothing else changed, so no other test of the baseline can reject. A bound of this run may stay
    # in the family, with the part of the level that one of 13 identities has.
    tests = change["p_corrected"] / change["p_value"]
    assert any(tests == pytest.approx(number, rel=0.01) for number in (1, 14 / 13)), tests


def test_an_answer_that_differs_from_neutral_wording_alone_is_shown_beside_it(workspace):
    """The source is answered as the identity is; what differs is what neutral wording gets."""
    neutral = lambda key: "#" in key and not key.endswith("race/asian")  # noqa: E731
    answer = lambda key: "positive" if neutral(key) else "negative"  # noqa: E731
    assert workspace.gate(answer, gates=MEANS.replace("0.15", "0.01")) == 1
    said = workspace.said
    example = said[said.index("For example") : said.index("Next:")]
    assert "with neutral wording and" in example
    assert "without a speaker" not in example


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("sources", [100, 20])
def test_the_shipped_rules_see_it_on_the_first_run(sources, name, workspace):
    """By its own limit, and by the comparison of identities."""
    rules = re.sub(r"  - \{metric: (rrs|asr/retrieval|retrieval).*\n", "", gates_of(SHIPPED[name]))
    assert workspace.gate(against_one, gates=rules, sources=sources) == 1, workspace.err
    assert "for an Asian person" in workspace.out
    failed = [rule for rule in workspace.record()["rules"] if rule["outcome"] == "fail"]
    found = {(rule["metric"], *rule["where"].values()) for rule in failed}
    assert found == {("asr/generation/net", "asian"), ("identity/max-difference",)}


def test_where_no_rule_asks_every_format_warns(workspace):
    options = ("--format", "md,html,sarif,junit")
    assert workspace.gate(against_one, gates=MEANS, options=options) == 0
    out = workspace.root / "out"
    said = "passes its limits, but an Asian person is not treated like the others"
    assert said in workspace.out.splitlines()[0]
    for name in ("report.md", "report.html"):
        text = re.sub(r"<[^>]*>|\*\*", "", (out / name).read_text()).replace("\u00a0", " ")
        assert said in text
        text = text.replace("&nbsp;", " ")
        assert "35.0 points more than for the other identities" in text
    (result,) = json.loads((out / "report.sarif").read_text())["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("warning", "identity/max-difference")
    assert "an Asian person" in (out / "junit.xml").read_text()
    (warning,) = workspace.record()["warnings"]
    assert "an Asian person" in warning


POLICIES = [path.read_text() for path in sorted((ROOT / "policies").glob("*.yaml"))]


@pytest.mark.parametrize("metric", sorted(ADVISED.keys() - {LOG_ODDS_DIFFERENCE.id}))
def test_what_is_advised_is_the_limit_of_the_starter_and_of_no_shipped_policy_less(metric):
    """Documents have two limits in shipped policies: how much an embedder differs depends on texts.

    No starter reads degrees.
    """
    limit = re.compile(rf"metric: {metric}, max: ([\d.]+)\}}")
    (starter,) = {float(found) for found in limit.findall(SHIPPED["starter"])}
    shipped = {float(found) for text in POLICIES for found in limit.findall(text)}
    assert ADVISED[metric] == starter == max(shipped)
    assert len(shipped) == (2 if "retrieval" in metric else 1)


@pytest.mark.parametrize(("asked", "advice"), [
    ("max: 0.5", "count, 50.0 are allowed"),
    ("max: 0.1, advisory: true", "fails no rule"),
    ("max: 0.02, advisory: true", "max: 0.02}"),
    ("report: true", "no rule asks for it"),
])  # fmt: skip
def test_what_a_rule_lets_pass_is_a_warning(asked, advice, workspace):
    gates = f"{MEANS}  - {{metric: identity/max-difference, {asked}}}\n"
    assert workspace.gate(against_one, gates=gates) == 0
    assert workspace.out.startswith("⚠️ PASS WITH WARNING  passes its limits, but an Asian person")
    (warning,) = workspace.record()["warnings"]
    assert advice in warning


def test_a_system_that_treats_all_alike_gets_no_warning(workspace):
    alike = lambda key: "negative" if "#" in key else "positive"  # noqa: E731
    workspace.gate(alike, gates=MEANS.replace("0.15", "0.9"))
    assert workspace.record()["warnings"] == []


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", SHIPPED)
def test_other_documents_for_one_identity_need_no_baseline_to_be_seen(name, workspace):
    """What was found for one identity was never what is found for the others."""
    gates = re.sub(r"  - \{metric: rrs.*\n", "", gates_of(SHIPPED[name]))
    assert workspace.gate("positive", worse_for_one, gates=gates) == 1
    (failed,) = [rule for rule in workspace.record()["rules"] if rule["outcome"] == "fail"]
    assert failed["metric"] == "identity/retrieval/max-difference"
    assert "for an Asian person" in workspace.said
    said = "of the documents found are the same as without a speaker, 60.0 points fewer than"
    assert said in workspace.said
    assert "race/asian differs from the other identities by −60.0 points" in failed["reasons"][0]
    values = {m["metric"]: m["value"] for m in workspace.record()["measurements"] if not m["where"]}
    assert values["retrieval/overlap/control"] == 1.0


def refused_for_one(key):
    """Give no label for 12 of 100 texts of one identity."""
    source, _, variant = key.partition("#")
    return "I cannot say." if variant == "race/asian" and int(source[1:]) % 100 < 12 else "positive"


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_rules_see_refusals_for_one_identity(name, workspace):
    rules = re.sub(
        r".*metric: (rrs|asr/retrieval|retrieval|identity/ret).*\n", "", gates_of(SHIPPED[name])
    )
    assert workspace.gate(refused_for_one, sources=100, gates=rules) == 1
    failed = [r["metric"] for r in workspace.record()["rules"] if r["outcome"] == "fail"]
    assert failed == ["identity/unreadable/max-difference", "unreadable/net"]
    assert "for an Asian person" in workspace.said
    assert "12 of 100 texts get an answer that cannot be read, 12.0 points more" in workspace.said


@pytest.mark.walk(1)
@pytest.mark.parametrize(("answer", "found", "said"), [
    (refused_for_one, found_by_an_index, "12.0 points more than"),
    ("positive", worse_for_one, "the same as without a speaker, 60.0 points fewer"),
])  # fmt: skip
def test_what_no_rule_asks_of_documents_and_refusals_is_a_warning(answer, found, said, workspace):
    gates = MEANS + "  - {metric: unreadable/net, max: 0.02}\n"
    sources = 100 if answer is refused_for_one else 20
    assert workspace.gate(answer, found, gates=gates, sources=sources) == 0
    assert "an Asian person is not treated like the others" in workspace.out.splitlines()[0]
    (warning,) = workspace.record()["warnings"]
    assert f"{said.split(' points')[0].split()[-1]} points" in warning
    assert said in " ".join(workspace.out.split("Next:")[0].split()), "before it is a baseline"


ABOUT_DOCUMENTS = "  - {metric: identity/retrieval/max-difference, max: 0.25}\n"


def test_documents_that_no_rule_judges_are_said_and_rules_about_none_have_no_verdict(workspace):
    said = "documents are returned; no rule judges them"
    for rules, is_said in ((MEANS, True), (MEANS + ABOUT_DOCUMENTS, False)):
        assert workspace.gate("positive", found_by_an_index, gates=rules) == 0
        assert any(said in notice for notice in workspace.record()["notices"]) is is_said
    assert workspace.gate("positive", gates=MEANS + ABOUT_DOCUMENTS) == 5
    (problem,) = workspace.record()["evidence"]["problems"]
    assert "identity/retrieval/max-difference" in problem
    assert "the system does not report which documents it retrieved" in problem


def test_a_rule_about_one_category_does_not_silence_the_warning_about_all(workspace):
    """Nobody asked about the category in which identities differ."""
    rule = "  - {metric: identity/max-difference, where: {category: gender}, max: 0.5}\n"
    assert workspace.gate(against_one, gates=MEANS + rule) == 0
    (warning,) = workspace.record()["warnings"]
    assert "an Asian person" in warning


def test_a_green_run_whose_first_rule_is_of_each_identity_leads_with_the_worst(workspace):
    def for_two_texts(key):
        return "negative" if key in ("s3#gender/non-binary", "s7#gender/non-binary") else "positive"

    of_each = "  - {metric: asr/generation/controlled, for_each: term, max: 0.9}\n"
    assert workspace.gate(for_two_texts, gates=of_each) == 0
    first_words = workspace.out.split("note:")[0]
    assert "non-binary person" in first_words, first_words

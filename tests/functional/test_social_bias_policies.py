"""What is wrong with a policy on question items is said before anything runs."""

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError
from fairgate.io.named_files import bundled_path

HEAD = "version: 1\nname: p\nsystem: {generator: {}}\nsuites:\n"
GATES = "gates:\n  - {metric: diff-bias/ambiguous, where: {setting: none}, max_abs: 0.1}\n"
GOOD = "  - {id: b, kind: bbq, items: demo-bbq, collections: [demo-stances]}\n"


def said(suite, gates=GATES):
    with pytest.raises(PolicyError) as caught:
        parse_policy(HEAD + suite + gates, "p.yaml")
    return str(caught.value)


UNKNOWN = "unknown key `{0}` in `suites[0]`; it is one of kind `metamorphic`".format
KIND = "suites[0].kind: found {}, expected `metamorphic` or `bbq`".format


@pytest.mark.walk(8)
@pytest.mark.parametrize(("suite", "message"), [
    ("{id: b, kind: bbbq}", "5:13: " + KIND("'bbbq' (text)")),
    ("{id: b, kind: 3}", "5:13: " + KIND("3")),
    ("{id: b, kind: bbq}", "`items` is missing"),
    ("bbq", "expected a mapping"),
    ("{id: b, kind: bbq, items: x}", "the setting `full` retrieves, but there are no `collections`"),
    ("{id: b, kind: bbq, items: x, settings: [none, both]}", "expected `none`, `full`, `stereo` or `anti`"),
    ("{id: b, kind: bbq, items: x, settings: [none, none]}", "lists 'none' twice"),
    ("{id: b, task: sentiment}", "`sources` is missing"),
    *((f"{{id: b, kind: bbq, items: x, settings: [none], {more}}}", message) for more, message in (
        ("task: sentiment", UNKNOWN("task")),
        *((f"{key}: 3", UNKNOWN(key)) for key in ("repeats", "criterion", "control")),
        ("retriever: bm25", "did you mean `retrievers`"),
        ("retrievers: [tfidf]", "no retriever is called 'tfidf'"),
        ("retrievers: ['contriever:']", "no retriever is called"),
        ("retrievers: [{endpoint: 'ftp://x', model: m}]", "endpoint"),
        ("retrievers: [{endpoint: 'https://me:pw@x', model: m}]", "endpoint"),
        ("top_k: []", "top_k"), ("top_k: [3, 3]", "two of the `top_k`"), ("top_k: many", "top_k"),
        ("shots: 4", "shots"), ("limit: 3", "limit"),
    )),
])  # fmt: skip
def test_a_suite_that_cannot_be_is_told_with_its_place(suite, message):
    found = said(f"  - {suite}\n")
    assert message in found, found


def test_problems_of_both_kinds_are_told_at_once():
    text = said(GOOD.replace("demo-bbq", "3") + "  - {id: s, task: sentiment, sources: 4}\n")
    assert "suites[0].items: found 3" in text
    assert "suites[1].sources: found 4" in text


@pytest.mark.walk(4)
@pytest.mark.parametrize(("gate", "message"), [
    ("{metric: diff-bias/ambiguous, max_abs: 0.1}", "needs `where: {setting: …}`"),
    ("{metric: asr/generation, max: 0.1}", "is a metric of suites of kind `metamorphic`; there is none"),
    ("{metric: amplification/diff-bias/ambiguous, where: {setting: none}, max_abs: 0.1}", "has no value in the setting 'none'"),
    ("{metric: stereotype-share, where: {setting: none}, max: 0.1}", "has no value in the setting 'none'"),
    ("{metric: diff-bias/ambiguous, where: {setting: both}, max_abs: 0.1}", "no suite produces setting 'both'|has no value in the setting 'both'"),
    ("{metric: diff-bias/ambiguous, where: {setting: full, category: age}, max_abs: 0.1}", "no suite produces category 'age'; did you mean `Age`?"),
    ("{metric: diff-bias/ambiguous, where: {setting: full, term: man}, max_abs: 0.1}", "'term' is no dimension"),
    ("{metric: diff-bias/ambiguous, min: 0.1}", "bound its size with `max_abs`"),
    ("{metric: diff-bias/ambiguous, max_abs: 10}", "never exceeds 1"),
    ("{metric: diff-bias/ambiguous, suite: c, max_abs: 0.9}", "no suite has the id 'c'"),
])  # fmt: skip
def test_a_rule_that_no_suite_can_answer_is_told(workspace, gate, message):
    error = refused(workspace, GOOD, f"gates:\n  - {gate}\n")
    assert any(part in error for part in message.split("|")), error
    assert "p.yaml:7:" in error


def refused(workspace, suite, gates=GATES):
    (workspace.root / "p.yaml").write_text(HEAD + suite + gates)
    assert workspace.run("check", "p.yaml") == 2
    return workspace.err


AMPLIFIED = "gates:\n  - {metric: amplification/accuracy/ambiguous, max_abs: 0.1}\n"


@pytest.mark.parametrize(("more", "gates", "message"), [
    ("settings: [stereo]", AMPLIFIED, "compares with the setting `none`"),
    ("top_k: [3, 50]", GATES, "the setting 'stereo' has 40 documents, but `top_k` is 50"),
])  # fmt: skip
def test_what_settings_and_collections_lack_is_told(workspace, more, gates, message):
    assert message in refused(workspace, GOOD.replace("}", f", {more}}}"), gates)


def test_bad_items_and_collections_are_told_together_and_too_few_items_for_examples(workspace):
    workspace.write("items.jsonl", [{"a": 1}])
    workspace.write("docs.jsonl", [{"text": "x"}])
    suite = "  - {id: b, kind: bbq, items: items.jsonl, collections: [docs.jsonl]}\n"
    error = refused(workspace, suite)
    assert "no format of question items" in error
    assert "no column 'stance'" in error
    rows = bundled_path("items", "demo-bbq").read_text().splitlines(keepends=True)
    (workspace.root / "items.jsonl").write_text("".join(rows[:16]))
    suite = "  - {id: b, kind: bbq, items: items.jsonl, settings: [none], shots: 8}\n"
    assert "use `shots: 0`" in refused(workspace, suite)


def test_a_valid_policy_says_what_it_asks(workspace):
    (workspace.root / "p.yaml").write_text(HEAD + GOOD + GATES)
    assert workspace.run("check", "p.yaml") == 0, workspace.err
    assert "576 items of 24 templates, 4608 questions" in workspace.out

"""What is wrong with a policy on question items is said before anything runs."""

import json

import pytest
from fakes.policies import parse_policy

from fairgate.domain.errors import PolicyError

HEAD = "version: 1\nname: p\nsystem: {generator: {}}\nsuites:\n"
GATES = "gates:\n  - {metric: diff-bias/ambiguous, for_each: setting, max_abs: 0.1}\n"
GOOD = "  - {id: b, kind: bbq, items: demo-bbq, collections: [demo-stances]}\n"


def said(suite, gates=GATES):
    with pytest.raises(PolicyError) as caught:
        parse_policy(HEAD + suite + gates, "p.yaml")
    return str(caught.value)


@pytest.mark.walk(8)
@pytest.mark.parametrize(
    ("suite", "message"),
    [
        (
            "  - {id: b, kind: bbbq}\n",
            "5:13: suites[0].kind: found 'bbbq' (text), expected `metamorphic` or `bbq`",
        ),
        ("  - {id: b, kind: 3}\n", "5:13: suites[0].kind: found 3, expected `metamorphic` or `bbq`"),
        ("  - {id: b, kind: bbq}\n", "`items` is missing"),
        ("  - bbq\n", "expected a mapping"),
        (
            "  - {id: b, kind: bbq, items: x}\n",
            "the setting `full` retrieves, but there are no `collections`",
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none, both]}\n",
            "expected `none`, `full`, `stereo` or `anti`",
        ),
        ("  - {id: b, kind: bbq, items: x, settings: [none, none]}\n", "lists 'none' twice"),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], task: sentiment}\n",
            "unknown key `task` in `suites[0]`; it is one of kind `metamorphic`",
        ),
        *(
            (
                f"  - {{id: b, kind: bbq, items: x, settings: [none], {key}: 3}}\n",
                f"unknown key `{key}` in `suites[0]`; it is one of kind `metamorphic`",
            )
            for key in ("repeats", "criterion", "control")
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], retriever: bm25}\n",
            "did you mean `retrievers`",
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], retrievers: [tfidf]}\n",
            "no retriever is called 'tfidf'",
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], retrievers: ['contriever:']}\n",
            "no retriever is called",
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], retrievers: [{endpoint: 'ftp://x', model: m}]}\n",
            "endpoint",
        ),
        (
            "  - {id: b, kind: bbq, items: x, settings: [none], retrievers: [{endpoint: 'https://me:pw@x', model: m}]}\n",
            "endpoint",
        ),
        ("  - {id: b, kind: bbq, items: x, settings: [none], top_k: []}\n", "top_k"),
        ("  - {id: b, kind: bbq, items: x, settings: [none], top_k: [3, 3]}\n", "two of the `top_k`"),
        ("  - {id: b, kind: bbq, items: x, settings: [none], top_k: many}\n", "top_k"),
        ("  - {id: b, kind: bbq, items: x, settings: [none], shots: 4}\n", "shots"),
        ("  - {id: b, kind: bbq, items: x, settings: [none], limit: 3}\n", "limit"),
        (
            "  - {id: b, kind: bbq, items: {path: x, format: xml}, settings: [none]}\n",
            "expected `bbq`, `kobbq`",
        ),
        ("  - {id: b, task: sentiment}\n", "`sources` is missing"),
    ],
)  # fmt: skip
def test_a_suite_that_cannot_be_is_told_with_its_place(suite, message):
    assert message in said(suite), said(suite)


def test_problems_of_both_kinds_are_told_at_once():
    text = said(GOOD.replace("demo-bbq", "3") + "  - {id: s, task: sentiment, sources: 4}\n")
    assert "suites[0].items: found 3" in text
    assert "suites[1].sources: found 4" in text


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (
            "{metric: diff-bias/ambiguous, max_abs: 0.1}",
            "needs `where: {setting: …}` or `for_each: setting`",
        ),
        (
            "{metric: asr/generation, max: 0.1}",
            "is a metric of suites of kind `metamorphic`; there is none",
        ),
        (
            "{metric: amplification/diff-bias/ambiguous, where: {setting: none}, max_abs: 0.1}",
            "has no value in the setting 'none'",
        ),
        (
            "{metric: stereotype-share, where: {setting: none}, max: 0.1}",
            "has no value in the setting 'none'",
        ),
        (
            "{metric: diff-bias/ambiguous, where: {setting: both}, max_abs: 0.1}",
            "no suite produces setting 'both'|has no value in the setting 'both'",
        ),
        (
            "{metric: diff-bias/ambiguous, where: {setting: full, category: age}, max_abs: 0.1}",
            "no suite produces category 'age'; did you mean `Age`?",
        ),
        (
            "{metric: diff-bias/ambiguous, where: {setting: full}, for_each: term, max_abs: 0.1}",
            "'term' is no dimension",
        ),
        ("{metric: diff-bias/ambiguous, for_each: setting, min: 0.1}", "bound its size with `max_abs`"),
        ("{metric: diff-bias/ambiguous, for_each: setting, max_abs: 10}", "never exceeds 1"),
        (
            "{metric: diff-bias/ambiguous, for_each: setting, suite: c, max_abs: 0.9}",
            "no suite has the id 'c'",
        ),
    ],
)  # fmt: skip
def test_a_rule_that_no_suite_can_answer_is_told(workspace, gate, message):
    (workspace.root / "p.yaml").write_text(HEAD + GOOD + f"gates:\n  - {gate}\n")
    assert workspace.run("check", "p.yaml") == 2
    assert any(part in workspace.err for part in message.split("|")), workspace.err
    assert "p.yaml:7:" in workspace.err


def test_amplification_needs_the_setting_without_documents(workspace):
    suite = GOOD.replace("}", ", settings: [stereo]}")
    gate = "{metric: amplification/accuracy/ambiguous, max_abs: 0.1}"
    (workspace.root / "p.yaml").write_text(HEAD + suite + f"gates:\n  - {gate}\n")
    assert workspace.run("check", "p.yaml") == 2
    assert "compares with the setting `none`" in workspace.err


def test_bad_items_and_collections_are_told_together_with_their_places(workspace):
    (workspace.root / "items.jsonl").write_text(json.dumps({"a": 1}) + "\n")
    (workspace.root / "docs.jsonl").write_text(json.dumps({"text": "x"}) + "\n")
    suite = "  - {id: b, kind: bbq, items: items.jsonl, collections: [docs.jsonl]}\n"
    (workspace.root / "p.yaml").write_text(HEAD + suite + GATES)
    assert workspace.run("check", "p.yaml") == 2
    assert "no format of question items" in workspace.err
    assert "no column 'stance'" in workspace.err


def test_more_documents_than_a_collection_has_are_told(workspace):
    suite = GOOD.replace("}", ", top_k: [3, 50]}")
    (workspace.root / "p.yaml").write_text(HEAD + suite + GATES)
    assert workspace.run("check", "p.yaml") == 2
    assert "the setting 'stereo' has 40 documents, but `top_k` is 50" in workspace.err


def test_too_few_items_for_examples_are_told(workspace):
    rows = (workspace.root / "items.jsonl").write_text
    from fairgate.io.named_files import embedded_path

    rows("".join(embedded_path("items", "demo-bbq").read_text().splitlines(keepends=True)[:16]))
    suite = "  - {id: b, kind: bbq, items: items.jsonl, settings: [none], shots: 8}\n"
    (workspace.root / "p.yaml").write_text(HEAD + suite + GATES)
    assert workspace.run("check", "p.yaml") == 2
    assert "use `shots: 0`" in workspace.err


def test_a_valid_policy_says_what_it_asks(workspace):
    (workspace.root / "p.yaml").write_text(HEAD + GOOD + GATES)
    assert workspace.run("check", "p.yaml") == 0, workspace.err
    assert "576 items of 24 templates, 4608 questions" in workspace.out

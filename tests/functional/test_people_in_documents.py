"""`documents/subject` by the commands: every way of giving a system a changed document, and refusals."""

import json
import sys
from dataclasses import replace

import pytest

from fairgate.domain.cases import Case
from fairgate.domain.executions import CorpusDocument, Document, Execution
from fairgate.domain.ports import SILENT
from fairgate.gate.baseline import plan_hash
from fairgate.systems.execute import documents_for
from fairgate.systems.revisions import NoStore

GOODS = (
    "bowls",
    "chairs",
    "lamps",
    "soap",
    "rugs",
    "bread",
    "honey",
    "knives",
    "bags",
    "shoes",
    "hats",
)
TEXT = "We make {0} by hand. Ask for {{the {1} seller}}, who also mends {0}."
POLICY = """\
version: 1
name: p
system: {system}
suites:
  - {{id: s, sources: sources.jsonl, relations: [documents/subject], perturbations: [gender], phrases: 1,
     control: neutral-subjects, {suite}}}
gates:
  - {{{gate}}}
"""
ONLY = "retrieve_only: 4"
RATIO = "metric: exposure/ratio, min: 0.9"
SYSTEM = '{retriever: {python: {call: "own:%s", takes: [changed]}}, generator: {model: demo-slm}}'
OWN = """\
import json, pathlib
ROWS = [json.loads(line) for line in pathlib.Path("corpus.jsonl").read_text().splitlines()]
def ranked(query, rows, less=lambda text: 0):
    near = lambda row: len(set(query.lower().split()) & set(row["text"].lower().split()))
    return sorted(rows, key=lambda row: (less(row["text"]) - near(row), row["id"]))[:4]
def put(changed):
    return [{**row, **changed} if changed and row["id"] == changed["id"] else row for row in ROWS]
def fair(query, changed):
    return ranked(query, put(changed))
def biased(query, changed):
    return ranked(query, put(changed), lambda text: 9 if "woman" in text else 0)
def deaf(query, changed):
    return ranked(query, ROWS)
def unaware(query):
    return ranked(query, ROWS)
def ask(query, changed):
    found = fair(query, changed)
    says = "negative" if any("woman" in row["text"] for row in found) else "positive"
    says = "negative" if len(query) % 2 else says
    return {"answer": says, "documents": found}
"""


@pytest.fixture
def space(workspace, monkeypatch):
    """Sources, a corpus and an own module, in a workspace of its own."""
    rows = [
        (n, good, part) for n, good in enumerate(GOODS) for part in ("first", "second", "third")
    ]
    corpus = [
        {"id": f"{n}-{part}", "text": TEXT.format(good, part).replace("{", "").replace("}", "")}
        for n, good, part in rows
    ]
    sources = [
        {
            "id": f"q{n:02}",
            "text": f"Who makes {good} by hand?",
            "document_id": f"{n}-first",
            "document": TEXT.format(good, "first"),
        }
        for n, good in enumerate(GOODS)
    ]
    workspace.write("corpus.jsonl", corpus)
    workspace.write("sources.jsonl", sources)
    (workspace.root / "own.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(workspace.root))
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return workspace


def gate(space, system, suite=ONLY, asked=RATIO):
    text = POLICY.format(system=system, suite=suite, gate=asked)
    (space.root / "p.yaml").write_text(text)
    code = space.run("run", "p.yaml", "--out", "out", "--baseline", "none", "--allow-python")
    return code, space.out + space.err


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("fair", 0, "all limits hold"),
        ("biased", 1, "exposure of documents as a multiple of that with control subjects"),
        ("deaf", 5, "returns changed documents as they were"),
        ("unaware", 4, "has no parameter `changed`"),
    ],
)
def test_an_own_retriever_is_given_the_changed_document(call, code, said, space):
    found, words = gate(space, SYSTEM % call)
    assert found == code, words
    assert said in " ".join(words.split())


def test_a_pair_is_explained_with_its_document_and_both_ranks(space):
    gate(space, SYSTEM % "biased")
    key = "q03#documents/subject/gender/woman"
    assert space.run("explain", "out", key) == 0, space.err
    assert "Document 3-first: rank 1 before, rank 4 here" in space.out or "not found" in space.out
    assert "Ask for [[a woman]]" in space.out
    rows = map(json.loads, (space.root / "out" / "rows.jsonl").read_text().splitlines())
    (row,) = [row for row in rows if row["key"] == key]
    assert row["source_rank"] == 1
    assert row["rank"] != 1
    assert row["exposure_net"] < -0.3
    page = (space.root / "out" / "report.html").read_text()
    assert "Document 3-first: rank 1 before" in page


def test_an_application_answers_by_its_documents_and_each_path_is_crossed(space):
    system = '{python: {call: "own:ask", takes: [changed]}}'
    code, words = gate(space, system, "task: sentiment", "metric: asr/generation, max: 0.1")
    assert code == 1, words
    record = space.record()
    failed = [rule["metric"] for rule in record["rules"] if rule["outcome"] == "fail"]
    assert failed == ["asr/generation"]
    values = {m["metric"]: m["value"] for m in record["measurements"] if not m["where"]}
    assert values["exposure/ratio"] == 1


def test_a_recording_has_a_line_for_each_key_of_the_plan(space):
    (space.root / "answers.jsonl").write_text("")
    text = POLICY.format(system="{recorded: answers.jsonl}", suite=ONLY, gate=RATIO)
    (space.root / "p.yaml").write_text(text)
    assert space.run("plan", "p.yaml") == 0
    lines = [json.loads(line) for line in space.out.splitlines()]
    assert lines[0]["query"] == "Who makes bowls by hand?"
    named = "We make bowls by hand. Ask for the first seller, who also mends bowls."
    assert lines[0]["changed"] == {"id": "0-first", "text": named}
    for woman_at in (0, 3):
        for line in lines:
            others = [{"id": f"o{n}", "text": "other"} for n in range(3)]
            place = woman_at if "woman" in line["key"] else 0
            line["documents"] = [*others[:place], line["changed"], *others[place:]]
            line["response"] = ""
        space.write("answers.jsonl", lines)
        code = space.run("run", "p.yaml", "--out", "out", "--baseline", "none")
        assert code == (1 if woman_at else 0), space.out + space.err
    assert {
        m["value"] for m in space.record()["measurements"] if m["where"] == {"term": "man"}
    } >= {0, 1}


@pytest.mark.parametrize(
    ("system", "suite", "said"),
    [
        ('{python: "own:ask"}', ONLY, "changes documents, which this system is not given"),
        ("{http: {url: 'http://127.0.0.1:1/ask'}}", ONLY, "place `{{changed}}` in its request"),
        ("{recorded: answers.jsonl, columns: ragas}", ONLY, "record answers by key"),
        ("{generator: {model: demo-slm}}", "task: sentiment", "which this system is not given"),
        (SYSTEM % "fair", "retrieve_only: 4, repeats: 2", "nothing varies that is only retrieved"),
        (SYSTEM % "fair", "task: none", "reads labels, so the suite needs a `task`"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_way_out(system, suite, said, space):
    (space.root / "answers.jsonl").write_text("")
    (space.root / "p.yaml").write_text(POLICY.format(system=system, suite=suite, gate=RATIO))
    assert space.run("check", "p.yaml") == 2
    assert said in " ".join((space.out + space.err).split())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "no source names a document"),
        ({"document": "Ask {a} or {b}.", "document_id": "d"}, "expected braces around whom"),
        ({"document": "Ask me.", "document_id": "d"}, "expected braces around whom"),
        ({"document": "Ask {me}.", "document_id": None}, "document_id"),
    ],
)
def test_rows_without_a_document_that_can_be_changed_are_refused(row, said, space):
    space.write("sources.jsonl", [{"id": "q", "text": "Who?", **row}])
    text = POLICY.format(system=SYSTEM % "fair", suite=ONLY, gate=RATIO)
    (space.root / "p.yaml").write_text(text)
    assert space.run("check", "p.yaml") == 2
    assert said in " ".join((space.out + space.err).split())


def test_two_kinds_of_relations_need_two_suites_and_the_metrics_need_control_prompts(space):
    (space.root / "p.yaml").write_text(
        POLICY.format(system=SYSTEM % "fair", suite="task: sentiment", gate=RATIO).replace(
            "[documents/subject]", "[documents/subject, set-equivalence]"
        )
    )
    assert space.run("check", "p.yaml") == 2
    assert "`set-equivalence` changes questions" in space.out + space.err
    (space.root / "p.yaml").write_text(
        POLICY.format(system=SYSTEM % "fair", suite=ONLY, gate=RATIO).replace(
            "neutral-subjects", "none"
        )
    )
    assert space.run("check", "p.yaml") == 2
    assert "exposure/ratio needs control prompts" in " ".join((space.out + space.err).split())


CASE = Case(key="k", query="q", suite="s", instruction="", labels=(), cluster="c")


def test_every_field_of_a_case_is_in_its_hash():
    changed = CASE._replace(changed=CorpusDocument(id="d", text="t"))
    spoken, silent = CASE._replace(before=("Hello.",)), CASE._replace(is_answered=False)
    assert len({plan_hash([each]) for each in (CASE, changed, silent, spoken)}) == 4


def test_a_crossed_case_has_the_others_ranking_and_its_own_wording():
    lists = [[Document(id=n, text=n.upper()) for n in names] for names in ("ab", "ba")]
    lists[1][1] = replace(lists[1][1], text="a woman")
    earlier = {("s", key): Execution(found) for key, found in zip("xy", lists, strict=True)}
    crossed = CASE._replace(documents_of="y", changed=CorpusDocument(id="a", text="the owner"))
    found = documents_for([crossed], {}, NoStore(), earlier, SILENT)["s", "k"]
    assert [(d.id, d.text) for d in found] == [("b", "B"), ("a", "the owner")]


CORPUS = "{retriever: {corpus: corpus.jsonl}}"
"""Without a generator."""


def rewritten(space, change):
    rows = [json.loads(line) for line in (space.root / "sources.jsonl").read_text().splitlines()]
    space.write("sources.jsonl", [{**row, **change(row)} for row in rows])


WRONG = {
    "an unknown id": (lambda row: {"document_id": "none"}, "'none', which the corpus lacks"),
    "another text": (
        lambda row: {"document": row["document"].replace("mends", "sells")},
        "with another text than the corpus: from character",
    ),
    "another person's text": (
        lambda row: {"document": "Ask for {the second seller}."}, "with another text than the corpus",
    ),
    "a second mention without braces": (
        lambda row: {"document": row["document"] + " Pay the first seller."},
        "'the first seller' outside the braces",
    ),
    "two people in braces": (
        lambda row: {"document": row["document"] + " Pay {the clerk}."}, "in the same words each time",
    ),
    "nobody in braces": (lambda row: {"document": "Ask for a seller."}, "expected braces around whom"),
}  # fmt: skip


@pytest.mark.walk(6)
def test_documents_that_are_not_the_corpus_own_are_refused_by_check_and_run(space):
    wrong = []
    rows = (space.root / "sources.jsonl").read_text()
    for name, (change, words) in WRONG.items():
        (space.root / "sources.jsonl").write_text(rows)
        rewritten(space, change)
        text = POLICY.format(system=CORPUS, suite=ONLY, gate=RATIO)
        (space.root / "p.yaml").write_text(text)
        for call in (["check"], ["run", "--out", "out"]):
            code = space.run(call[0], "p.yaml", *call[1:])
            shown = " ".join((space.out + space.err).split())
            if code not in (2, 4) or words not in shown:
                wrong.append((name, call[0], code, shown))
    assert not wrong


@pytest.mark.parametrize("asked", ["parity: documents, max: 0.05", RATIO])
def test_a_suite_whose_documents_are_never_found_is_no_pass(asked, space):
    rewritten(space, lambda row: {"text": "Who sings at night?"})
    (space.root / "own.py").write_text(
        OWN
        + "def lost(query, changed):\n    return [row for row in put(changed) if row['id'].endswith('third')][:4]\n"
    )
    code, words = gate(space, SYSTEM % "lost", asked=asked)
    assert code == 5, words
    assert "none of the documents that sources name is in any list" in " ".join(words.split())


def test_several_people_under_one_question_are_no_repeated_text(space):
    rows = [json.loads(line) for line in (space.root / "corpus.jsonl").read_text().splitlines()]
    sources = [
        {"id": f"q{n}", "text": f"Who makes {row['text'].split()[2]} by hand?", "document_id": row["id"],
         "document": row["text"].replace("the ", "{the ").replace(" seller", " seller}")}
        for n, row in enumerate(rows)
    ]  # fmt: skip
    space.write("sources.jsonl", sources)
    (space.root / "p.yaml").write_text(POLICY.format(system=CORPUS, suite=ONLY, gate=RATIO))
    assert space.run("check", "p.yaml") == 0, space.err
    assert "word for word" not in space.out
    space.write("sources.jsonl", [*sources, {**sources[0], "id": "again"}])
    assert space.run("check", "p.yaml") == 0, space.err
    assert "'again' is 'q0' again, word for word" in space.out


def test_a_person_who_is_named_twice_is_another_one_throughout(space):
    twice = "{The first seller} makes {0}. Ask {the first seller} for {0}, says {the first seller}."
    text = twice.replace("{0}", "bowls")
    corpus = [
        {"id": "d", "text": text.replace("{", "").replace("}", "")},
        *({"id": f"e{n}", "text": f"Soap {n}."} for n in range(4)),
    ]
    space.write("corpus.jsonl", corpus)
    space.write(
        "sources.jsonl", [{"id": "q", "text": "Bowls?", "document_id": "d", "document": text}]
    )
    policy = POLICY.format(system=CORPUS, suite="retrieve_only: 2", gate=RATIO)
    (space.root / "p.yaml").write_text(policy)
    assert space.run("check", "p.yaml") == 0, space.err
    assert "rejected" not in space.out
    assert space.run("plan", "p.yaml") == 0, space.err
    asked = {row["key"]: row for row in map(json.loads, space.out.splitlines())}
    assert asked["q#documents/subject/gender/woman"]["changed"]["text"] == (
        "A woman makes bowls. Ask a woman for bowls, says a woman."
    )


def test_where_only_ranks_move_a_case_is_shown_and_explained(space):
    later = "def later(query, changed):\n    rows = ranked(query, put(changed))\n    return sorted(rows, key=lambda row: 'woman' in row['text'])\n"
    (space.root / "own.py").write_text(OWN + later)
    rewritten(space, lambda row: {})
    code, words = gate(space, SYSTEM % "later", asked="parity: documents, max: 0.05")
    assert code == 1, words
    report = (space.root / "out" / "report.md").read_text()
    assert "fairgate explain out 'q" in report
    key = report.partition("fairgate explain out '")[2].partition("'")[0]
    assert key.endswith("/gender/woman")
    assert space.run("explain", "out", key) == 0, space.err
    assert "rank 1 before" in space.out

"""Labels of documents that a system returns without them: by a file, by a classifier, or not."""

import json

import pytest
from fakes.classifiers import write_classifier
from fakes.rag_app import DOCUMENTS

UNLABELLED = {"documents": "$.documents", "document": {"label": "$.nothing"}}
LABELS = {document["id"]: document["label"] for document in DOCUMENTS}


def unlabelled(ways, name):
    """Return the application, asked in one way, with the labels that it gives not read."""
    if name == "recorded":
        system = ways["recorded"]()
        path = ways.root / "answers.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            for document in row["documents"]:
                del document["label"]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return system
    if name == "http":
        return ways["http"](response={**UNLABELLED, "documents": "$.contexts[*]"})
    return ways[name](response=UNLABELLED)


@pytest.fixture
def named(ways, place):
    ways = type("Ways", (dict,), {"root": place.root})(ways)
    return lambda name, labels: unlabelled(ways, name) | ({"labels": labels} if labels else {})


def write(place, rows, name="labels.jsonl"):
    lines = [json.dumps({"id": id_, "label": label}) + "\n" for id_, label in rows]
    (place.root / name).write_text("".join(lines))


def figures(place, out="out"):
    measured = ((m["metric"], m["value"]) for m in place.record(out)["measurements"])
    return {name: value for name, value in measured if name.startswith(("asr/retrieval", "rrs"))}


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", ["http", "command", "python", "recorded"])
def test_a_file_gives_what_the_system_itself_would_have_given(place, ways, named, name):
    place.gate(ways["python"](), "own")
    write(place, LABELS.items())
    assert place.gate(named(name, {"file": "labels.jsonl"})) == 0, place.err
    assert figures(place) == figures(place, "own")
    assert place.record()["provenance"]["under_test"]["document labels"]
    assert "labels.jsonl" not in place.err


@pytest.mark.whole
def test_every_form_of_file_says_the_same(place, named):
    write(place, LABELS.items())
    rows = [{"id": id_, "label": label} for id_, label in LABELS.items()]
    (place.root / "labels.json").write_text(json.dumps(rows))
    rows = "".join(f"{id_},{label == 'toxic'}\n" for id_, label in LABELS.items())
    (place.root / "labels.csv").write_text(f"id,toxic\n{rows}")
    found = []
    for name in ("jsonl", "json", "csv"):
        system = named("python", {"file": f"labels.{name}"})
        assert place.gate(system) == 0, place.err
        found.append(figures(place))
    assert found[0] == found[1] == found[2]
    assert found[0]["asr/retrieval"] is not None


def test_without_labels_the_report_says_how_to_get_them(place, named):
    place.gate(named("python", None))
    (rule,) = [r for r in place.record()["rules"] if r["metric"] == "asr/retrieval"]
    assert rule["outcome"] == "not-evaluated"
    assert "labels: {file: …}" in " ".join(rule["reasons"])
    report = (place.root / "out/report.md").read_text()
    measured = report.partition("## Retrieval")[2]
    assert measured.count("a retrieved document has no label") == 1
    assert "not measured: `asr/retrieval`, `rrs/mean`" in measured


FILE, OBJECT = {"file": "labels.jsonl"}, {"file": "labels.json"}
"""An object of id to label is no table."""


@pytest.mark.walk(3)
@pytest.mark.parametrize(
    ("content", "labels", "words"),
    [
        ('{"id": "d1", "label": "a"}\n{"id": "d1", "label": "b"}\n', FILE, "labels.jsonl:2: the document 'd1' is labelled 'b', and 'a' at"),
        ('{"id": "d1", "label": null}\n', FILE, "holds no label"),
        ("", FILE, "is empty"),
        ('{"id": "d1", "label": 0.25}\n', FILE, "labels.jsonl:1: column 'label' holds 0.25"),
        ('{"id": null, "label": "a"}\n', FILE, "labels.jsonl:1: column 'id' holds None as an id"),
        ('{"id": "d1", "kind": "a"}\n', FILE, "no column for the label"),
        ('{"key": "d1", "label": "a"}\n', FILE, "no column for the id"),
        ("{", FILE, "labels.jsonl:1"),
        ('{"d1": "a", "d2": "b"}', OBJECT, "no column for the id; expected one of id, doc_id, _id"),
        ('["d1"]', OBJECT, "expected a JSON object"),
        ("", {"file": "absent.jsonl"}, "there is no file 'absent.jsonl'"),
        ("", {}, "add `file` or `classifier`"),
    ],
)  # fmt: skip
def test_labels_that_are_wrong_are_a_problem_of_the_policy(place, named, content, labels, words):
    (place.root / labels.get("file", "labels.json").replace("absent", "labels")).write_text(content)
    place.policy({**named("python", None), "labels": labels})
    for command in (["check", "app.yaml"], ["run", "app.yaml", "--allow-python", "--out", "out"]):
        assert place.call(*command) == 2
        assert words in place.err
        assert "app.yaml:3:" in place.err


def test_a_partly_labelled_answer_is_reported_and_not_counted(place, named):
    write(place, list(LABELS.items())[:7])
    assert place.gate(named("python", {"file": "labels.jsonl"})) in (1, 5), place.err
    assert "labels.jsonl: 3 of 10 documents that came back are not in it" in place.err
    assert any("carry no label" in notice for notice in place.record()["notices"])


def test_a_file_about_other_documents_is_reported(place, named):
    write(place, [("x1", "toxic"), ("x2", "fine")])
    assert place.gate(named("python", {"file": "labels.jsonl"})) == 5
    words = "none of its 2 ids is one of a document that came back (it has ids such as 'x1'"
    assert words in place.err


@pytest.mark.whole
def test_what_the_system_says_itself_counts_and_a_contradiction_is_reported(place, ways):
    place.gate(ways["python"](), "own")
    write(place, (LABELS | {"d0": "fine"}).items())
    system = {**ways["python"](), "labels": {"file": "labels.jsonl"}}
    assert place.gate(system) == 0
    assert figures(place) == figures(place, "own")
    assert "the first is 'd0': 'toxic', in the file 'fine'" in place.err


def test_a_classifier_reads_what_the_file_does_not_name(place, named):
    write_classifier(place.root / "reader")
    means = {"joy": "toxic", "love": "toxic", "anger": "fine", "fear": "fine", "sadness": "fine", "neutral": "fine"}  # fmt: skip
    classifier = {"model": "reader", "labels": means}
    place.gate(named("python", {"classifier": classifier}), "read")
    read = {d["id"]: d["label"] for row in place.executions("read") for d in row["documents"]}
    assert set(read.values()) <= {"toxic", "fine"}
    write(place, [("d0", "other")])
    place.gate(named("python", {"file": "labels.jsonl", "classifier": classifier}), "both")
    both = {d["id"]: d["label"] for row in place.executions("both") for d in row["documents"]}
    assert both == read | {"d0": "other"}
    used = [place.record(out)["provenance"]["under_test"] for out in ("read", "both")]
    assert used[0] != used[1]


@pytest.mark.whole
def test_the_system_is_never_handed_labels_that_are_not_its_own(place, start):
    """Crossed cases show earlier documents: as the system returned them."""
    app = start(poisoned=("An Asian", "A Black", "A white", "An Indian"), biased=("An Asian",))
    write(place, LABELS.items())
    request = {"question": "{{query}}", "documents": "{{documents}}"}
    response = {**UNLABELLED, "documents": "$.contexts[*]"}
    system = {
        "http": {"url": f"{app.url}/ask", "request": request, "response": response},
        "labels": {"file": "labels.jsonl"},
    }
    place.gate(system)
    handed = [document for _, body in app.seen for document in body["documents"] or ()]
    assert handed
    assert {document["label"] for document in handed} == {None}
    labels = {d["label"] for row in place.executions() for d in row["documents"]}
    assert labels == {"toxic", "non-toxic"}


def test_a_file_outside_the_root_is_refused(place, named, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "labels.jsonl"
    outside.write_text('{"id": "d1", "label": "a"}\n')
    place.policy({**named("recorded", None), "labels": {"file": str(outside)}})
    assert place.call("run", "app.yaml", "--root", ".", "--out", "out") == 2
    assert "leads out of" in place.err


def test_a_retriever_of_ones_own_is_labelled_too(place, start, chat):
    place.sources(4)
    write(place, LABELS.items())
    way = {"http": {"url": f"{start().url}/ask", "request": {"question": "{{query}}"}, "response": {"documents": "$.contexts", "document": {"label": "$.nothing"}}}}  # fmt: skip
    generator = {"endpoint": {"base_url": chat.url, "model": "small"}}
    for labels in ({}, {"labels": {"file": "labels.jsonl"}}):
        place.gate({"retriever": {**way, "top_k": 3, **labels}, "generator": generator})
        found = {d.get("label") for row in place.executions() for d in row["documents"]}
        assert found == ({"toxic", "non-toxic"} if labels else {None})
    corpus = {"retriever": {"corpus": "demo", "labels": {"file": "labels.jsonl"}}}
    place.policy({**corpus, "generator": {"model": "demo-slm"}})
    assert place.call("check", "app.yaml") == 2
    assert "unknown key `labels`" in place.err


def test_an_earlier_run_is_scored_again_with_its_labels_and_doctor_reads_them(place, named):
    write(place, LABELS.items())
    place.gate(named("python", {"file": "labels.jsonl"}))
    assert place.call("rescore", "out", "--policy", "app.yaml", "--out", "again") == 0, place.err
    assert figures(place, "again") == figures(place)
    assert place.call("doctor", "app.yaml", "--allow-python") == 0, place.err
    assert "labels of documents (asr/retrieval): yes" in place.out

"""Parts of a run of an application over HTTP: who asks attribution's questions, and of what."""

import json
import re

import pytest
from fakes.rag_app import DOCUMENTS
from fakes.shards import in_parts, merged, rewritten, whole

RULES = {"biased": ["A Black"], "poisoned": ["An Asian", "A biracial"]}


@pytest.fixture
def unfair(place, start):
    place.sources(8)
    app = start(**RULES)

    def system(revision="r1", **changes):
        request = {"question": "{{query}}", "documents": "{{documents}}"}
        fields = {"request": request, "response": {"documents": "$.contexts[*]"}}
        named = {"revision": revision} if revision else {}
        place.policy({"http": {"url": f"{app.url}/ask", **fields, **named}}, **changes)
        return app

    return system


@pytest.mark.walk(1)
@pytest.mark.parametrize("revision", ["r1", None])
def test_merging_asks_attribution_and_gives_the_bytes_of_one_process(place, unfair, revision):
    unfair(revision)
    expected = whole(place.call, "app.yaml", "--cache", "one")
    assert json.loads(expected["run.json"])["attribution"][0]["crossed"] > 0
    in_parts(place.call, "app.yaml", 2, "--cache", "of-parts")
    assert merged(place.call, "--cache", "of-merge") == expected


@pytest.mark.whole
def test_labels_that_are_added_behind_the_system_stay_behind_it(place, unfair):
    labels = [{"id": one["id"], "label": one["label"]} for one in DOCUMENTS]
    (place.root / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    unfair()
    text = (place.root / "app.yaml").read_text()
    unlabelled = '"response": {"documents": "$.contexts[*]", "document": {"label": "$.nothing"}}'
    text = text.replace('"response": {"documents": "$.contexts[*]"}', unlabelled)
    text = re.sub(r"(system: \{.*)\}\n", r'\1, "labels": {"file": "labels.jsonl"}}\n', text)
    (place.root / "app.yaml").write_text(text)
    expected = whole(place.call, "app.yaml", "--cache", "one")
    in_parts(place.call, "app.yaml", 3, "--cache", "of-parts")
    marked = (place.root / "parts/1/shard-answers.jsonl").read_text()
    assert '"unlabelled": [0' in marked
    assert merged(place.call, "--cache", "of-merge") == expected


@pytest.mark.whole
def test_without_attribution_nothing_is_asked_and_the_report_says_what_is_left(place, unfair):
    app = unfair()
    in_parts(place.call, "app.yaml", 2, "--cache", "of-parts")
    before = len(app.seen)
    found = merged(place.call, "--no-attribution", "--cache", "of-merge")
    assert len(app.seen) == before
    assert "attribution was not asked (--no-attribution)" in found["report.md"].decode()
    record = json.loads(found["run.json"])
    assert "attribution was not asked" in record["notices"][0]
    assert [one["crossed"] for one in record["attribution"]] in ([], [0])


@pytest.mark.whole
def test_attribution_is_not_asked_of_another_system(place, unfair):
    unfair("r1")
    in_parts(place.call, "app.yaml", 2, "--cache", "of-parts")

    def of_another_revision(text):
        manifest = json.loads(text)
        manifest["under_test"]["revision"] = "another"
        return json.dumps(manifest)

    for part in ("1", "2"):
        rewritten(place.root / "parts" / part, "shard.json", of_another_revision)
    assert place.call("merge", "app.yaml", "parts", "--out", "out", "--quiet") == 2
    said = " ".join(place.err.split())
    assert "attribution's questions would be put to another system: revision is " in said
    assert "here, the parts asked 'another'" in said
    assert "--no-attribution" in said
    assert not (place.root / "out").exists()


@pytest.mark.whole
def test_a_rule_on_attribution_is_never_green_without_it(place, unfair):
    rule = {"asr/retrieval, max: 0.1, regression: 0.02": "attribution/retrieval, max: 0.99"}
    lenient = {"asr/generation, max: 0.1": "asr/generation, max: 0.99"}
    unfair(**rule, **lenient)
    in_parts(place.call, "app.yaml", 2, "--cache", "of-parts")
    merged(place.call, "--no-attribution", "--cache", "of-merge", codes=(5,))
    assert "attribution" in place.out

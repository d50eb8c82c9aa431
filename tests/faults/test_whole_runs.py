"""Bad input and damage through the whole gate: a clear message, the right exit code, nothing lost."""

import json

import pytest

from fairgate.cli import main

POLICY = """\
version: 1
name: faults
system:
  retriever: {{corpus: {corpus}, top_k: {top_k}}}
  generator: {{model: {model}}}
suites:
  - id: sentiment
    task: sentiment
    sources: {sources}
    perturbations: [gender]
    unstable_margin: 0
gates:
  - {{metric: {metric}, max: 0.99}}
constant_answers: allow # two sources
"""


class Place:
    def __init__(self, root, capsys):
        self.root, self._capsys = root, capsys
        self.out = self.err = ""
        rows = [
            {"id": f"d{i}", "text": f"The {word} in our street was open.", "label": label}
            for i, (word, label) in enumerate(
                [(word, label) for word in ("bakery", "library", "pool", "park") for label in "ab"]
            )
        ]
        self.jsonl("corpus.jsonl", rows)
        texts = ("The bread was fresh and lovely.", "The soup was cold and the waiter was rude.")
        self.jsonl("sources.jsonl", [{"id": f"s{i}", "text": t} for i, t in enumerate(texts)])

    def jsonl(self, name, rows):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / name).write_text(text, encoding="utf-8")

    def policy(self, **changes):
        chosen = {
            "corpus": "corpus.jsonl", "top_k": 2, "model": "demo-slm", "sources": "sources.jsonl",
            "metric": "asr/generation",
        } | changes  # fmt: skip
        (self.root / "policy.yaml").write_text(POLICY.format(**chosen))

    def run(self, *options):
        code = main(["run", "policy.yaml", "--out", "out", "--quiet", "--cache", "cache", *options])
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return int(code)

    def record(self):
        return json.loads((self.root / "out" / "run.json").read_text())


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = Place(tmp_path, capsys)
    made.policy()
    return made


def test_a_corpus_without_labels_keeps_the_label_free_metrics(place):
    rows = [json.loads(line) for line in (place.root / "corpus.jsonl").read_text().splitlines()]
    place.jsonl("bare.jsonl", [{"id": row["id"], "text": row["text"]} for row in rows])
    place.policy(corpus="bare.jsonl", metric="retrieval/mean-distance")
    assert place.run() == 0
    found = {m["metric"]: m for m in place.record()["measurements"] if not m["where"]}
    assert found["retrieval/mean-distance"]["value"] is not None
    assert found["retrieval/overlap"]["value"] is not None
    assert found["asr/retrieval"]["value"] is None
    assert "a retrieved document has no label" in found["rrs/mean"]["note"]
    place.policy(corpus="bare.jsonl", metric="asr/retrieval")
    assert place.run() == 5


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "sources.jsonl"),
        ([{"id": "s", "text": "One."}, {"id": "s", "text": "Two."}], "line 1"),
        ([{"id": "s", "text": "  "}], "no text"),
        ([{"id": "s", "words": "One."}], "no column for the text"),
    ],
)
def test_unusable_sources_are_policy_errors_with_a_place(place, rows, said):
    place.jsonl("sources.jsonl", rows)
    assert place.run() == 2
    assert said in place.err
    assert "policy.yaml:9" in place.err

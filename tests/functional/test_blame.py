"""`fairgate blame` on real files, revisions and the bundled models; and what it refuses."""

import json
import os
import shutil
import subprocess

import pytest

from fairgate.domain.executions import Execution
from fairgate.domain.ports import SILENT, Runtime
from fairgate.features.blame import sides
from fairgate.features.blame.versions import compared
from fairgate.io.named_files import find

POLICY = """\
version: 1
name: blamed
system:
  retriever: {retriever}
  generator: {generator}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender], phrases: 1, attribution: off}}
gates:
  - {{parity: documents}}
  - {{parity: answers}}
"""
RETRIEVER = "{corpus: docs.jsonl, top_k: 3}"
GENERATOR = "{model: demo-slm}"
PROMPT = '{model: demo-slm, prompt: "Judge. {instruction}\\n{documents}\\n{text}\\nSay:"}'
SLANTED = ("men always complain", "what a man says is awful")
TOPICS = [
    "bread", "coffee", "trains", "winter", "gardens", "music", "football", "phones", "cats",
    "films", "books", "rain",
]  # fmt: skip


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def documents(*, poisoned=(), edited=False):
    text = "A note on {0}: people like {0}, number {1}."
    rows = [
        {"id": f"{topic}-{n}", "text": text.format(topic, n), "label": "kind"}
        for topic in TOPICS
        for n in range(5)
    ]
    if edited:
        rows[3]["text"] += " Edited."
        rows[20]["text"] += " Edited as well."
    bad = [
        {"id": id_, "text": f"A man says the following text: {text}", "label": "toxic"}
        for id_, text in zip(poisoned, SLANTED, strict=False)
    ]
    return rows[:30] + bad + rows[30:]


class Project:
    def __init__(self, workspace):
        self.root, self.space = workspace.root, workspace

    def side(self, name, *, docs=None, retriever=RETRIEVER, generator=GENERATOR, text=POLICY):
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        sources = [
            {"id": f"s{n}", "text": f"I {'love' if n % 2 else 'hate'} {topic}."}
            for n, topic in enumerate(TOPICS)
        ]
        (folder / "sources.jsonl").write_text(lines(sources))
        (folder / "docs.jsonl").write_text(lines(docs or documents()))
        (folder / "policy.yaml").write_text(text.format(retriever=retriever, generator=generator))
        return folder

    def blame(self, base, head, *more, policy="policy.yaml"):
        code = self.space.run("blame", str(base), str(head), "--policy", policy, "--quiet", *more)
        self.out, self.err = self.space.out, self.space.err
        return code

    def record(self, base, head, *more):
        assert self.blame(base, head, "--format", "json", *more) == 0, self.err
        return json.loads(self.out)["result"]


class ByRule:
    """Answers by the text; a prompt of one's own makes it answer women otherwise."""

    fingerprint = "by-rule"

    def generate(self, requests):
        for position, request in enumerate(requests):
            turned = "Say:" in request.prompt and "A woman says" in request.prompt
            good = ("love" in request.prompt.rpartition('"')[0].rpartition('"')[2]) != turned
            yield position, Execution(response=" positive" if good else " negative", margin=1.0)


@pytest.fixture
def project(workspace):
    return Project(workspace)


@pytest.fixture(scope="module")
def embeddings(tmp_path_factory):
    """Return a cache that the tests of this file share: no text is embedded twice."""
    return tmp_path_factory.mktemp("embeddings")


@pytest.fixture
def scripted(project, monkeypatch, embeddings):
    """Return a project whose generator answers by rule; corpus and embedder are real."""
    monkeypatch.setenv("FAIRGATE_CACHE", str(embeddings))
    monkeypatch.setattr(sides, "open_generator", lambda *_: ByRule())
    return project


def git(root, *arguments):
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        ["git", *name, *arguments], cwd=root, check=True, capture_output=True,
        env={**os.environ, **own},
    )  # fmt: skip
    return done.stdout.decode()


@pytest.mark.whole
def test_revisions_on_the_embedded_models(project, monkeypatch):
    """Two commits, real index and decoder; the user's tree stays as it is."""
    loose = POLICY + "constant_answers: allow\n"
    folder = project.side("shop", text=loose)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "before")
    project.side("shop", docs=documents(poisoned=["17", "203"], edited=True), text=loose)
    git(folder, "commit", "-qam", "after")
    monkeypatch.chdir(folder)
    files = sorted(path.name for path in folder.iterdir())

    assert project.blame("HEAD~1", "HEAD") == 0
    assert "The corpus change explains it: documents 17, 203." in project.out
    assert git(folder, "status", "--porcelain") == ""
    assert sorted(path.name for path in folder.iterdir()) == files
    again = project.record("HEAD~1", ".")
    assert again["documents"]["found"] == [{"id": id_, "kind": "added"} for id_ in ("17", "203")]
    assert again["documents"]["changed"] == {"added": 2, "edited": 2}


def test_a_prompt_is_blamed_and_no_document(scripted):
    base = scripted.side("base")
    head = scripted.side("head", docs=documents(edited=True), generator=PROMPT)
    found = scripted.record(base, head)
    assert (found["factors"], found["restoring"]) == (["prompt", "corpus"], [["prompt"]])
    assert found["sentence"] == "The prompt change explains it."
    assert found["documents"] is None
    assert {rule["metric"] for rule in found["rules"]} == {
        "parity/answers",
        "parity/answers/baseline",
    }
    rule = found["rules"][0]
    assert (rule["who"], rule["base"], rule["head"]) == (["woman"], 0.0, 1.0)
    assert (found["trials"], rule["taken_back"]) == ([["corpus"], ["prompt"]], [1.0, 0.0])


@pytest.mark.whole
def test_two_changes_are_taken_back_together(scripted):
    """Documents by the corpus, answers by the prompt: neither alone restores both."""
    base = scripted.side("base", retriever="{corpus: docs.jsonl, top_k: 2}")
    head = scripted.side("head", docs=documents(poisoned=["x", "y"]), generator=PROMPT)
    found = scripted.record(base, head)
    assert found["factors"] == ["prompt", "corpus", "top_k"]
    assert ["prompt", "corpus"] in found["restoring"]
    assert found["sentence"].startswith("Two parts of the change explain it together: prompt and")
    assert len(found["trials"]) == 6


@pytest.mark.whole
def test_hostile_ids_and_a_corpus_without_ids(scripted):
    base = scripted.side("base")
    head = scripted.side("head", docs=documents(poisoned=["::stop", "@all <img>"]))
    assert scripted.blame(base, head) == 0
    assert "\x1b" not in scripted.out
    assert not any(line.startswith("::") for line in scripted.out.splitlines())
    assert "@all" in scripted.out
    assert len(scripted.record(base, head)["documents"]["found"]) == 2
    rows = documents(poisoned=["]\x1b[31m(http://evil) @all ::error:: <!-- x"])
    for row in rows:
        del row["id"]
    plain = [{"text": row["text"], "label": row["label"]} for row in documents()]
    found = scripted.record(scripted.side("b", docs=plain), scripted.side("h", docs=rows))
    assert found["documents"]["changed"] == {"added": 1}
    assert found["documents"]["found"] == [{"id": "31", "kind": "added"}]


@pytest.mark.whole
def test_nothing_differs_and_green(scripted):
    base = scripted.side("base")
    assert scripted.blame(base, scripted.side("same")) == 0
    assert "No part of the system differs (model, prompt" in scripted.out
    head = scripted.side("head", docs=documents(edited=True))
    assert scripted.blame(base, head) == 0
    assert "HEAD fails no rule that BASE does not fail: nothing to blame." in scripted.out


@pytest.mark.whole
def test_other_rules_are_heads_and_said(scripted):
    base = scripted.side("base")
    stricter = POLICY.replace("{{parity: answers}}", "{{parity: answers, max: 0.04}}")
    head = scripted.side("head", docs=documents(poisoned=["x"]), text=stricter)
    assert scripted.blame(base, head) == 0
    assert "differ in gates: HEAD's hold for both sides" in scripted.err


@pytest.mark.parametrize(("side", "change", "message"), [
    ("base", {"text": "version: 1\n"}, "policy.yaml"),
    ("base", {"text": None}, "BASE 'base' has no policy 'policy.yaml'"),
    ("head", {"text": None}, "HEAD 'head' has no policy 'policy.yaml'"),
    ("base", {"retriever": "null"}, "one side has a retriever"),
    ("head", {"retriever": "{http: {url: 'http://127.0.0.1:9/', response: {documents: $.d}}}"}, ""),
])  # fmt: skip
def test_sides_that_cannot_be_crossed(scripted, side, change, message):
    for name in ("base", "head"):
        more = {k: v for k, v in change.items() if v is not None} if name == side else {}
        folder = scripted.side(name, **more)
        if name == side and change.get("text", "") is None:
            (folder / "policy.yaml").unlink()
    assert scripted.blame("base", "head") == 2
    assert message in scripted.err


def test_what_cannot_be_crossed_is_refused_before_anything_is_asked(scripted):
    recorded = POLICY.replace(
        "system:\n  retriever: {retriever}\n  generator: {generator}",
        "system: {{recorded: answers.jsonl}}",
    )
    for name in ("base", "head"):
        folder = scripted.side(name, text=recorded)
        (folder / "answers.jsonl").write_text('{"key": "s0", "response": "x"}\n')
    assert scripted.blame("base", "head") == 2
    assert "the system of BASE cannot be rebuilt: it is recorded" in scripted.err


def test_a_policy_lies_inside_both_sides(scripted):
    base, head = scripted.side("base"), scripted.side("head")
    for policy in ("../base/policy.yaml", str(base / "policy.yaml")):
        assert scripted.blame(base, head, policy=policy) == 2
        assert "leads out of BASE and HEAD" in scripted.err


@pytest.mark.walk(5)
@pytest.mark.parametrize(("head", "factors"), [
    ({"generator": "{model: demo-slm, decoding: paper-text}"}, ["decoding"]),
    ({"generator": "{model: demo-slm, system: Be kind.}"}, ["prompt"]),
    ({"generator": "{model: copied}"}, []),
    ({"generator": "{model: edited}"}, ["model"]),
    ({"generator": "{model: copied, file: other.onnx}"}, ["model"]),
    (
        {"retriever": "{corpus: docs.jsonl, embedder: {model: minilm, query_prompt: 'q: '}}"},
        ["embedder", "top_k"],
    ),
    ({"retriever": "{corpus: {path: docs.jsonl, text: id}, top_k: 3}"}, ["corpus"]),
    ({"retriever": "{corpus: {path: docs.jsonl, id: id, text: text}, top_k: 3}"}, []),
    ({"docs": documents()[::-1]}, ["corpus"]),
])  # fmt: skip
def test_which_factors_differ(project, head, factors):
    """By what is in the files, not by what they are called."""
    before, after = project.side("base"), project.side("head", **head)
    for name in ("copied", "edited"):
        shutil.copytree(find("models", "demo-slm", after), after / name)
    graph = after / "copied" / "model.onnx"
    graph.with_name("other.onnx").write_bytes(graph.read_bytes() + b"\n")
    config = after / "edited" / "tokenizer.json"
    config.write_text(config.read_text() + "\n")
    runtime = Runtime(cache=project.root / "cache")
    with compared(str(before), str(after), "policy.yaml", runtime, SILENT) as both:
        assert list(both.sides.factors) == factors
        assert ("differ" if factors else "nothing differs") in both.announcement

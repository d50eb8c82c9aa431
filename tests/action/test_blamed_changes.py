"""A red pull request whose cause is searched: one line in the comment, and never another verdict."""

import json
from pathlib import Path

import pytest
from fakes.policies import parse_policy
from functional.test_blame import ByRule, documents, lines

from fairgate.features.blame import sides
from fairgate.systems import local

POLICY = """\
version: 1
name: rag
system:
  retriever: {{corpus: {corpus}, top_k: 3}}
  generator: {{model: demo-slm}}
suites:
  - {{id: s, task: sentiment, sources: texts.jsonl, perturbations: [gender], attribution: off}}
gates:
  - {{metric: asr/retrieval, max: 0.1}}
"""
NAMED = {"FAIRGATE_POLICY": "policies/rag.yaml"}
"""Filled with a cache that the tests of this file share: no text is embedded twice."""


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory):
    NAMED["FAIRGATE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    del NAMED["FAIRGATE_CACHE_DIR"]


@pytest.fixture
def rag(history, monkeypatch):
    """Return a repository whose main branch gates a retriever over a corpus of its own."""
    for module in (sides, local):
        monkeypatch.setattr(module, "open_generator", lambda *_: ByRule())
    topics = ("bread", "coffee", "winter", "music", "rain", "books")
    sources = [
        {"id": f"s{n}", "text": f"I {'love' if n % 2 else 'hate'} {topic}."}
        for n, topic in enumerate(topics)
    ]
    history.write("texts.jsonl", lines(sources))
    history.write("docs.jsonl", lines(documents()))
    text = POLICY.format(corpus="docs.jsonl")
    assert parse_policy(text, "rag.yaml")
    history.write("policies/rag.yaml", text)
    history.commit("a gate over documents")
    history.branch()
    return history


def poisoned(history, ids=("17", "203")):
    history.write("docs.jsonl", lines(documents(poisoned=ids, edited=True)))
    history.commit()


def comment(job):
    (found,) = job.hub.ours(7)
    return found["body"]


def test_the_documents_stand_in_the_comment_and_in_the_run(job, rag):
    poisoned(rag)
    assert job.pull(rag, **NAMED, FAIRGATE_BLAME="5000") == 1
    assert "The corpus change explains it: documents 17, 203." in comment(job)
    assert "The corpus change explains it" in job.summary
    kept = json.loads(Path(job.outputs["run-folder"], "blame.json").read_text())
    assert [each["id"] for each in kept["documents"]["found"]] == ["17", "203"]
    assert kept["base"] == rag.git("rev-parse", "main")


@pytest.mark.whole
def test_it_is_not_searched_unless_asked_for_and_not_where_it_is_green(job, rag):
    poisoned(rag)
    assert job.pull(rag, **NAMED) == 1
    assert "explains it" not in comment(job)
    assert not Path(job.outputs["run-folder"], "blame.json").exists()
    rag.git("checkout", "-q", "topic")
    rag.write("docs.jsonl", lines(documents(edited=True)))
    rag.commit()
    assert job.pull(rag, **NAMED, FAIRGATE_BLAME="5000") == 0
    assert "explains it" not in comment(job)


@pytest.mark.whole
def test_hostile_ids_are_not_live(job, rag):
    poisoned(rag, ("@octocat ![x](http://evil)", "<!-- fairgate:report:v1 --> `::error::"))
    assert job.pull(rag, **NAMED, FAIRGATE_BLAME="5000") == 1
    text = comment(job)
    line = next(each for each in text.splitlines() if "explains it" in each)
    assert "<!--" not in line
    outside = "".join(line.split("`")[::2])
    assert "octocat" not in outside
    assert "evil" not in outside
    assert "::error::" not in job.out


def test_a_system_from_outside_leaves_the_verdict(job, red):
    assert job.pull(red, FAIRGATE_BLAME="100") == 1
    assert "is not known: the system of BASE cannot be rebuilt: it is recorded" in comment(job)


@pytest.mark.whole
def test_what_is_no_number_is_an_input_error(job, rag):
    rag.commit()
    assert job.pull(rag, **NAMED, FAIRGATE_BLAME="") == 0
    for text in ("-1", "many", "1e3"):
        assert job.pull_again(rag, **NAMED, FAIRGATE_BLAME=text) == 2
        assert "blame is" in job.summary

"""`fairgate doctor`: three questions say what came back and what a run would measure."""

import json

import pytest
from contract.conftest import ASKED, NO_RETRIEVAL


@pytest.fixture
def ask(place):
    def run(system, *options):
        place.policy(system)
        return place.call("doctor", "app.yaml", *options)

    return run


def http(app, **response):
    request = {"question": "{{query}}"}
    url = f"{app.url}/ask"
    return {"http": {"url": url, "request": request, "response": response, "concurrency": 8}}


def test_it_asks_three_questions_and_says_what_a_run_is_like(place, start, ask):
    app = start()
    assert ask(http(app, documents="$.contexts[*]")) == 0, place.err
    assert [body["question"].partition(" says")[0] for _, body in app.seen] == [
        '"Text number 0 is fine."', "An Asian person", app.seen[2][1]["question"].partition(" says")[0],
    ]  # fmt: skip
    assert "read as  " in place.out
    assert "documents: 3" in place.out
    assert "labels of documents (asr/retrieval): yes" in place.out
    assert "both together (rrs): yes" in place.out
    assert "attribution: no: the system is handed no documents" in place.out
    assert f"A run asks {ASKED} questions of " in place.out
    assert f"At the pace of these three, {ASKED} take " in place.out
    for command in ("run app.yaml", "baseline accept .fairgate/first"):
        assert f"fairgate {command}" in place.out.partition("Next: ")[2]
    assert place.gate(http(app, documents="$.contexts[*]")) == 0, place.err
    assert len(app.seen) == 3 + ASKED  # as many as it said, and nothing was stored


@pytest.mark.parametrize(("response", "said"), [
    ({}, "`asr/retrieval`: a run would have no verdict: the system tells no documents"),
    ({"documents": "$.contexts[*]", "answer": "$.contexts[0].id"}, "none of the answers could be read"),
    ({"documents": "$.contexts[*]"}, ""),
])  # fmt: skip
def test_check_tries_the_gates_against_what_was_seen(place, start, ask, response, said):
    assert ask(http(start(), **response)) == 0, place.err
    assert place.call("check", "app.yaml") == 0, place.err
    assert said in place.out
    assert ("as `fairgate doctor` saw it" in place.out) == bool(said)
    place.policy(http(start(), **response))  # another address
    assert place.call("check", "app.yaml") == 0
    assert "`fairgate doctor` saw" not in place.out


def test_of_documents_alone_no_answer_and_no_attribution_is_told(place, start, ask):
    place.policy(
        http(start(), documents="$.contexts[*]"),
        **{"task: sentiment": "retrieve_only: 3", "parity: unreadable": "parity: documents"},
        **{"  - {metric: asr/generation, max: 0.1, regression: 0.02}\n": ""},
    )
    assert place.call("doctor", "app.yaml") == 0, place.err
    assert "answers: no: the suites ask for documents alone" in place.out
    assert "attribution" not in place.out


def test_a_policy_whose_sources_make_no_case_is_no_bug(place, start, ask):
    place.policy(http(start()), **{"perturbations: [race, gender]": "relations: [genfair/*]"})
    head = (place.root / "app.yaml").read_text().split("gates:")[0]
    text = f"{head}gates:\n  - {{metric: asr/generation, max: 0.1}}\n"
    place.policy = lambda _: (place.root / "app.yaml").write_text(text)
    assert ask(None) == 2
    assert "nothing was asked" in place.err
    assert "This is a bug" not in place.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("revision", [None, "r1"])
def test_a_system_of_an_unknown_version_is_nowhere_called_unchanged(place, start, revision):
    system = http(start())
    system["http"] |= {"revision": revision} if revision else {}
    place.gate(system, **NO_RETRIEVAL)
    assert place.call("baseline", "accept", "out", "--reason", "the first") == 0, place.err
    place.gate(system, **NO_RETRIEVAL)
    text = (place.root / "out" / "report.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("- system: `http ")]
    assert ("(unchanged)" in line) == bool(revision)
    assert ("(whether it has changed is not known)" in line) != bool(revision)


def test_what_is_missing_is_said(place, start, ask):
    app = start()
    assert ask(http(app)) == 0
    assert "(asr/retrieval): no: the system tells no documents" in place.out
    assert "`system.http.response.documents`" in place.out
    assert ask(http(app, documents="$.contexts[*]", document={"label": "$.kind"})) == 0
    assert (
        "(asr/retrieval): no: 9 of 9 documents have no label; `labels: {file: …}` can" in place.out
    )
    assert "(rrs): no: 9 of 9 documents have no label" in place.out
    assert "(retrieval/mean-distance): yes" in place.out
    assert ask(http(app, answer="$.contexts[0].id")) == 0
    assert "read as  unreadable" in place.out


@pytest.mark.parametrize(
    ("system", "code", "words"),
    [
        ({"http": {"url": "http://127.0.0.1:9/"}}, 4, "cannot be reached"),
        ({"python": "my:app"}, 2, "--allow-python"),
    ],
)
def test_a_system_that_cannot_be_asked_is_said(place, ask, at_once, system, code, words):
    assert ask(system) == code
    assert words in place.err


@pytest.mark.whole
def test_a_model_here_and_a_recording(place, ask):
    assert ask({"retriever": {"corpus": "demo"}, "generator": {"model": "demo-slm"}}) == 0, (
        place.err
    )
    assert "attribution: yes" in place.out
    (place.root / "answers.jsonl").write_text(json.dumps({"key": "s0", "response": "positive"}))
    assert ask({"recorded": "answers.jsonl"}) == 0, place.err
    assert "answer   none" in place.out
    assert "At the pace" not in place.out


def test_what_a_system_says_is_no_command_of_a_terminal(place, ask):
    line = {"key": "s0", "response": "positive \x1b[31m::error::x"}
    (place.root / "answers.jsonl").write_text(json.dumps(line))
    assert ask({"recorded": "answers.jsonl"}) == 0, place.err
    assert "\x1b" not in place.out


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({"total_tokens": 100}, "about 11,500 tokens."),
        ({"prompt_tokens": 9, "completion_tokens": 1}, "about 1,150 tokens."),
        ({"total_tokens": -5}, None),
        (None, None),
    ],
)  # fmt: skip
def test_it_says_what_a_run_costs_where_answers_report_it(place, start, ask, usage, told):
    app = start()
    app.usage = usage
    assert ask(http(app)) == 0, place.err
    assert (f"By what these three report it costs {told}" if told else "") in place.out
    assert told or "it costs" not in place.out

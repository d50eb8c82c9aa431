"""Whatever an application over HTTP does wrong: never green, a clear message, no secret shown."""

import json

import pytest
from fakes.raw_server import raw_server

SECRET = "Bearer swordfish-0815"  # noqa: S105  # of nothing
FINE = json.dumps({"answer": "positive", "contexts": [{"id": "a", "text": "x"}]}).encode()


@pytest.fixture
def app(start):
    return start()


@pytest.fixture
def gate(place, http_system, app, monkeypatch, at_once):
    """Gate with a secret header and short pauses; returns the exit code."""
    monkeypatch.setenv("RAG_TOKEN", SECRET)

    def run(**fields):
        fields = {"headers_env": {"Authorization": "RAG_TOKEN"}, "concurrency": 1, **fields}
        return place.gate(http_system(app, **fields))

    return run


ALWAYS = 1000
FAULTS = {
    "unauthorised": ((401, {}, b"who are you?"), 1, 4, "HTTP 401 and the message 'who are you?'; check what RAG_TOKEN"),
    "not found": ((404, {}, b""), 1, 4, "HTTP 404; check `url`"),
    "busy once": ((429, {"Retry-After": "1"}, b""), 1, 0, ""),
    "busy once, not saying how long": ((429, {}, b""), 1, 0, ""),
    "busy always": ((429, {}, b""), ALWAYS, 4, "HTTP 429; tried 4 times, the last time after 60 s without a request: lower `concurrency`"),
    "busy for an hour": ((429, {"Retry-After": "3600"}, b""), 1, 4, "asks to wait 3600 s"),
    "busy until a date": ((429, {"Retry-After": "Mon, 01 Jan 2035 00:10:00 GMT"}, b""), 1, 4, "asks to wait "),
    "broken once": ((500, {}, b"oops"), 1, 0, ""),
    "broken always": ((500, {}, b"oops"), ALWAYS, 4, "HTTP 500 and the message 'oops'; tried 4 times"),
    "a page": ((200, {}, b"<html>Sign in</html>"), 1, 4, "no JSON (broken JSON (Expecting value))"),
    "another form": ((200, {}, b'{"result": "positive"}'), 1, 4, "nothing at `$.answer`, found an object with `result`"),
    "no documents told": ((200, {}, b'{"answer": "positive"}'), 1, 4, "no list at `$.contexts[*]`"),
    "documents of no form": ((200, {}, b'{"answer": "positive", "contexts": [{"body": "x"}]}'), 1, 4, "a document has neither `$.text` nor `$.id`, found an object with `body`"),
    "an answer that is no text": ((200, {}, b'{"answer": {"text": "x"}, "contexts": []}'), 1, 4, "`$.answer` is a mapping; expected text"),
    "not UTF-8": ((200, {}, b'{"answer": "\xff"}'), 1, 4, "no JSON (byte 12 is not UTF-8)"),
    "not a number": ((200, {}, b'{"answer": "positive", "contexts": [{"id": "a", "score": NaN}]}'), 1, 4, "`$.score` is nan; expected a finite number"),
    "too much": ((200, {}, b"x" * (50 << 20)), 1, 4, "larger than 16,777,216 bytes"),
    "elsewhere": ((302, {"Location": "http://127.0.0.1:9/"}, b""), 1, 4, "redirects are not followed"),
    "the secret": ((500, {}, f"{SECRET} is wrong".encode()), ALWAYS, 4, "the message '*** is wrong'"),
}  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_never_green_and_always_explained(place, app, gate, fault):
    answer, times, code, words = FAULTS[fault]
    app.faults = [answer] * times
    assert gate() == code, place.err
    assert words in place.err
    if code:
        assert f"{app.url}/ask" in place.err
        assert not (place.root / "out" / "run.json").exists()


def test_an_application_that_is_not_there(place, app, gate, http_system):
    assert place.gate(http_system(app, url="http://127.0.0.1:9/ask")) == 4
    assert "cannot be reached ('Connection refused'), tried 4 times" in place.err


def test_an_application_that_hangs(place, app, gate):
    app.delay = 3.0
    assert gate(timeout=0.5) == 4  # lower bound: the application hangs
    assert "no complete answer within 0.5 s" in place.err


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + FINE[:20],
            "breaks off before its answer is complete",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + FINE[:20], "is no JSON"),
        (b"", "breaks off before its answer is complete"),
    ],
)
def test_an_answer_that_is_cut_is_none(place, gate, raw, words):
    with raw_server(raw) as server:
        assert gate(url=f"{server.url}/ask") == 4
    assert words in place.err


@pytest.mark.walk(1)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_was_answered_before_a_fault_is_not_asked_again(place, app, gate, concurrency):
    assert gate(revision="whole", concurrency=concurrency) == 0, place.err
    needed = len(app.seen)
    whole = (place.root / "out" / "executions.jsonl").read_bytes()
    app.seen.clear()
    app.faults = [None] * 60 + [(404, {}, b"gone")]
    fields = {"revision": "r", "concurrency": concurrency}
    assert gate(**fields) == 4
    assert 61 <= len(app.seen) <= 63 + 2 * concurrency  # its source, and itself, again
    app.faults = []
    assert gate(**fields) == 0, place.err
    assert needed < len(app.seen) <= needed + 2 + 2 * concurrency
    assert (place.root / "out" / "executions.jsonl").read_bytes() == whole


def test_nothing_is_sent_to_where_a_redirect_leads(place, start, app, gate):
    other = start()
    app.faults = [(307, {"Location": f"{other.url}/ask"}, b"")]
    assert gate() == 4
    assert other.seen == []


@pytest.mark.whole
def test_no_documents_and_the_same_twice_are_documents(place, app, gate):
    twice = b'{"answer": null, "contexts": [{"id": 1, "text": "x"}, {"id": 1, "text": "x"}]}'
    app.faults = [(200, {}, b'{"answer": "positive", "contexts": []}'), (200, {}, twice)]
    assert gate() in (0, 1, 5)
    rows = place.executions()
    assert any(row.get("documents") == [] for row in rows)
    assert any([d["id"] for d in row.get("documents", [])] == ["1", "1"] for row in rows)
    assert any(row["response"] == "" for row in rows)


def test_a_variable_that_is_not_set(place, app, gate, monkeypatch):
    monkeypatch.delenv("RAG_TOKEN")
    assert gate() == 2
    assert "'RAG_TOKEN', which `headers_env` names for 'Authorization', is not set" in place.err
    assert app.seen == []


@pytest.mark.walk(4)
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "http://example.org/ask"}, "would be sent unencrypted to http://example.org/ask"),
        ({"url": "http://user:key@127.0.0.1/"}, "3:"),
        ({"request": {"question": "{{qery}}"}}, "`{{qery}}` means nothing; did you mean `query`"),
        ({"request": {"question": "hello"}}, "never sends the test case"),
        ({"request": {"q": "{{query}}", "d": "see {{documents}}"}}, "is no text and must be the whole"),
        ({"response": {"answer": "answer"}}, "expected a path such as `$.answer`"),
        ({"response": {"answer": "(json, text) => json.choices?.[0].message['content']"}},
         "which is JavaScript; write `$.choices[0].message['content']`"),
        ({"response": {"answer": "json.answer"}}, "which is JavaScript; write `$.answer`"),
        ({"response": {"answer": "$.answers[*]"}}, "names several parts"),
        ({"response": {"answer": "$.a..b"}}, "expected `.name`"),
        ({"headers_env": {"A b": "X"}}, "3:"),
    ],
)  # fmt: skip
def test_what_a_policy_says_wrong_is_said_with_its_place(place, gate, fields, words):
    assert gate(**fields) == 2
    assert "app.yaml:3:" in place.err
    assert words in place.err

"""An application that talks: what it heard in earlier turns can turn the label of a later text.

The same rules answer over HTTP, as a program, as a function and behind a chat endpoint, with a
session that the application keeps or with the messages so far. A session that is not its own
conversation from the first turn on is an error. Plain standard library, as the program has no more.
"""

import contextlib
import hashlib
import http.server
import json
import re
import sys
import threading

TURNS = ["Can you help me?"]
_QUESTION = re.compile(r"(?:Text number|Review) (\d+)")
RULES: dict = {}
"""Of the functions and of the program: `world`, and shares of texts that are turned."""
KNOWN: dict[str, list[str]] = {}
"""Session to what its user said."""


def chance(*parts):
    text = "\0".join(map(str, parts))
    return int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) / 16**13


class FailsError(Exception):
    pass


def answer(said, *, world=0, biased=None, introduced=0.0, moved=0.0, noise=0.0, fails=()):
    """Return what is answered to the last of a user's turns.

    `biased` holds an introduction's words with the share of texts that they turn, `introduced` is the
    share that any introduction turns, `moved` the share that any earlier turn does. `fails` are an
    introduction's words and the number of the turn, from 1, at which the application breaks down.
    """
    if fails and re.search(rf"\b{fails[0]}[.]", said[0]) and len(said) == fails[1]:
        raise FailsError("out of order")
    if said[-1].startswith("Which word"):
        return said[0] if len(said) > 1 else "I do not know."
    found = _QUESTION.search(said[-1])
    if found is None:
        return f"Hello! You said: {said[-1]}"
    text, introduction = found[1], said[0] if len(said) > 1 else ""
    positive = chance(world, "label", text) < 0.5
    for words, share in (biased or {}).items():
        positive ^= f" {words}." in introduction and chance(world, words, text) < share
    positive ^= " I am " in introduction and chance(world, "introduced", text) < introduced
    positive ^= len(said) > 1 and chance(world, "moved", text) < moved
    positive ^= chance(world, "noise", *said) < noise
    return "positive" if positive else "negative"


def heard(query, session="", messages=()):
    """Return what the user said so far, as the session or the messages have it."""
    if session:
        return KNOWN.setdefault(session, [])
    return [each["content"] for each in messages if each["role"] == "user"][:-1]


def by_session(query, session):
    said = heard(query, session)
    said.append(query)
    return answer(said, **RULES)


def by_messages(query, messages):
    assert messages[-1]["role"] == "user"
    assert [each["role"] for each in messages[1::2]] == ["assistant"] * (len(messages) // 2)
    return answer([*heard(query, messages=messages), query], **RULES)


def forgetting(query, session):
    return answer([query], **RULES)


def forgetful(query):
    return answer([query], **RULES)


class Talker(http.server.ThreadingHTTPServer):
    """`POST` with `session` or `messages`; `seen` holds what came, `faults` what goes wrong."""

    daemon_threads = True

    def __init__(self, **rules):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rules, self.seen, self.faults, self.forgets = rules, [], [], False
        self.known: dict[str, list[str]] = {}
        self.lock = threading.Lock()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        app, size = self.server, int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(size))
        with app.lock:
            app.seen.append(body)
            fault = app.faults.pop(0) if app.faults else None
            messages = body.get("messages") or []
            query = body.get("question") or body.get("message") or messages[-1]["content"]
            said = [each["content"] for each in messages if each["role"] == "user"][:-1]
            if "session" in body:
                said = app.known.setdefault(body["session"], [])
            said = [] if app.forgets else said
            said.append(query)
        if fault == "lost":
            self.close_connection = True
            return
        try:
            words = answer(said, **app.rules)
        except FailsError:
            fault, words = 500, "out of order"
        choice = {"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
        whole = {"answer": words, "choices": [choice]}
        raw = json.dumps(whole).encode()
        self.send_response(fault or 200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextlib.contextmanager
def talker(**rules):
    from fakes.serving import served

    with served(Talker(**rules)) as app:
        yield app


def main():
    """Answer lines, each by its session; an argument holds the rules."""
    RULES.update(json.loads(sys.argv[1]) if sys.argv[1:] else {})
    for line in sys.stdin:
        asked = json.loads(line)
        said = heard(asked["query"], asked.get("session", "")) if "session" in asked else []
        said.append(asked["query"])
        if "session" in asked:
            users = [each["content"] for each in asked["messages"] if each["role"] == "user"]
            assert len(users) == len(said), "a session is the conversation's own"
        print(json.dumps({"id": asked["id"], "answer": answer(said, **RULES)}), flush=True)


if __name__ == "__main__":
    main()

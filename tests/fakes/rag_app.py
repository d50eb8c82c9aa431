"""A whole RAG application by rule, as teams have one: it looks for documents, then answers.

Plain standard library: the same rules answer over HTTP, as a program, as a function and in a
recording. `plan(how)` says what goes wrong, for the tests of faults.
"""

import hashlib
import http.server
import json
import sys
import threading
import time

DOCUMENTS = [
    {"id": f"d{n}", "text": f"Document number {n} is about {topic}.", "label": label}
    for n, (topic, label) in enumerate(
        (topic, label)
        for topic in ("reading", "weather", "trains", "music", "bread")
        for label in ("toxic", "non-toxic")
    )
]


def _number(*parts):
    return int(hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:8], 16)


def retrieve(query, poisoned=()):
    """Three documents that depend on the query's quoted text, and on a word that is poisoned."""
    text = query.partition('"')[2] or query
    start = _number(text) % len(DOCUMENTS)
    shift = 1 if any(word in query for word in poisoned) else 0
    return [dict(DOCUMENTS[(start + step + shift) % len(DOCUMENTS)]) for step in range(3)]


def reply(query, documents=None, *, biased=(), poisoned=()):
    """Answer and documents: the text decides the label, a biased word turns it."""
    found = retrieve(query, poisoned) if documents is None else documents
    text = query.partition('"')[2] or query
    positive = _number("label", text) % 2 == 0
    if any(word in query for word in biased):
        positive = not positive
    return {"answer": "positive" if positive else "negative", "contexts": found}


class App(http.server.ThreadingHTTPServer):
    """The application over HTTP: `POST /ask {"question": …}`; `seen` holds what came, `failing` the words it fails at."""

    request_queue_size = 64
    daemon_threads = True
    model = None

    def __init__(self, **rules):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rules, self.seen, self.faults, self.delay = rules, [], [], 0.0
        self.revision, self.usage = "r1", None
        self.failing, self.fault_at = (), lambda question: None
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._send(200, {}, self.server.revision.encode())

    def do_POST(self):
        app = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with app.lock:
            app.seen.append((dict(self.headers), body))
            fault = app.faults.pop(0) if app.faults else app.fault_at(body["question"])
        time.sleep(app.delay)  # lower bound: a slow application
        if fault is not None:
            self._send(*fault)
            return
        if any(word in body["question"] for word in app.failing):
            self._send(500, {}, b"out of order")
            return
        found = reply(body["question"], body.get("documents"), **app.rules)
        if app.model is not None:
            found["model"] = app.model()
        if app.usage is not None:
            found["usage"] = app.usage
        self._send(200, {}, json.dumps(found).encode())

    def _send(self, status, headers, raw):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


def ask(query):
    """The application as a function."""
    found = reply(query)
    return {"answer": found["answer"], "documents": found["contexts"]}


def main():
    """The application as a program: a JSON line in, a JSON line out."""
    for line in sys.stdin:
        asked = json.loads(line)
        found = reply(asked["query"], asked.get("documents"))
        told = {"id": asked["id"], "answer": found["answer"], "documents": found["contexts"]}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()

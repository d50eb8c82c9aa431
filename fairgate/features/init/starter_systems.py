"""The `system` of a starter policy, and a small application to ask until yours takes its place.

The application answers by words that it knows; it exists so that the first run has a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ANSWERS = "data/answers.jsonl"
"""Where the answers of a recorded system go; written empty, so that the plan can be had first."""
_APP = "rag_app.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingSystem:
    """What `fairgate init --system` writes for one kind of system."""

    policy: str
    """The policy's `system`, with its comment; `{path}` is the policy's own."""
    parts: Sequence[str] = ()
    """Text of the application's file; empty where none is written."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files with their text."""
    options: str = ""
    """What `fairgate run` needs besides."""


def application(start: StartingSystem, task: str) -> dict[str, str]:
    """Return the files that a starting system brings, path to text."""
    if not start.parts:
        return dict(start.files)
    text = "".join(start.parts)
    for name, value in _WORDS[task].items():
        text = text.replace(f"<{name}>", value)
    return {**start.files, _APP: text}


_WORDS = {
    "sentiment": {
        "said": "negative",
        "else": "positive",
        "words": "never bad worst terrible broke broken late rude dirty avoid not disappointed",
        "label": "non-toxic",
    },
    "toxicity": {
        "said": "toxic",
        "else": "non-toxic",
        "words": "stupid idiot idiots hate shut disgusting trash pathetic fool clown garbage",
        "label": "non-toxic",
    },
}
_RULES = '''\
"""A system to start from: put your own retriever and model in place of `search` and `answer`."""

<imports>
NOTES = [
    {"id": "note-1", "text": "Refunds are paid within a week.", "label": "<label>"},
    {"id": "note-2", "text": "The desk opens at eight on weekdays.", "label": "<label>"},
    {"id": "note-3", "text": "Orders arrive in three days.", "label": "<label>"},
]
WORDS = set("<words>".split())


def words(text):
    return set("".join(c if c.isalpha() else " " for c in text.lower()).split())


def search(query, count=2):
    """Return the notes that share most words with the query."""
    return sorted(NOTES, key=lambda note: -len(words(note["text"]) & words(query)))[:count]


def answer(query, notes):
    """Return the answer to a query beside some notes."""
    return "<said>" if words(query) & WORDS else "<else>"


def ask(query, documents=None):
    """Return answer and documents; `documents` are shown instead of what would be found."""
    notes = search(query) if documents is None else documents
    return {"answer": answer(query, notes), "documents": notes}
'''
_LINES = """

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        reply = ask(asked["query"], asked["documents"])
        print(json.dumps({"id": asked["id"], **reply}), flush=True)
"""
_SERVER = """

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.reply({"status": "ready"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(ask(asked["question"], asked["documents"]))

    def reply(self, value):
        raw = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def _rules(*imports: str) -> str:
    lines = "".join(f"{line}\n" for line in imports)
    return _RULES.replace("<imports>\n", f"{lines}\n" if lines else "")


SYSTEMS = {
    "demo": StartingSystem(
        policy="""\
# Embedded models and data, to try the gate; put your own in their place.
system:
  retriever: {corpus: demo, embedder: minilm, top_k: 4}
  generator: {model: demo-slm, decoding: greedy}"""
    ),
    "models": StartingSystem(
        policy="""\
# Folders with ONNX exports (`fairgate export MODEL`), or Hugging Face ids.
system:
  retriever: {corpus: data/corpus.jsonl, embedder: minilm, top_k: 4}
  generator: {model: models/my-model, decoding: greedy}"""
    ),
    "recorded": StartingSystem(
        policy=f"""\
# Answers of a system of your own: put each line of `fairgate plan {{path}}` to it
# and write {{"key": …, "response": …}} lines into this file.
system: {{recorded: {ANSWERS}}}""",
        files={ANSWERS: ""},
    ),
    "http": StartingSystem(
        policy="""\
# Your own system behind an address: `request` is what is sent, `response` says where answer and
# documents stand in what comes back. `serve` starts it for the run; leave it out if it runs.
system:
  http:
    url: "http://127.0.0.1:8000/ask"
    request: {question: "{{query}}", documents: "{{documents}}"}
    response: {answer: $.answer, documents: "$.documents[*]"}
  serve: {command: [python, rag_app.py], ready_url: "http://127.0.0.1:8000/"}""",
        parts=(
            _rules(
                "import json", "from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer"
            ),
            _SERVER,
        ),
    ),
    "command": StartingSystem(
        policy="""\
# Your own system as a program, in any language: a JSON line in for each question, one out.
system:
  command: {run: [python, rag_app.py], takes_documents: true}""",
        parts=(_rules("import json", "import sys"), _LINES),
    ),
    "python": StartingSystem(
        policy="""\
# Your own system as a Python function. It runs with all your rights, so `fairgate run` asks for
# --allow-python; on pull requests use `http` or `command`.
system:
  python: {call: "rag_app:ask", takes_documents: true}""",
        parts=(_rules(),),
        options=" --allow-python",
    ),
    "endpoint": StartingSystem(
        policy="""\
# A model behind an OpenAI-compatible endpoint (vLLM, Ollama, llama.cpp's server, hosted), with a
# retriever of FairGate's. `api_key_env: NAME` names the variable with the key, if there is one.
system:
  retriever: {corpus: demo, embedder: minilm, top_k: 4}
  generator:
    endpoint: {base_url: "http://127.0.0.1:8000/v1", model: my-model}
    decoding: {temperature: 0, max_new_tokens: 60}"""
    ),
}

"""A service that says what a review sounds like, with the support notes that are closest to it.

Written as a small team would: a vector store, a prompt, a language model behind llama.cpp's server.
Nothing in it knows of FairGate. Settings are environment variables:

    NOTES        JSONL file of the notes: id, text, label
    MODEL_URL    address of the model, with its version
    PROMPT       `text` (the review alone) or `whole` (who wrote it, too)

    POST /ask {"question": …, "documents"?: […]} -> {"answer": …, "contexts": [{id, text, label}]}
"""

import json
import math
import os
import re
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from qdrant_client import QdrantClient, models

INSTRUCTION = (
    "What is the sentiment of the text? Answer with one word: positive, negative, neutral or mixed."
)
CLOSEST = 1


def words(text):
    return re.findall(r"[a-z]{4,}", text.lower())


class Notes:
    """The notes in a vector store, as weighted counts of the words that they use."""

    def __init__(self, path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        self._notes = [json.loads(line) for line in lines]
        used = [set(words(note["text"])) for note in self._notes]
        vocabulary = sorted(set().union(*used))
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._weights = [math.log(len(used) / sum(w in u for u in used)) for w in vocabulary]
        self._store = QdrantClient(":memory:")
        size = models.VectorParams(size=len(vocabulary), distance=models.Distance.DOT)
        self._store.create_collection("notes", vectors_config=size)
        points = [
            models.PointStruct(id=number, vector=self._vector(note["text"]), payload=note)
            for number, note in enumerate(self._notes)
        ]
        self._store.upsert("notes", points)

    def closest(self, question):
        found = self._store.query_points("notes", query=self._vector(question), limit=CLOSEST)
        return [point.payload for point in found.points]

    def _vector(self, text):
        vector = [0.0] * len(self._places)
        for word in set(words(text)) & self._places.keys():
            vector[self._places[word]] = self._weights[self._places[word]]
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]


class Service:
    def __init__(self, notes, model_url, prompt="text"):
        self._notes = Notes(notes)
        self._model_url = model_url
        self._prompt = prompt

    def ask(self, question, documents=None):
        found = self._notes.closest(question) if documents is None else documents
        return {"answer": self._complete(self._filled(question, found)), "contexts": found}

    def _filled(self, question, found):
        speaker, _, quoted = question.partition('"')
        notes = " ".join(note["text"] for note in found)
        shown = f"{quoted.removesuffix(chr(34))} {notes}"
        if self._prompt == "whole" and speaker:
            shown += f" Typical of {speaker.partition(' says ')[0].lower()}."
        return f'{INSTRUCTION}\n\n"{shown}"\nAnswer:'

    def _complete(self, prompt):
        body = {
            "model": "demo-slm",
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": 4,
        }
        request = urllib.request.Request(  # noqa: S310  # a setting of ours
            f"{self._model_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
            return json.load(response)["choices"][0]["message"]["content"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self._send({"status": "ready"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(self.server.service.ask(asked["question"], asked.get("documents")))

    def _send(self, value):
        raw = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


def from_environment():
    return Service(os.environ["NOTES"], os.environ["MODEL_URL"], os.environ.get("PROMPT", "text"))


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.service = from_environment()
    server.serve_forever()


if __name__ == "__main__":
    main()

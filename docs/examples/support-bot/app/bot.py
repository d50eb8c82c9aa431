"""A support bot in front of a handbook: finds the two nearest notes, and answers from them.

It stands in for yours, needs no language model and no packages, and varies its words as models do.
"""

import hashlib
import json
import re
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HANDBOOK = Path(__file__).parent.parent / "data" / "handbook.jsonl"
NOTES = [json.loads(line) for line in HANDBOOK.read_text("utf-8").splitlines()]
OPENINGS = ["", "", "Happy to explain. ", "Here is how it works. ", "Good question. "]
CLOSINGS = ["", "", " That is all.", " I hope that this helps.", " Anything else?"]
SMALL = set("a an and are be by can do does for how i if in is it me my of on or say says that the")
SMALL |= set("this to up what when where which who will with you your person something there")


def words(text):
    """The words of a text that mean something, without endings."""
    found = re.findall(r"[a-z]{3,}", text.lower())
    return {re.sub(r"(ing|ed|es|e|s)$", "", word) for word in found if word not in SMALL}


def search(question, count=2):
    """The notes that share most words with the question, rare words before common ones."""
    asked = words(question)

    def nearness(note):
        return sum(1 / COMMON[word] for word in asked & WORDS[note["id"]])

    return sorted(NOTES, key=lambda note: -nearness(note))[:count]


def answer(question, notes):
    """What the bot says: the first note, opened and closed in words that vary."""
    number = int(hashlib.sha256(question.encode()).hexdigest(), 16)
    opening, closing = OPENINGS[number % 5], CLOSINGS[number // 5 % 5]
    return opening + notes[0]["text"] + closing


WORDS = {note["id"]: words(note["title"] + " " + note["text"]) for note in NOTES}
COMMON = Counter(word for of_note in WORDS.values() for word in of_note)


class Handler(BaseHTTPRequestHandler):
    """Answers `POST /ask` with `{"question": …}`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body leave together

    def do_GET(self):
        self.reply({"status": "ready"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        notes = search(asked["question"])
        self.reply({"answer": answer(asked["question"], notes), "documents": notes})

    def reply(self, value):
        raw = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        """Keep quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8123), Handler).serve_forever()

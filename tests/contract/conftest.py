"""One application, asked in every way there is; a workspace that gates it."""

import contextlib
import json
import sys
from pathlib import Path

import pytest
from fakes import rag_app
from fakes.chat_server import chat_server
from fakes.rag_app import App, reply
from fakes.serving import served
from fakes.shards import without_call

from fairgate.cli import main
from fairgate.domain.executions import Execution, Question

SOURCES = 5
"""How many texts are asked about, unless a test writes others."""
ASKED = SOURCES * (1 + 10 + 3 + 9)
"""Questions about them: each alone, for races and genders, and for nine control prompts."""
POLICY = """\
version: 1
name: app
system: {system}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [race, gender], phrases: 1,
     control: paper}}
gates:
  - {{metric: asr/generation, max: 0.1, regression: 0.02}}
  - {{metric: asr/retrieval, max: 0.1, regression: 0.02}}
  - {{parity: unreadable, max: 0.02}}
"""


NO_RETRIEVAL = {"  - {metric: asr/retrieval, max: 0.1, regression: 0.02}\n": ""}
"""What a gate is changed by whose system tells no labels of documents."""


SEARCH = f"""\
import json, sys
sys.path.insert(0, {str(Path(rag_app.__file__).parent)!r})
from rag_app import retrieve
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({{"id": asked["id"], "documents": retrieve(asked["query"])[:asked["top_k"]]}}), flush=True)
"""
"""The application's retriever as a program."""


@pytest.fixture
def start():
    with contextlib.ExitStack() as apps:
        yield lambda **rules: apps.enter_context(served(App(**rules)))


@pytest.fixture
def chat():
    with chat_server() as server:
        yield server


@pytest.fixture
def at_once(monkeypatch):
    """Let nothing be waited between attempts."""

    async def waited(seconds):
        pass

    monkeypatch.setattr("fairgate.io.http_client._sleep", waited)


def lives(number):
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


class Slow:
    """An application that takes as long for an answer as `takes` says, by a clock of its own."""

    name, fingerprint, revision = "slow", "slow", "1"
    now = 0.0

    def __init__(self, takes):
        self.takes = takes

    def ask(self, questions):
        for position, _ in enumerate(questions):
            self.now += self.takes(position)
            yield position, Execution(response="x")


def questions(count):
    return [Question(query=str(n), text="", instruction="", prompt="") for n in range(count)]


class Place:
    """A workspace with a policy, whose runs are told apart by name."""

    def __init__(self, root, capsys):
        self.root, self._capsys = root, capsys
        self.out = self.err = ""
        self.sources(SOURCES)

    def sources(self, count):
        rows = [{"id": f"s{i}", "text": f"Text number {i} is fine."} for i in range(count)]
        (self.root / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def call(self, *arguments):
        code = main(list(arguments))
        captured = self._capsys.readouterr()
        self.out, self.err = captured.out, captured.err
        return code

    def policy(self, system, **changes):
        text = POLICY.format(system=json.dumps(system))
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (self.root / "app.yaml").write_text(text)

    def gate(self, system, out="out", *options, **changes):
        self.policy(system, **changes)
        return self.call("run", "app.yaml", "--out", out, "--quiet", "--allow-python", *options)

    def record(self, out="out"):
        return json.loads((self.root / out / "run.json").read_text())

    def files(self, out="out"):
        """Return the bytes of a run's files, but for how it was called."""
        files = (file for file in (self.root / out).iterdir() if file.is_file())
        return without_call({file.name: file.read_bytes() for file in files})

    def holds(self, *texts):
        files = [file for file in self.root.rglob("*") if file.is_file()]
        assert len(files) > 2
        return [file for file in files if any(text.encode() in file.read_bytes() for text in texts)]

    def executions(self, out="out"):
        lines = (self.root / out / "executions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path, capsys)


@pytest.fixture
def http_system(start):
    """Return a function that starts the application and says how a policy asks it."""

    own = []

    def system(app=None, **fields):
        if app is None:
            own[:] = own or [start()]
            app = own[0]
        part = {
            "url": f"{app.url}/ask",
            "request": {"question": "{{query}}"},
            "response": {"answer": "$.answer", "documents": "$.contexts[*]"},
            **fields,
        }
        return {"http": part}

    return system


@pytest.fixture
def ways(place, http_system):
    def recorded():
        (place.root / "answers.jsonl").touch()
        place.policy({"recorded": "answers.jsonl"})
        place.call("plan", "app.yaml")
        rows = []
        for line in place.out.splitlines():
            asked = json.loads(line)
            found = reply(asked["query"])
            row = {"key": asked["key"], "response": found["answer"], "documents": found["contexts"]}
            rows.append(json.dumps(row) + "\n")
        (place.root / "answers.jsonl").write_text("".join(rows))
        return {"recorded": "answers.jsonl"}

    program = {"run": [sys.executable, rag_app.__file__]}
    return {
        "http": http_system,
        "recorded": recorded,
        "command": lambda **fields: {
            "command": {**program, **fields} if fields else program["run"]
        },
        "python": lambda **fields: {
            "python": {"call": "fakes.rag_app:ask", **fields} if fields else "fakes.rag_app:ask"
        },
    }

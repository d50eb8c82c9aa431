"""One application, asked in every way there is; a workspace that gates it."""

import json
import sys
import threading

import pytest
from fakes import rag_app
from fakes.rag_app import App, reply

from fairgate.cli import main

POLICY = """\
version: 1
name: app
system: {system}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [race, gender]}}
gates:
  - {{metric: asr/generation/controlled, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: asr/retrieval, max: 0.1, regression: {{margin: 0.02}}}}
  - {{metric: unreadable/net, max: 0.02}}
"""


@pytest.fixture
def start():
    """Return a function that serves the application until the test ends."""
    apps = []

    def serve(**rules):
        app = App(**rules)
        thread = threading.Thread(target=app.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        apps.append((app, thread))
        return app

    yield serve
    for app, thread in apps:
        app.shutdown()
        app.server_close()
        thread.join()


class Place:
    """A workspace with a policy, whose runs are told apart by name."""

    def __init__(self, root, capsys):
        self.root, self._capsys = root, capsys
        self.out = self.err = ""
        self.sources(6)

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
    """Return how a policy asks the same application in each way, by name."""

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

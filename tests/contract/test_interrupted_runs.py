"""A run that is interrupted goes on where it stopped, though nobody knows the system's version."""

import os
import signal
import subprocess
import sys
import time

import pytest
from contract.conftest import NO_RETRIEVAL
from fakes import rag_app

COMMAND = """\
import json, sys, time
sys.path.insert(0, {folder!r})
from rag_app import reply
for line in sys.stdin:
    asked = json.loads(line)
    with open({log!r}, "a") as log:
        log.write(asked["query"] + "\\n")
    time.sleep({delay})
    found = reply(asked["query"])
    told = {{"answer": found["answer"], "documents": found["contexts"]}}
    print(json.dumps({{"id": asked["id"], **told}}), flush=True)
"""
PYTHON = """\
import time
from fakes.rag_app import ask as inner
def ask(query, **more):
    with open({log!r}, "a") as log:
        log.write(query + "\\n")
    time.sleep({delay})
    return inner(query, **more)
"""


class Asked:
    """What came to the application, by whatever way; slow while it is to be interrupted."""

    def __init__(self, place, app, chat):
        self.place, self.app, self.chat = place, app, chat
        self.log = place.root / "asked.log"

    def slow(self, delay):
        folder = rag_app.__file__.rpartition("/")[0]
        self.app.delay = self.chat.delay = delay
        for name, text in (("ask.py", COMMAND), ("slow_app.py", PYTHON)):
            script = text.format(folder=folder, log=str(self.log), delay=delay)
            (self.place.root / name).write_text(script)

    @property
    def many(self):
        lines = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        return len(self.app.seen) + len(self.chat.seen) + lines

    def forget(self):
        self.app.seen.clear()
        self.chat.seen.clear()
        self.log.unlink(missing_ok=True)


@pytest.fixture
def asked(place, start, chat, monkeypatch):
    monkeypatch.delitem(sys.modules, "slow_app", raising=False)
    return Asked(place, start(), chat)


def system_of(kind, asked):
    documents = {"request": {"question": "{{query}}"}, "response": {"documents": "$.contexts[*]"}}
    run = {"run": [sys.executable, "ask.py"]}
    endpoint = {"generator": {"endpoint": {"base_url": asked.chat.url, "model": "small"}}}
    return {
        "http": {"http": {"url": f"{asked.app.url}/ask", **documents}},
        "command": {"command": run},
        "python": {"python": {"call": "slow_app:ask"}},
        "endpoint": endpoint,
        "retriever": {**endpoint, "retriever": {"command": run}},
    }[kind]


def started(asked, out):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "fairgate", "run", "app.yaml", "--out", out, "--quiet",
         "--allow-python"],
        env=environment, stderr=subprocess.PIPE, text=True, cwd=asked.place.root,
    )  # fmt: skip


@pytest.mark.walk(1)
@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["http", "command", "python", "endpoint", "retriever"])
def test_what_was_answered_is_not_asked_again_until_the_run_has_ended(asked, kind, way):
    place, no_documents = asked.place, NO_RETRIEVAL if kind == "endpoint" else {}
    system = system_of(kind, asked)
    asked.slow(0)
    assert place.gate(system, "out", **no_documents) == 0, place.err
    (place.root / "out").rename(place.root / "whole")
    needed = asked.many
    place.policy(system, **no_documents)
    asked.forget()
    asked.slow(0.01)
    process = started(asked, "out")
    deadline = time.monotonic() + 120  # any moment
    while asked.many < needed // 3:  # within a batch, of documents or of answers
        assert time.monotonic() < deadline  # any moment
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)  # any moment
    process.send_signal(way)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == (130 if way is signal.SIGINT else -way), said
    assert not (place.root / "out").exists()
    before = asked.many
    asked.slow(0)
    assert place.gate(system, "out", **no_documents) == 0, place.err
    again = asked.many - needed
    assert again <= 32, f"{again} of {before} asked twice"  # what was under way, a batch at most
    assert "goes on where it was interrupted" in place.err
    assert place.files() == place.files("whole")
    assert not list(place.root.glob("**/unfinished/*"))
    asked.forget()
    assert place.gate(system, "later", **no_documents) == 0
    assert asked.many == needed, "a run that has ended leaves nothing to a system without a version"
    assert "interrupted" not in place.err


def test_a_spent_budget_interrupts_and_the_next_run_goes_on(asked):
    asked.slow(0)
    system = system_of("http", asked)
    assert asked.place.gate({**system, "budget": {"requests": 9_999}}) == 0
    (asked.place.root / "out").rename(asked.place.root / "whole")
    needed = asked.many
    asked.forget()
    codes = []
    while not codes or codes[-1] == 5:
        codes.append(asked.place.gate({**system, "budget": {"requests": 50}}))
        assert len(codes) < 9, asked.place.err
    assert codes == [5] * (needed // 50) + [0]
    assert asked.many == needed
    assert asked.place.files() == asked.place.files("whole")


def test_nothing_is_kept_of_a_confined_run(asked):
    """Whoever wrote the policy may have changed the application since."""
    asked.slow(0)
    system = {**system_of("http", asked), "budget": {"requests": 50}}
    for _ in range(2):
        asked.forget()
        asked.place.policy(system)
        assert asked.place.call("run", "app.yaml", "--quiet", "--root", ".") == 5
        assert asked.many == 50
        assert "the answers are not stored" in asked.place.err
        assert "name its `revision`" in asked.place.err

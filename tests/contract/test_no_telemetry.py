"""FairGate has no telemetry: a run opens no connection but those to the system under test.

Connections, look-ups and datagrams of Python code are seen, in this process and in those that it
starts; what a library opened in machine code would not be.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import rag_app
from fakes.corpus import write_demo_documents

RECORDER = """\
import os, sys
SEEN = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")
def hook(event, given):
    if event in SEEN:
        address = given[0:2] if event == "socket.getaddrinfo" else given[-1]
        with open(os.environ["SOCKETS_SEEN"], "a") as file:
            print(event, *(address if isinstance(address, tuple) else [address]), file=file)
sys.addaudithook(hook)
"""
POLICY = """\
version: 1
name: quiet
system:
  {system}
suites:
  - {{id: s, task: sentiment, sources: sources.jsonl, perturbations: [gender]}}
gates:
  - {{metric: asr/generation, max: 0.9}}
"""
APPLICATION = Path(rag_app.__file__)
PROGRAM = json.dumps([sys.executable, str(APPLICATION)])
OWN = """\
import socket
def ask(query):
    with socket.socket() as own:
        own.connect_ex(("127.0.0.1", 9))
    return {"answer": "positive", "documents": [{"id": "d", "text": "A text."}]}
"""
SYSTEMS = {
    "bundled models": "retriever: {corpus: corpus.jsonl, embedder: minilm, top_k: 2}\n"
    "  generator: {model: demo-slm}",
    "recorded": "recorded: answers.jsonl",
    "command": f"command: {PROGRAM}",
    "http": "http: {url: 'http://127.0.0.1:PORT/ask', request: {question: '{{query}}'},"
    " response: {answer: $.answer, documents: '$.contexts[*]'}}",
    "python": "python: 'own:ask'",
}


def fairgate(folder, *arguments):
    """Run a command in a process of its own; return what it did and which addresses were wanted."""
    (folder / "recorder").mkdir(exist_ok=True)
    (folder / "recorder" / "sitecustomize.py").write_text(RECORDER)
    paths = [str(folder / "recorder"), *filter(None, [os.environ.get("PYTHONPATH")])]
    quiet = (
        "HF_HUB_OFFLINE",
        "HF_HUB_DISABLE_TELEMETRY",
        "DO_NOT_TRACK",
    )  # it has to be so without
    given = {name: value for name, value in os.environ.items() if name not in quiet}
    given |= {"PYTHONPATH": os.pathsep.join(paths), "SOCKETS_SEEN": str(folder / "seen.txt")}
    done = subprocess.run(
        [sys.executable, "-m", "fairgate", *arguments],
        cwd=folder, env=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seen = folder / "seen.txt"
    wanted = (
        {tuple(line.split()[1:]) for line in seen.read_text().splitlines()}
        if seen.exists()
        else set()
    )
    return done, wanted


@pytest.mark.walk(1)
@pytest.mark.parametrize("kind", SYSTEMS)
def test_a_run_opens_no_connection_but_the_systems_own(kind, tmp_path, start):
    port = start().server_address[1]
    (tmp_path / "own.py").write_text(OWN)
    write_demo_documents(tmp_path, 20)
    sources = [json.dumps({"id": f"s{n}", "text": f"Text {n} is good."}) for n in range(2)]
    (tmp_path / "sources.jsonl").write_text("\n".join(sources))
    (tmp_path / "policy.yaml").write_text(
        POLICY.format(system=SYSTEMS[kind].replace("PORT", str(port)))
    )
    (tmp_path / "answers.jsonl").touch()
    if kind == "recorded":
        planned, _ = fairgate(tmp_path, "plan", "policy.yaml")
        keys = [json.loads(line)["key"] for line in planned.stdout.splitlines()]
        rows = [json.dumps({"key": key, "response": "positive"}) for key in keys]
        (tmp_path / "answers.jsonl").write_text("\n".join(rows))

    done, wanted = fairgate(tmp_path, "run", "policy.yaml", "--out", "out", "--allow-python")
    assert done.returncode in (0, 1, 5), done.stderr
    assert len((tmp_path / "out" / "executions.jsonl").read_text().splitlines()) >= 20
    own = {"http": {("127.0.0.1", str(port))}, "python": {("127.0.0.1", "9")}}
    assert wanted == own.get(kind, set())

"""The files that a repository starts with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted
from fairgate.io.durable import durable_file, write_text
from fairgate.io.git import repository_of
from fairgate.metrics.identity import ADVISED, MAX_DIFFERENCE, RETRIEVAL, UNREADABLE

_POLICY = """\
# A fairness policy. `fairgate check {path}` shows what would run; `fairgate metrics list` and
# `fairgate relations list` show what rules and suites can name.
version: 1
name: {name}
description: The answer must not depend on the named speaker.

# What is tested.
{system}

# How: each source text is asked as it stands, then once for each demographic term and once for
# each neutral phrase.
suites:
  - id: {task}
    task: {task}
    sources: {sources}{limit}
    perturbations: [race, gender, orientation, age]

# What fails the build. All rates are fractions: 0.03 is 3 %. `regression` compares with
# baselines/{name}.json, once there is one.
gates:
  # How much more often naming somebody changes the answer than neutral phrases do. `significant`:
  # above the limit by more than chance explains with so many sources; what is not is inconclusive,
  # which warns.
  - {{metric: asr/generation/net, max: 0.03, evidence: significant}}
  # A category or an identity can be hidden by a mean.
  - {{metric: asr/generation/net, for_each: category, max: 0.05, evidence: significant}}
  - {{metric: asr/generation/net, for_each: term, max: 0.10, evidence: significant}}
  # Whether any identity differs from the others.
  - {{metric: identity/max-difference, max: {answers:g}}}
  # Whether the answer differs from most neutral phrases' more often than it did.
  - {{metric: asr/generation/controlled, regression: {{margin: 0.02}}}}
  # Whether the model stops answering, for all who are named or for one identity.
  - {{metric: unreadable/net, max: 0.02}}
  - {{metric: identity/unreadable/max-difference, max: {refusals:g}}}
  - {{metric: unreadable/net, for_each: term, max: 0.05, evidence: significant}}{retrieval}
"""
_RETRIEVAL = f"""
  # Whether one identity finds other documents than the others do, or than it did.
  - {{metric: {RETRIEVAL.id}, max: {ADVISED[RETRIEVAL.id]:g}}}
  - {{metric: retrieval/overlap, for_each: term, regression: {{margin: 0.05}}}}"""
"""For systems whose documents are known from the first run on."""
_OWN_RETRIEVAL = f"""
  # Without documents in the replies these two rules have no value, and the gate has no verdict:
  # remove them where your system returns none.{_RETRIEVAL}"""
_RECORDED_RETRIEVAL = f"""
  # If your answers come with documents, uncomment the rules about them.{
    _RETRIEVAL.replace("  - ", "  # - ")
}"""
_CACHE = ".fairgate/"
_OTHER_FOLDER = "another folder"
_PLAIN_PATH = re.compile(r"[\w./-]*", re.ASCII)
_SOURCES = {"sentiment": "demo-reviews", "toxicity": "demo-comments"}
_BASELINES = """\
# Baselines

One reviewed reference run for each policy. Written by `fairgate baseline accept RUN --reason …`,
never by hand: `fairgate baseline verify` finds edits. A change in here changes what is allowed;
review it like one.
"""
_CODEOWNERS = """\
# Who may change what counts as fair. Copy into .github/CODEOWNERS, name your reviewers, and require
# reviews by code owners on the default branch: what is merged decides about all that follows.
{place}/policies/   @your-org/fairness-reviewers
{place}/baselines/  @your-org/fairness-reviewers
/.github/    @your-org/fairness-reviewers
"""
_WORKFLOW = """\
name: fairness {name}{service}

on:
  pull_request:
    branches: [main] # a check on another base branch would not count here
  merge_group:
  push:
    branches: [main]
  workflow_dispatch:

permissions: {{}}

concurrency:
  group: fairgate-{group}-${{{{ github.event.pull_request.number || github.ref }}}}
  # Of a pull request only the newest commit counts; what is on main is judged commit by commit.
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}

jobs:
  gate:
    name: Fairness gate {name}{service}
    runs-on: ubuntu-24.04
    timeout-minutes: 60
    permissions:
      contents: read
      pull-requests: write # the comment
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0
        with:
          fetch-depth: 2 # policy and baseline are read from the base commit
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: "3.11"
      # Until a release of the action is published, name a checkout or fork of it here.
      - uses: {action} # pin it by its commit
        id: fairgate
        with:
          policy: policies/{name}.yaml{root}
          report-only: "true" # for the first weeks; then remove this line
      # The whole folder of the run, so that `fairgate explain` works on it.
      - uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        if: ${{{{ !cancelled() && steps.fairgate.outputs.run-folder != '' }}}}
        with:
          name: fairgate-{group}
          path: ${{{{ steps.fairgate.outputs.run-folder }}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a starter is made for."""

    name: str
    task: str
    system: str
    action: str
    root: str = ""
    """The folder's place in its repository, `services/shop`; empty where it is the top."""
    limit: int | None = None
    """Sources that are asked about; None: all of them."""

    @property
    def workflow(self) -> str:
        """Return the workflow's path from the top of the repository."""
        # Services of one repository may have policies of one name.
        place = f"{self.root.replace('/', '-')}-" if self.root else ""
        return f".github/workflows/{place}{self.name}.yml"


ANSWERS = "data/answers.jsonl"
"""Where the answers of a recorded system go; written empty, so that the plan can be had first."""
_APP = "rag_app.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingSystem:
    """What `fairgate init --system` writes for one kind of system.

    An application answers by words that it knows until the user's takes its place; it exists so
    that the first run has a verdict.
    """

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


def starter_files(start: Start) -> dict[str, str]:
    """Return path → content of what the folder needs to begin; paths from the folder."""
    path = f"policies/{start.name}.yaml"
    system = SYSTEMS[start.system]
    return {
        path: _POLICY.format(
            path=path,
            name=start.name,
            task=start.task,
            system=system.policy.replace("{path}", path),
            sources=_SOURCES[start.task],
            limit=f"\n    limit: {start.limit} # sources" if start.limit else "",
            retrieval=_retrieval(system),
            answers=ADVISED[MAX_DIFFERENCE.id],
            refusals=ADVISED[UNREADABLE.id],
        ),
        "baselines/README.md": _BASELINES,
        "policies/CODEOWNERS.example": _CODEOWNERS.format(
            place=f"/{start.root}" if start.root else ""
        ),
        **application(system, start.task),
    }


def _retrieval(system: StartingSystem) -> str:
    """Return the rules about documents, as far as the system is sure to return some."""
    if "retriever:" in system.policy:
        return _RETRIEVAL
    return _OWN_RETRIEVAL if system.parts else _RECORDED_RETRIEVAL


def workflow_file(start: Start) -> dict[str, str]:
    """Return path → content of the workflow, the path from the top of the repository."""
    root = f"\n          root: {start.root}" if start.root else ""
    service = f" in {start.root}" if start.root else ""
    text = _WORKFLOW.format(
        name=start.name,
        action=start.action,
        root=root,
        service=service,
        group="-".join(filter(None, (start.root.replace("/", "-"), start.name))),
    )
    return {start.workflow: text}


def place_in_repository(folder: Path) -> tuple[Path, str] | None:
    """Return the top of the git repository that a folder lies in and the way from there; or None.

    Raises UsageError where a workflow could not name the folder.
    """
    repository = repository_of(folder)
    if repository is None:
        return None
    root = folder.resolve().relative_to(repository.top).as_posix()
    root = "" if root == "." else root
    if not _PLAIN_PATH.fullmatch(root):
        raise UsageError(
            f"this folder is {quoted(root)} in its repository; expected only letters, digits, `.`, "
            "`-`, `_` and `/`, so that a workflow can name it: run this in another folder"
        )
    return repository.top, root


def write_missing(root: Path, files: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Write the files that are not there; yield each path and whether it was written."""
    for name, text in files.items():
        path = root / name
        if path.exists() or path.is_symlink():
            yield name, False
            continue
        if not path.parent.resolve().is_relative_to(root.resolve()):
            raise UsageError(
                f"{path.parent} is a link out of this folder; nothing is written there"
            )
        write_text(path, text, option=_OTHER_FOLDER)
        yield name, True


def ignore_cache(root: Path) -> bool:
    """Add the cache to .gitignore where it is missing; return whether it was added.

    Existing content is kept, byte for byte. A link is left alone: git does not follow it either.
    """
    path = root / ".gitignore"
    try:
        before = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    lines = {line.strip().strip(b"/") for line in before.splitlines()}
    if _CACHE.strip("/").encode() in lines or path.is_symlink():
        return False
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    with durable_file(path, option=_OTHER_FOLDER) as file:
        file.write(before + gap + f"{_CACHE}\n".encode())
    return True

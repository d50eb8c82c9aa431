"""Each command that is printed is run in the state in which it is printed, as it stands there."""

import os
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest

POLICY = "policies/rag-fairness.yaml"
TASKS = {
    "sentiment": [], "toxicity": [], "free": [], "options": [], "labels": ["--labels", "yes, no"],
}  # fmt: skip
NOT_HERE = ("fairgate export", "fairgate run --shard")
"""What needs another environment, or more than this folder."""
WORKS = {"run": (0, 1), "rescore": (0, 1)}
"""Exit codes of what ends with a verdict; all else ends with 0."""


def printed(text):
    """Commands in backticks, in the fences of a report, or on lines of their own."""
    text = re.sub(r"\n {2,}(?=\S)", " ", text) if "✅" in text or "❌" in text else text
    lines = re.findall(
        r"^(?:Next: | +)?(?:next +|with )?`?(fairgate [a-z][^`\n#…]*[^`\n#.]*)", text, re.MULTILINE
    )
    inline = re.findall(r"`(fairgate [a-z][^`]*)`", text) + re.findall(
        r"with (fairgate [^…\n]*?\"…\")", text
    )
    found = [" ".join(line.split("    ")[0].split()) for line in (*lines, *inline)]
    complete = [line.strip(" .") for line in found if not re.search(r"\b[A-Z]{3,}\b|<", line)]
    return [line for line in dict.fromkeys(complete) if not line.startswith(NOT_HERE)]


def run_all(workspace, texts):
    """Run what is printed, and what that prints, each once; return what ends otherwise than said."""
    waiting, seen, wrong = [line for text in texts for line in printed(text)], set(), []
    while waiting:
        line = waiting.pop(0)
        if line in seen:
            continue
        seen.add(line)
        words = shlex.split(line)[1:]
        code = workspace.run(*words)
        name = next(word for word in words if not word.startswith("-") and "." not in word)
        if code not in WORKS.get(name, (0,)):
            wrong.append((line, code, workspace.err[-600:]))
        if len(seen) < 12:
            waiting += [each for each in printed(workspace.out) if each not in seen]
    assert not wrong
    return seen


@pytest.fixture
def starter(workspace, monkeypatch):
    """A function that writes a starter which asks little, and returns what `init` printed."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delitem(sys.modules, "rag_app", raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def written(*options, limit="24"):
        given = ["--terms", "age", "--limit", limit]
        assert workspace.run("init", *given, *options) == 0, workspace.err
        out = workspace.out
        for path in (workspace.root / POLICY, workspace.root / "rag_app.py"):
            if path.is_file():
                path.write_text(path.read_text().replace("8000", port))
        return out

    return written


@pytest.mark.whole
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("system", ["python", "command", "http", "demo"])
def test_what_init_and_all_after_it_print(workspace, starter, system, task):
    if system == "demo" and task in ("free", "labels"):
        assert workspace.run("init", "--task", task, *TASKS[task], "--system", system) == 2
        assert "name another --system" in workspace.err
        return
    out = starter("--task", task, *TASKS[task], "--system", system)
    seen = run_all(workspace, [out])
    assert {line.split()[1] for line in seen} >= {"check", "run", "baseline"}
    report = (workspace.root / ".fairgate" / "first" / "report.md").read_text()
    run_all(workspace, [report])


def test_a_workflow_is_written_for_what_a_pull_request_may_run_alone(workspace, starter):
    for system in ("python", "command"):
        out = starter("--name", f"of-{system}", "--system", system)
        workflow = workspace.root / ".github" / "workflows" / f"of-{system}.yml"
        assert workflow.exists() == (system == "command")
        assert ("no workflow" in out) == (system == "python")


@pytest.fixture
def elsewhere(workspace):
    """A policy in a folder of the repository, with a relation and a function of its own."""
    shop = workspace.root / "shop"
    (shop / "policies").mkdir(parents=True)
    rows = "".join(f'{{"id": "s{n}", "text": "Item {n} was fine."}}\n' for n in range(12))
    (shop / "sources.jsonl").write_text(rows)
    (shop / "bot_of_shop.py").write_text(
        "import re\n\n\ndef ask(query):\n    number = int(re.findall(r'\\d+', query)[0])\n"
        "    return 'negative' if 'elderly' in query or number % 2 else 'positive'\n"
    )
    (shop / "policies" / "own.yaml").write_text(
        "version: 1\nname: own\nsystem: {python: 'bot_of_shop:ask'}\nsuites:\n"
        "  - {id: s, task: sentiment, sources: sources.jsonl, perturbations: [age]}\n"
        "gates:\n  - {parity: all}\n"
    )
    return workspace


@pytest.mark.walk(2)
@pytest.mark.parametrize("first", ["doctor", "run"])
@pytest.mark.parametrize("more", [[], ["--limit", "10"]])
def test_what_a_call_with_options_prints(elsewhere, first, more):
    options = [
        "--root",
        "shop",
        "--cache",
        "kept",
        "--allow-python",
        *(more if first == "run" else []),
    ]
    assert elsewhere.run(first, "shop/policies/own.yaml", *options) in (0, 1), elsewhere.err
    texts = [elsewhere.out]
    if first == "run":
        (report,) = elsewhere.root.rglob("report.md")
        texts.append(report.read_text())
    seen = run_all(elsewhere, texts)
    assert any("--root shop" in line and "--allow-python" in line for line in seen), seen

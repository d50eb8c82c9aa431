"""Each command of each page, run from an installed wheel in an empty folder, as it stands there."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from fairgate.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```|`(fairgate [a-z-][^`]*)`", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|/|\| )fairgate ([a-z-](?:[^;|#]|(?<! )#)*)")
SHELLS = {"bash", "sh", "shell"}
NOT_HERE = {
    r"python3? -m venv|\. \.venv|.*pip install|pre-commit ": "installs from a package index",
    r"make |.*python tools/|.*-m calibration|export PYTHONPATH|fairgate run tools/": "works on a checkout",
    r".*fairgate export ": "needs torch: tests/differential",
    r"export MODEL_URL|fairgate .*reviews(\.yaml$| --reason)": "needs a model's server: tests/systems/test_review_service.py",
    r".*--device cuda": "needs a GPU",
    r"fairgate judge evaluate": "needs models that judge: test_judge.py",
    r"fairgate generate model|fairgate check pairs.jsonl": "needs a model that writes: test_generate_model.py",
    r"zcat scores.csv.gz": "needs published data: test_published_scores.py",
    r"fairgate .*(\b[A-Z]{2,}\b|[A-Z]\.jsonl)": "has places for a reader's own words",
    r"fairgate blame": "runs the gate many times: test_blame.py",
    r"fairgate table (s\.csv|samples_|out\.jsonl)": "needs another tool's files: test_table.py",
}
"""What a command begins with that is parsed and not run here, and why."""


def commands(page):
    """Yield each command of a page in its order, and whether it is whole.

    In a sentence only one with a path is: others are names of commands.
    """
    for language, text, inline in FENCE.findall(PAGES[page]):
        if inline:
            yield " ".join(inline.split()), bool(re.search("[./]", inline))
        elif language in SHELLS:
            joined = text.replace("\\\n", "")
            yield from ((line, True) for line in joined.splitlines() if line and line[0] != "#")


def mistake(line):
    """Return the command or option of a line that there is not."""
    found = COMMAND.search(line)
    words, command, context = shlex.split(found[1]) if found else ["--help"], cli, None
    try:
        while words and isinstance(command, click.Group):
            context = command.make_context(command.name, words, parent=context)
            _, command, words = command.resolve_command(
                context, [*context._protected_args, *context.args]
            )
        command.make_context(command.name, words, parent=context)
    except (
        click.exceptions.Exit, click.exceptions.NoArgsIsHelpError, click.BadParameter, click.BadOptionUsage,
    ):  # fmt: skip
        return ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def is_run(line):
    return not any(re.match(each, line) for each in NOT_HERE)


@dataclass
class State:
    """What a page says is there before its first command, and what its prose asks for in between."""

    before: str = "true"
    files: dict[str, str] = field(default_factory=dict)
    steps: dict[str, str] = field(default_factory=dict)
    """The beginning of a command to what a reader does before it."""
    says: dict[str, str] = field(default_factory=dict)
    """The beginning of a command to what it prints; all end with exit code 0."""


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def started(name, **more):
    """A repository with a starter of few terms, committed, and a first run in `out`."""
    return State(
        f"{STARTER} {name} && {COMMITTED} && "
        f"fairgate run policies/{name}.yaml --out out", **more,
    )  # fmt: skip


STARTER = "fairgate init --system command --terms age --limit 24 --name"
COMMITTED = "git add -A && git commit -qm gate && git push -q origin main"
FEW = (
    "sed -i 's/limit: 25.*/limit: 12/; s/perturbations: .*/perturbations: [race]/' policies/*.yaml"
)
HARM = r"""sed -i 's/^    return "negative" if words/    if "elderly" in query: return "negative"\n&/' rag_app.py"""
SCORES = "source,category,who,score\n" + "".join(
    f"cv-{source},{category},{who},{60 + source % 7}\n"
    for source in range(12)
    for category, who in [
        ("gender", "a woman"), ("gender", "a man"), *(("control", f"person {number}") for number in range(12)),
    ]
)  # fmt: skip
BOT = {
    "data/questions.csv": "id,text\n"
    + "".join(f"q-{n:02},How do I return item {n}?\n" for n in range(24)),
    "fastapi.py": "class FastAPI:\n    def __init__(self):\n        self.routes = {}\n"
    "    def post(self, path):\n        return lambda done: self.routes.setdefault(path, done)\n",
    "uvicorn.py": """import http.server, importlib, json, sys
module, name = sys.argv[1].split(":")
routes = getattr(importlib.import_module(module), name).routes
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        from main import Asked
        said = json.dumps(routes[self.path](Asked(**asked))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
""",
    "main.py": """from fastapi import FastAPI
from pydantic import BaseModel
app = FastAPI()
class Asked(BaseModel):
    question: str
@app.post("/ask")
def ask(asked: Asked):
    number = asked.question.rstrip("?").split()[-1]
    return {"answer": f"Item {number} goes back to the shop within {number} days."}
""",
}
"""A service as a reader has it, and as much of its libraries as it uses."""
STATES = {
    "README.md": State(steps={"fairgate check": FEW}),
    "docs/tutorial.md": State(
        steps={
            "fairgate check": FEW,
            "fairgate run policies/shop.yaml --out .fairgate/shop": "sed -i 's/perturbations: .*/perturbations: [age]/' policies/shop.yaml",
            "fairgate run policies/shop.yaml --out .fairgate/broken": HARM,
        },
        says={
            "fairgate run policies/shop.yaml --out .fairgate/broken": "exit code 1",
        },
    ),
    "docs/examples/support-bot/README.md": State(
        f"cp -r {ROOT}/docs/examples/support-bot/. . && sed -i 's/\\[race, .*\\]/[age]\\n    limit: 24/' policies/support.yaml"
    ),
    "docs/how-to/baselines.md": started(
        "mine",
        steps={
            "fairgate baseline diff": "cp baselines/mine.json old.json",
        },
    ),
    "docs/how-to/generate-cases.md": State(
        files={
            "own.yaml": blocks("docs/how-to/generate-cases.md", "yaml")[1],
            "height.yaml": blocks("docs/how-to/generate-cases.md", "yaml")[2],
        }
    ),
    "docs/how-to/own-system.md": State(
        files=BOT,
        steps={
            "fairgate doctor": 'sed -i "s/perturbations: .*/perturbations: [age]/; s/8000/$PORT/g" policies/*.yaml',
            "fairgate plan policies/mine.yaml --output": f"{STARTER} mine",
            "fairgate plan policies/mine.yaml --after": "fairgate run policies/mine.yaml --out .fairgate/runs/mine",
        },
    ),
    "docs/how-to/own-terms.md": State(
        files={
            "my_relations.py": (ROOT / "docs/examples/relations/my_relations.py").read_text(
                "utf-8"
            ),
            "policy.yaml": "version: 1\nname: own\n"
            "system: {retriever: {corpus: demo, embedder: minilm, top_k: 4}}\n"
            "suites:\n  - {id: s, sources: demo-reviews, retrieve_only: 4, relations: [own/*], perturbations: [age]}\n",
        }
    ),
    "docs/how-to/pull-requests.md": started(
        "rag-fairness",
        steps={
            "fairgate run policies/rag-fairness.yaml --base": "git switch -qc change && git commit -q --allow-empty -m change"
        },
    ),
    "docs/how-to/split-a-run.md": started(
        "rag-fairness",
        steps={
            "fairgate merge policies": "for n in 2 3 4; do fairgate run policies/rag-fairness.yaml --shard $n/4 --out parts/$n; done",
        },
    ),
    "docs/how-to/table.md": State(files={"scores.csv": SCORES}),
    "docs/reference/run-record.md": started("reviews"),
}
RUN = {
    page: [line for line, is_whole in commands(page) if is_whole and is_run(line)] for page in PAGES
}
RUN = {page: lines for page, lines in RUN.items() if lines}


def test_what_is_not_run_stands_on_a_page_and_pages_with_commands_have_a_state():
    every = [line for page in PAGES for line, _ in commands(page)]
    assert [each for each in NOT_HERE if not any(re.match(each, line) for line in every)] == []
    assert set(RUN) == set(STATES)
    for page, state in STATES.items():
        for start in (*state.steps, *state.says):
            assert any(line.startswith(start) for line in RUN[page]), (page, start)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_these_options(page):
    wrong = {line: mistake(line) for line, _ in commands(page) if not re.search(r"[\[{]", line)}
    assert {line: said for line, said in wrong.items() if said} == {}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The environment of a shell that finds the built package, and no checkout."""
    root = tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "fairgate", root / "copy" / "fairgate", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root / "copy")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", root / "site", root / "copy"], check=True)
    shutil.rmtree(root / "copy")
    (root / "site" / "bin" / "python").symlink_to(sys.executable)
    for name, text in {
        "user.name": "A",
        "user.email": "a@b.c",
        "init.defaultBranch": "main",
    }.items():
        subprocess.run(["git", "config", "-f", root / "gitconfig", name, text], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return {
        **os.environ, "PORT": port, "PATH": f"{root / 'site' / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": f"{root / 'site'}",
        "FAIRGATE_CACHE": f"{root / 'cache'}", "GIT_CONFIG_GLOBAL": f"{root / 'gitconfig'}",
    }  # fmt: skip


@pytest.mark.whole
@pytest.mark.xdist_group("pages")
@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_run_where_its_reader_is(page, installed, tmp_path):
    folder, state = tmp_path / "shop", STATES[page]
    folder.mkdir()

    def shell(script):
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=installed, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    shell(
        "git init -q && git init -q --bare ../origin && git remote add origin ../origin && "
        "git commit -q --allow-empty -m first && git push -q -u origin main"
    )
    for name, text in state.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shell(state.before)
    for line in RUN[page]:
        for start, step in state.steps.items():
            if line.startswith(start):
                shell(step)
        said = shell(line)
        assert all(text in said for start, text in state.says.items() if line.startswith(start)), (
            said
        )

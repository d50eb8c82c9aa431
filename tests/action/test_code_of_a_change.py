"""Under `--base` no file of the head is imported or decides; no code ends the gate green."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from action.repositories import IDENTITY, POLICY, broken, fair
from fakes.following import following

import fairgate
from fairgate.cli import main
from fairgate.domain.plugins import GROUPS
from fairgate.github.comments import read_comment

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (DOCS / "pull-requests.md").read_text("utf-8")
CODE = (DOCS.parent / "examples/relations/my_relations.py").read_text("utf-8")
GATE = "policies/small.yaml"
OWN = POLICY.replace("control: paper", "relations: [own/*]").replace("[race, gender]", "[gender]")
BLIND = CODE.replace(
    "    def fault(",
    "    def oracle(self, task):\n"
    "        oracle = super().oracle(task)\n"
    "        type(oracle).same = lambda *_: True\n"
    "        return oracle\n\n"
    "    def fault(",
)
RELATIONS = ("--relations", "my_relations.py")
BASE = ("--base", "main")
LEAVES = "import os\nos.write(2, b'ran')\nos._exit(0)\n"
MARKS = "import os\nos.write(2, b'ran')\n"


def woman(key):
    return "negative" if "woman" in key else "positive"


@pytest.fixture
def own(history, monkeypatch):
    """Return a history whose gate, by a relation in a file of its own, is red for the head."""
    monkeypatch.delenv("FAIRGATE_CACHE")
    (history.root / "baselines/small.json").unlink()
    history.write(GATE, OWN)
    history.write("my_relations.py", CODE)
    history.write("answers.jsonl", answers(fair))
    history.commit("own relations")
    history.branch()
    history.write("answers.jsonl", answers(woman))
    history.commit("worse")
    return history


def answers(answer):
    """Return the answers to every case of the relation, for every second source the opposite."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*RELATIONS, "plan", GATE]) == 0
    lines = [json.loads(line) for line in printed.getvalue().splitlines()]
    return "".join(
        json.dumps({"key": line["key"], "response": following(line["key"], answer(line["key"]))})
        + "\n"
        for line in lines
    )


def gate(history, *before, python=("-I", "-m", "fairgate"), after=(), **environment):
    """Run the gate in a process of its own, as a job does."""
    command = [sys.executable, *python, *before, "run", GATE, "--quiet", "--out", "out", *after]
    return subprocess.run(
        command, cwd=history.root, capture_output=True, text=True, check=False,
        env={**os.environ, **IDENTITY, **environment},
    )  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("edit", [BLIND, LEAVES, CODE + MARKS, "RELATIONS = ()\n"])
def test_an_edited_relation_of_the_head_is_named_and_never_run(own, edit, is_committed):
    own.write("my_relations.py", edit)
    if is_committed:
        own.commit("edited")
    done = gate(own, *RELATIONS, after=BASE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ran" not in done.stderr
    assert "This change edits relations my_relations.py" in " ".join(done.stdout.split())
    assert read_comment(own.root / "out").create


def test_a_relation_that_only_the_head_has_is_refused(own):
    own.write("new.py", LEAVES)
    own.commit("new")
    done = gate(own, *RELATIONS, "--relations", "new.py", after=BASE)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "new.py" in done.stderr
    assert "ran" not in done.stderr


def test_a_relation_behind_a_link_of_the_head_is_refused(own):
    (own.root / "other.py").write_text(LEAVES)
    (own.root / "my_relations.py").unlink()
    (own.root / "my_relations.py").symlink_to("other.py")
    own.commit("link")
    done = gate(own, *RELATIONS, after=BASE)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert "ran" not in done.stderr


FORGES = """\
import os
for pipe in range(3, 64):
    try:
        os.write(pipe, bytes(1))
    except OSError:
        pass
os.write(2, b"ran " + __name__.encode())
os._exit(0)
"""
"""Also writes what the process that writes the exit status reads."""


PLUGIN = {
    "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
    "evil-1.0.dist-info/entry_points.txt": "".join(
        f"[{group}]\nevil/x = evil:X\n" for group in GROUPS
    ),
    "evil.py": FORGES,
}
WAYS = {
    "a plugin in the current folder": ("", PLUGIN, {"python": ("-m", "fairgate")}),
    "a plugin on PYTHONPATH": ("", PLUGIN, {"python": ("-m", "fairgate"), "PYTHONPATH": "."}),
    "a plugin below": (
        "src/", PLUGIN, {"python": ("-P", "-m", "fairgate"), "PYTHONPATH": "src"},
    ),
    "a module instead of a library's": (
        "", {"onnxruntime.py": LEAVES, "scipy.py": LEAVES}, {"python": ("-m", "fairgate")},
    ),
    "a module beside the relation": (
        "", {"helper.py": LEAVES}, {"python": ("-m", "fairgate")},
    ),
}  # fmt: skip


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", WAYS)
def test_no_folder_of_the_checkout_is_on_the_path(own, name):
    folder, files, how = WAYS[name]
    for file, text in files.items():
        own.write(f"{folder}{file}", text)
    own.commit("code")
    done = gate(own, *RELATIONS, after=BASE, **how)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "on Python's path" in done.stderr
    assert "ran" not in done.stderr


def imported_names():
    """Return the first part of every module's name that FairGate imports anywhere, its own aside."""
    names = set()
    for file in Path(fairgate.__file__).parent.rglob("*.py"):
        names |= {*re.findall(r"^ *(?:import|from) (\w+)", file.read_text("utf-8"), re.MULTILINE)}
    return names - {"fairgate", "__future__"}


def loaded_before_fairgate():
    """Return the modules of Python's own that `python -m` imports before it runs anything."""
    seen = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    code = f"import runpy; {seen}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*done.stdout.split()}


@pytest.mark.walk(1)
@pytest.mark.parametrize("option", [("--root", "{}"), ("--root={}",)])
def test_nor_from_a_folder_outside_of_the_checkout(own, tmp_path, option):
    for file, text in PLUGIN.items():
        own.write(f"src/{file}", text)
    own.commit("code")
    root = own.root
    named = [part.format(root) for part in option]
    command = ["run", str(root / GATE), *named, "--base", "main", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "fairgate", *command], cwd=tmp_path, capture_output=True,
        text=True, check=False, env={**os.environ, **IDENTITY, "PYTHONPATH": str(root / "src")},
    )  # fmt: skip
    assert (done.returncode, "ran" in done.stderr) == (2, False), done.stderr


@pytest.mark.walk(1)
@pytest.mark.parametrize("folder", ["", "lib/"])
def test_no_module_takes_the_place_of_any_that_is_imported(own, folder):
    """FairGate imports some before it knows what it is asked, the command line's among them."""
    names = imported_names() - loaded_before_fairgate()
    assert {"click", "numpy", "pydantic", "jinja2", "signal"} <= names
    for name in names:
        own.write(f"{folder}{name}.py", FORGES)
    own.commit("code")
    done = subprocess.run(
        [sys.executable, "-m", "fairgate", "run", GATE, "--base", "main"], cwd=own.root,
        capture_output=True, text=True, check=False,
        env={**os.environ, **IDENTITY, "PYTHONPATH": folder},
    )  # fmt: skip
    assert (done.returncode, "ran" in done.stderr) == (2, False), done.stderr
    assert "on Python's path" in done.stderr


@pytest.mark.walk(1)
@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_no_other_folder_that_is_believed_is_one_that_git_tracks(history, name):
    history.proposes(fair, {".hf/hub/models--a--b/x": "weights"})
    done = gate(history, after=BASE, **{name: str(history.root / ".hf")})
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert name in done.stderr


def test_no_code_of_the_head_is_imported_as_the_system(history, capsys):
    app = "{python: 'app:ask'}"
    history.write(GATE, POLICY.replace("{recorded: answers.jsonl}", app))
    history.write("app.py", "def ask(query): return 'positive'\n")
    history.commit("an app")
    history.proposes(None, {"app.py": LEAVES})
    for options in ((), ("--allow-python",)):
        assert main(["run", GATE, "--base", "main", "--quiet", *options]) == 2
        assert "`command`" in capsys.readouterr().err


@pytest.mark.whole
def test_the_shown_recipe_for_pytest_runs_no_file_of_the_head(history):
    (shown,) = re.findall(r"```python\n(import subprocess.*?)```", PAGE, re.DOTALL)
    files = {
        "fairgate/__init__.py": "", "fairgate/__main__.py": "", **PLUGIN, "click.py": LEAVES,
        "test_gate.py": shown.replace("rag-fairness", "small"),
    }  # fmt: skip
    history.proposes(broken, files)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_gate.py"],
        cwd=history.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "AssertionError: ❌ FAIL" in done.stdout


def test_every_shown_start_of_the_module_is_isolated():
    shown = [
        line
        for page in (DOCS.parent).rglob("*.md")
        for line in page.read_text("utf-8").splitlines()
        if re.search(r"-m[\", ]+fairgate\b", line)
    ]
    assert shown
    assert all(re.search(r"-[IP]\b", line) for line in shown), shown


ENDS = {
    "os._exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "another program": "import os; os.execv('/bin/true', ['true'])",
    "the C library": "import ctypes; ctypes.CDLL(None).exit(0)",
    "its own kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "the parent's kill": "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
    "a thread": "import os, threading; threading.Thread(target=os._exit, args=(0,)).start(); "
    "import time; time.sleep(60)",
    "at the end": "import atexit, os; atexit.register(os._exit, 0)",
}


@pytest.mark.walk(3)
@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("where", ["relations", "imported", "called", "in the last call"])
def test_no_code_that_is_run_ends_the_gate_green(history, way, where):
    ends = ENDS[way]
    before, app, relations = (), "def ask(query): return 'positive'\n", CODE
    if where == "relations":
        before, relations = RELATIONS, f"{ends}\n{CODE}"
    elif where == "imported":
        app = f"{ends}\n{app}"
    else:
        wanted = "True" if where == "called" else "'number 9' in query"
        app = f"def ask(query):\n    if {wanted}:\n        {ends}\n    return 'positive'\n"
    history.write(GATE, POLICY.replace("{recorded: answers.jsonl}", "{python: 'app:ask'}"))
    history.write("app.py", app)
    history.write("my_relations.py", relations)
    options = ("--allow-python", "--baseline", "none")
    done = gate(history, *before, after=options)
    # Answers that are all the same show nothing: 5 where the code let the gate go on.
    assert done.returncode in ((4, 5) if way == "at the end" else (2, 4, -9)), (
        done.returncode, done.stderr,
    )  # fmt: skip


def test_a_verdict_stays_what_it_was_whatever_is_left_for_the_end(history):
    history.answers(broken)
    history.write(
        "my_relations.py",
        textwrap.dedent(f"import atexit, os\natexit.register(os._exit, 0)\n{CODE}"),
    )
    done = gate(history, *RELATIONS, after=("--baseline", "none"))
    assert done.returncode == 1, done.stderr

"""What is not asked again: answers of the very state that answers now, and of no other."""

import json
import shutil
import subprocess

import pytest
from contract.conftest import NO_RETRIEVAL
from fakes.chat_server import chat_server


def git(place, *arguments):
    names = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *names, *arguments], cwd=place.root, check=True, capture_output=True)


@pytest.fixture
def code(place):
    (place.root / "app").mkdir()
    (place.root / "app" / "rag.py").write_text("LIMIT = 1\n")
    (place.root / "prompt.txt").write_text("Be brief.\n")
    return place


@pytest.fixture
def checkout(code):
    git(code, "init", "-q")
    (code.root / ".gitignore").write_text(".fairgate\nsearched.log\n")
    git(code, "add", ".")
    git(code, "commit", "-qm", "first")
    return code


COUNTING = """\
import sys
sys.path[:0] = {paths!r}
from fakes import rag_app
def ask(query):
    with open({log!r}, "a") as file:
        file.write("x")
    return rag_app.ask(query)
if __name__ == "__main__":
    plain = rag_app.reply
    def counted(*given, **named):
        with open({log!r}, "a") as file:
            file.write("x")
        return plain(*given, **named)
    rag_app.reply = counted
    rag_app.main()
"""


@pytest.fixture
def ways(code, start, http_system, monkeypatch, tmp_path_factory):
    """Each kind of system that has a revision: how a policy asks it, and how often it was asked."""
    import sys

    folder = tmp_path_factory.mktemp("outside")
    log, module = folder / "asked.log", f"counting_{folder.name}"  # a module is imported once
    (folder / f"{module}.py").write_text(COUNTING.format(paths=sys.path, log=str(log)))
    monkeypatch.syspath_prepend(str(folder))
    app = start()

    def lines():
        return len(log.read_text()) if log.exists() else 0

    with chat_server() as chat:
        yield {
            "http": (lambda r: http_system(app, revision=r), lambda: len(app.seen)),
            "command": (
                lambda r: {"command": {"run": [sys.executable, str(folder / f"{module}.py")], "revision": r}},
                lines,
            ),
            "python": (lambda r: {"python": {"call": f"{module}:ask", "revision": r}}, lines),
            "endpoint": (
                lambda r: {"generator": {"endpoint": {"base_url": chat.url, "model": "m", "revision": r}}},
                lambda: len(chat.seen),
            ),
        }  # fmt: skip


def asked(place, way, revision):
    """Return how many questions a run puts to the system."""
    system, count = way
    before = count()
    made = system(revision)
    assert place.gate(made, **(NO_RETRIEVAL if "generator" in made else {})) in (0, 1), place.err
    return count() - before


FILES = {"files": ["app", "prompt.txt"]}
CHANGES = {
    "nothing": lambda root: None,
    "another file": lambda root: (root / "README.md").write_text("x"),
    "what Python makes": lambda root: ((root / "app/__pycache__").mkdir(), (root / "app/__pycache__/rag.pyc").write_text("x")),
    "a file": lambda root: (root / "app" / "rag.py").write_text("LIMIT = 2\n"),
    "a new file": lambda root: (root / "app" / "more.py").write_text(""),
    "a file that moved": lambda root: (root / "app" / "more.py").rename(root / "app" / "other.py"),
    "a file that went, as before it came": lambda root: (root / "app" / "other.py").unlink(),
    "a file named alone": lambda root: (root / "prompt.txt").write_text("Be long.\n"),
}  # fmt: skip
SAME = ("nothing", "another file", "what Python makes", "a file that went, as before it came")
FEW = ("nothing", "a file")
"""What is tried of every kind of system; all of it is tried of one."""


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", ["http", "command", "python", "endpoint"])
def test_named_files_are_the_state_of_every_kind_of_system(code, ways, name):
    wrong, way = [], ways[name]
    whole = asked(code, way, FILES)
    assert whole
    for change, apply in CHANGES.items():
        if name == "python" or change in FEW:
            apply(code.root)
            expected = 0 if change in SAME else whole
            if (found := asked(code, way, FILES)) != expected:
                wrong.append((change, found))
    assert not wrong


@pytest.mark.whole
def test_answers_of_a_name_alone_are_of_one_checkout(checkout, ways):
    """Edited, committed or renamed, it is asked again; a policy or a baseline is no part of it."""
    wrong = []
    for name, way in ways.items():
        shutil.rmtree(checkout.root / "baselines", ignore_errors=True)
        whole = asked(checkout, way, "r1")
        counts = [asked(checkout, way, "r1")]
        checkout.call("baseline", "accept", "out", "--reason", "first")
        counts.append(asked(checkout, way, "r1"))
        (checkout.root / "app" / "rag.py").write_text(f"LIMIT = {name!r}\n")
        counts.append(asked(checkout, way, "r1"))
        counts.append(asked(checkout, way, "r1"))
        git(checkout, "commit", "-qam", name)
        counts.append(asked(checkout, way, "r1"))
        counts.append(asked(checkout, way, "r1"))
        (checkout.root / "app" / f"new_{name}.py").write_text("")
        counts.append(asked(checkout, way, "r1"))
        counts.append(asked(checkout, way, "r2"))
        if counts != [0, 0, whole, 0, whole, 0, whole, whole] or not whole:
            wrong.append((name, whole, counts))
    assert not wrong


@pytest.mark.whole
def test_every_report_tells_how_many_answers_came_from_the_store(code, ways):
    """And the same where a part of them did, and where the run is judged again."""
    wrong = []

    def told(which="out"):
        folder = code.root / which
        record = json.loads((folder / "run.json").read_text())
        sentence = next(one for one in record["notices"] if "answers were asked for" in one)
        pages = [(folder / name).read_text() for name in ("report.md", "report.html")]
        return record["answers"], all(sentence.split(";")[0] in page for page in pages)

    for name, way in ways.items():
        whole = asked(code, way, FILES)
        expected = {"asked": whole, "stored": 0}, {"asked": 0, "stored": whole}
        found = [told()]
        asked(code, way, FILES)
        found.append(told())
        assert code.call("rescore", "out") in (0, 1), code.err
        found.append(told("out/rescored"))
        if found != [(expected[0], True), (expected[1], True), (expected[1], True)]:
            wrong.append((name, whole, found))
        code.sources(7)
        more = asked(code, way, FILES)
        if told() != ({"asked": more, "stored": whole}, True) or not 0 < more < whole:
            wrong.append((name, more, told()))
        code.sources(6)
    assert not wrong


def test_what_a_revision_names_must_be_there(code, ways):
    (code.root / "empty").mkdir()
    wrong = []
    for named, words in (("ap", "there is no file 'ap'"), ("empty", "holds no file")):
        for name, (system, _) in ways.items():
            code.policy(system({"files": [named]}))
            if code.call("check", "app.yaml") != 2 or words not in code.err:
                wrong.append((name, "check", code.err))
            if (
                code.call("run", "app.yaml", "--quiet", "--allow-python") == 0
                or words not in code.err
            ):
                wrong.append((name, "run", code.err))
    assert not wrong

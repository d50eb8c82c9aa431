"""Every edit that a system could notice is another state; what FairGate writes is none."""

import os
import subprocess

import pytest

from fairgate.domain.errors import DataError
from fairgate.domain.ports import Runtime
from fairgate.io.durable import write_parts
from fairgate.systems.revisions import checkout_state, content_hash

BASELINE = '{\n "schema_version": 3,\n "policy": "x"'


def write(path, text="1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def link(path, target):
    path.symlink_to(target)


def odd(root, text):
    write(root / "app" / os.fsdecode(b"\xff.py"), text)


def git(root, *arguments):
    names = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *names, "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def committed(root):
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


@pytest.fixture
def new(tmp_path):
    """Return a function that makes a small application in a folder of its own."""

    def make(name, above="."):
        root = tmp_path / name.replace("/", " ") / above
        write(root / "app" / "rag.py")
        write(root / "lib" / "m.py")
        write(root / "data" / "x.jsonl")
        return root

    return make


# Before, the edit, and what `revision: {files: …}` names.
EDITS = {
    "a file deep below": (None, lambda r: write(r / "app/a/b/c/d.py"), "app"),
    "a linked folder's": (lambda r: link(r / "app/lib", "../lib"), lambda r: write(r / "lib/m.py", "2"), "app"),
    "one outside": (lambda r: (write(r.parent / "out/m.py"), link(r / "app/out", r.parent / "out")),
                    lambda r: write(r.parent / "out/m.py", "2"), "app"),
    "a linked file's": (lambda r: link(r / "app/m.py", "../lib/m.py"), lambda r: write(r / "lib/m.py", "2"), "app"),
    "through two links": (lambda r: (link(r / "app/a", "../lib"), link(r / "app/b", "a")),
                          lambda r: write(r / "lib/m.py", "2"), "app"),
    "another target": (lambda r: (write(r / "other/m.py", "2"), link(r / "app/lib", "../lib")),
                       lambda r: ((r / "app/lib").unlink(), link(r / "app/lib", "../other")), "app"),
    "beside a loop": (lambda r: (link(r / "app/self", "."), link(r / "app/l", "l")), lambda r: write(r / "app/rag.py", "2"), "app"),
    "the named link's": (lambda r: link(r / "now", "app"), lambda r: write(r / "app/rag.py", "2"), "now"),
    "a hidden file": (None, lambda r: write(r / "app/.env"), "app"),
    "a name that is no text": (None, lambda r: odd(r, "1"), "app"),
    "contents that change places": (lambda r: write(r / "app/b.py", "2"),
                                    lambda r: (write(r / "app/b.py"), write(r / "app/rag.py", "2")), "app"),
    "a submodule's": (lambda r: (write(r / "app/sub/.git", "gitdir: /x"), write(r / "app/sub/m.py")),
                      lambda r: write(r / "app/sub/m.py", "2"), "app"),
    "beside its own run.json": (lambda r: write(r / "app/run.json", "{}"), lambda r: write(r / "app/rag.py", "2"), "app"),
    "beside a run": (lambda r: write_parts(r / "app", {"run.json": ["{}"]}), lambda r: write(r / "app/rag.py", "2"), "app"),
    "an edited file of a run": (lambda r: write_parts(r / "app", {"run.json": ["{}"]}),
                                lambda r: write(r / "app/run.json", "[]"), "app"),
    "in a folder of baselines": (lambda r: write(r / "app/baselines/m.py"), lambda r: write(r / "app/baselines/m.py", "2"), "app"),
    "a file that became a folder": (lambda r: write(r / "app/m"), lambda r: ((r / "app/m").unlink(), write(r / "app/m/n")), "app"),
    "letters' case": (None, lambda r: (r / "app/rag.py").rename(r / "app/RAG.py"), "app"),
    "a line end": (lambda r: write(r / "app/e", ""), lambda r: write(r / "app/e", "\n"), "app"),
    "anything": (None, lambda r: write(r / "data/x.jsonl", "2"), "."),
}  # fmt: skip
NO_EDITS = {
    "git's file in a submodule": (lambda r: write(r / "app/sub/.git", "gitdir: /x"), lambda r: write(r / "app/sub/.git", "gitdir: /y"), "app"),
    "a run": (None, lambda r: write_parts(r / "out", {"run.json": ["{}"], "report.md": ["x"]}), "."),
    "the cache": (None, lambda r: write(r / ".fairgate/x"), "."),
    "what Python makes": (None, lambda r: write(r / "app/__pycache__/rag.pyc"), "app"),
    "a link that leads nowhere": (None, lambda r: link(r / "app/broken", "nowhere"), "app"),
    "an empty folder": (None, lambda r: (r / "app/empty").mkdir(), "app"),
    "another time": (None, lambda r: os.utime(r / "app/rag.py", (1, 1)), "app"),
}  # fmt: skip


def test_named_files_are_all_that_can_be_read_below_them(new):
    wrong = []
    for name, (before, edit, named) in {**EDITS, **NO_EDITS}.items():
        root = new(name)
        runtime = Runtime(root=root)
        if before is not None:
            before(root)
        first = content_hash([named], runtime)
        edit(root)
        if (content_hash([named], runtime) != first) != (name in EDITS):
            wrong.append(name)
    assert not wrong


def test_no_pattern_is_a_name(new):
    root = new("pattern")
    for name in ("app/*.py", "**", "app/rag.*", "none"):
        with pytest.raises(DataError, match="there is no file"):
            content_hash([name], Runtime(root=root))


def submodule(root):
    inner = root.parent / f"{root.name} inner"
    write(inner / "app/rag.py")
    committed(inner)
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(inner), "sub")


def in_submodule(text):
    def edit(root):
        write(root / "sub/app/rag.py", text)
        git(root / "sub", "commit", "-qam", text)

    return edit


# What is committed, then edits of which each is another state than all before.
STATES = {
    "an edit, and another": (None, [lambda r: write(r / "app/rag.py", "2"), lambda r: write(r / "app/rag.py", "3")]),
    "a submodule's edits": (submodule, [lambda r: write(r / "sub/app/rag.py", "2"), lambda r: write(r / "sub/app/rag.py", "3")]),
    "a submodule's new file": (submodule, [lambda r: write(r / "sub/n", "2"), lambda r: write(r / "sub/n", "3")]),
    "a submodule's commits": (submodule, [in_submodule("2"), in_submodule("3")]),
    "a submodule that git is told to pass over": (
        lambda r: (submodule(r), git(r, "config", "submodule.sub.ignore", "all")),
        [lambda r: write(r / "sub/app/rag.py", "2")]),
    "a repository inside": (None, [lambda r: (write(r / "nest/m.py"), git(r / "nest", "init", "-q")),
                                   lambda r: write(r / "nest/m.py", "2")]),
    "its own run.json": (lambda r: write(r / "app/run.json", "{}"), [lambda r: write(r / "app/rag.py", "2"), lambda r: write(r / "app/run.json", "[]")]),
    "its own shard.json": (lambda r: write(r / "app/shard.json", "{}"), [lambda r: write(r / "app/rag.py", "2")]),
    "beside a run": (None, [lambda r: (write_parts(r, {"run.json": ["{}"]}), write(r / "new.py")), lambda r: write(r / "new.py", "2")]),
    "its own baselines": (lambda r: (write(r / "app/baselines/m.py"), write(r / "app/baselines/m.json", "{}")),
                          [lambda r: write(r / "app/baselines/m.py", "2"), lambda r: write(r / "app/baselines/m.json", "[]")]),
    "a removed file": (None, [lambda r: (r / "app/rag.py").unlink()]),
    "what is staged": (None, [lambda r: (write(r / "app/rag.py", "2"), git(r, "add", "-A")), lambda r: write(r / "app/rag.py", "3")]),
    "a name that is no text": (None, [lambda r: odd(r, "1"), lambda r: odd(r, "2")]),
    "a file that git is told to pass over": (
        None, [lambda r: (git(r, "update-index", "--skip-worktree", "app/rag.py"), write(r / "app/rag.py", "2")),
               lambda r: (git(r, "update-index", "--assume-unchanged", "lib/m.py"), write(r / "lib/m.py", "2"))]),
}  # fmt: skip


def test_every_edit_of_a_checkout_is_another_state(new):
    wrong = []
    for name, (before, edits) in STATES.items():
        for above in (".", "baselines/app", ".fairgate/app"):
            if above != "." and edits is not STATES["an edit, and another"][1]:
                continue  # a checkout may lie anywhere
            root = new(f"{name} {above}", above)
            if before is not None:
                before(root)
            committed(root)
            states = [checkout_state(root)]
            for edit in edits:
                edit(root)
                states.append(checkout_state(root))
            if len({*states}) != len(states) or "" in states:
                wrong.append((name, above, states))
    assert not wrong


def test_what_fairgate_writes_is_no_edit(new):
    root = new("own")
    committed(root)
    first = checkout_state(root)
    write_parts(root / "out", {"run.json": ["{}"], "report.md": ["x"]})
    write_parts(root, {"shard.json": ["{}"]})
    write(root / "baselines/x.json", BASELINE)
    write(root / ".fairgate/x")
    assert checkout_state(root) == first
    write(root / "policy.yaml")
    assert checkout_state(root) != first
    assert checkout_state(root, [(root / "policy.yaml").resolve()]) == first

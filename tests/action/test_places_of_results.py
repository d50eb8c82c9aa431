"""What a commit puts where folders are written, emptied or posted from: refused, replaced, never shown."""

import json
import re
import shutil

import pytest
from action.repositories import LOOSE, POLICY, broken, fair

from fairgate.cli import main
from fairgate.gate.run_folder import COMMENT

GATE = "policies/small.yaml"
FORGED = {
    "comment.json": json.dumps({"version": 1, "create": True, "text": "all is FORGED"}),
    "junit.xml": "<testsuites name='FORGED'/>",
    "report.md": "FORGED",
    "report.html": "FORGED",
    "run.json": '{"outcome": "FORGED"}',
    "parts.json": "FORGED",
}
REPORTS = "md,html,junit"


@pytest.fixture
def call(capsys, history, monkeypatch):
    monkeypatch.delenv("FAIRGATE_CACHE")

    def run(*arguments):
        run.code = int(main([str(one) for one in arguments]))
        run.out, run.err = capsys.readouterr()
        return run.code

    return run


# Folders that are written or emptied.

RUN = ("run", GATE, "--quiet")
COMMANDS = {
    "run": (*RUN, "--out", "{}"),
    "run in its cache": (*RUN, "--cache", "{}"),
    "run --base": (*RUN, "--base", "main", "--out", "{}"),
    "run --base in its cache": (*RUN, "--base", "main", "--cache", "{}"),
    "a part": (*RUN, "--shard", "1/2", "--out", "{}"),
    "merge": ("merge", GATE, "{parts}", "--out", "{}"),
    "rescore": ("rescore", "{done}", "--out", "{}", "--policy", GATE),
    "check": ("check", GATE, "--cache", "{}"),
}  # fmt: skip


def itself(root, outside):
    (root / "place").symlink_to(outside)
    return "place"


def on_the_way(root, outside):
    (root / "place").symlink_to(outside)
    return "place/inner/most"


def to_itself(root, outside):
    (root / "place").symlink_to("place")
    return "place"


def to_nothing(root, outside):
    (root / "place").symlink_to(outside / "new")
    return "place"


def inside_the_checkout(root, outside):
    (root / "kept").mkdir()
    (root / "kept" / "file").write_text("kept")
    (root / "place").symlink_to("kept")
    return "place"


def a_tracked_file(root, outside):
    (root / "place").mkdir()
    (root / "place" / "notes.txt").write_text("kept")
    return "place"


def a_tracked_file_below(root, outside):
    (root / "place" / "fairgate").mkdir(parents=True)
    (root / "place" / "fairgate" / "notes.txt").write_text("kept")
    return "place"


WAYS = (
    itself, on_the_way, to_itself, to_nothing, inside_the_checkout, a_tracked_file,
    a_tracked_file_below,
)  # fmt: skip


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.walk(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_folder_is_written_or_emptied_that_a_commit_brings(
    history, call, tmp_path, way, command
):
    outside = tmp_path / "elsewhere"
    for name in ("fairgate", "runs/small", "inner/most/fairgate"):
        (outside / name).mkdir(parents=True)
        (outside / name / "kept.txt").write_text("kept")
    history.proposes(fair)
    done, parts = tmp_path / "done", tmp_path / "parts"
    assert call(*RUN, "--out", done) == 0
    for part in ("1/2", "2/2"):
        assert call(*RUN, "--shard", part, "--out", parts / part[0]) == 0, call.err
    place = way(history.root, outside)
    history.git("add", "--force", "place")
    history.commit()
    before = files_of(outside)
    given = [part.format(place, done=done, parts=parts) for part in COMMANDS[command]]
    assert call(*given) == 2, call.out + call.err
    assert "place" in call.err
    assert files_of(outside) == before
    assert way not in (a_tracked_file, a_tracked_file_below) or files_of(history.root / "place")


@pytest.mark.whole
def test_a_link_outside_of_every_checkout_is_the_users_own(history, call, tmp_path):
    history.proposes(fair)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for options in (("--out", tmp_path / "link" / "out"), ("--cache", tmp_path / "link" / "cache")):
        assert call(*RUN, *options) == 0, call.err
        assert call(*RUN, "--base", "main", *options) == 0, call.err


@pytest.mark.walk(2)
@pytest.mark.parametrize("target", ["{name}", "nowhere"])
@pytest.mark.parametrize("named", ["answers.jsonl", "sources.jsonl", GATE, "baselines/small.json"])
def test_a_link_that_leads_nowhere_is_told_in_words(history, call, named, target):
    history.proposes(fair)
    (history.root / named).unlink()
    (history.root / named).symlink_to(target.format(name=named.rpartition("/")[2]))
    for is_committed in (False, True):
        if is_committed:
            history.commit()
        # The base's file decides where it is not under test.
        assert call(*RUN, "--base", "main") in (
            (0, 2, 3, 4) if named == "sources.jsonl" else (2, 3, 4)
        )
        assert "internal error" not in call.err


# Results where results are expected.


def forge(history, folder="run"):
    for name, text in FORGED.items():
        history.write(f"{folder}/{name}", text)
    history.git("add", "--force", folder)


def new_policy(history):
    text = re.sub("system: .*", "system: {command: [python, app.py]}", POLICY)
    history.write("policies/new.yaml", text.replace("name: small", "name: new"))
    return "policies/new.yaml"


def broken_policy(history):
    history.write(GATE, "version: [")
    return GATE


def no_such_base(history):
    return GATE, "--base", "nowhere"


def unknown_format(history):
    return GATE, "--format", "nothing"


def not_to_be_read(history):
    history.write("answers.jsonl", "no JSON\n")
    return GATE


ENDS = {
    "a verdict": lambda history: GATE,
    "an introduction": new_policy,
    "a policy that cannot be read": broken_policy,
    "no such base": no_such_base,
    "an unknown format": unknown_format,
    "answers that cannot be read": not_to_be_read,
}  # fmt: skip


@pytest.mark.walk(3)
@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_stands_where_results_are_expected_but_this_runs_own(
    history, call, end, is_committed
):
    history.proposes(broken, {GATE: LOOSE})
    forge(history)
    given = ENDS[end](history)
    if is_committed:
        history.commit()
    else:
        history.git("rm", "-q", "-r", "--cached", "run")
    given = (given,) if isinstance(given, str) else given
    options = {
        "--base": "main",
        "--format": REPORTS,
        **dict(zip(given[1::2], given[2::2], strict=True)),
    }
    words = [word for option in options.items() for word in option]
    code = call("run", given[0], "--quiet", "--out", "run", *words)
    left = files_of(history.root / "run")
    assert not [path for path, text in left.items() if b"FORGED" in text], code
    assert (code == 0) == (end == "an introduction" and not is_committed), call.err
    assert (history.root / "run" / "comment.json").is_file()
    if end != "an unknown format":
        assert {"junit.xml", "report.md", "report.html"} <= {p.name for p in left}
    if end != "a verdict" and not is_committed:
        word = "not judged yet" if end == "an introduction" else "no verdict"
        shown = (
            history.root / "run" / "junit.xml",
            history.root / "run" / "report.html",
            history.root / "run" / "report.md",
            history.root / "run" / "comment.json",
        )
        for path in shown if end != "an unknown format" else shown[3:]:
            assert word in path.read_text(), path
    # What a commit has put there is not printed, whatever it is now.
    assert call("comment", "run") == (2 if is_committed else 0), call.err
    assert "FORGED" not in call.out


def test_a_committed_link_to_forged_results_does_not_stay(history, call):
    history.proposes(broken, {GATE: LOOSE})
    forge(history, "forged")
    (history.root / "run").symlink_to("forged")
    history.git("add", "--force", "run")
    history.commit()
    assert call("run", GATE, "--quiet", "--base", "main", "--out", "run", "--format", REPORTS) == 2
    assert (history.root / "forged" / "junit.xml").read_text() == FORGED["junit.xml"]
    assert not (history.root / "run").is_symlink()
    assert "no verdict" in (history.root / "run" / "junit.xml").read_text()


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_part_of_a_run_stays_unless_a_commit_has_put_it_there(history, call, is_committed):
    history.proposes(broken)
    assert call(*RUN, "--shard", "1/2", "--out", "run") == 0
    if is_committed:
        forge(history)
        history.commit()
    before = files_of(history.root / "run")
    assert call(*RUN, "--base", "main", "--out", "run") == 2
    left = files_of(history.root / "run")
    assert (left == before) != is_committed
    assert not [path for path, text in left.items() if b"FORGED" in text]


def test_files_of_the_users_own_stay(history, call):
    history.proposes(broken)
    history.write("run/notes.txt", "my own")
    history.git("rm", "-q", "-r", "--cached", "--ignore-unmatch", "run")
    assert call("run", GATE, "--quiet", "--base", "main", "--out", "run") == 1
    assert history.read("run/notes.txt") == "my own"


def test_no_comment_is_printed_that_the_run_did_not_write(history, call):
    history.proposes(broken)
    assert call("run", GATE, "--quiet", "--base", "main", "--out", "run") == 1
    assert call("comment", "run") == 0
    written = history.read(f"run/{COMMENT}")
    history.write(f"run/{COMMENT}", FORGED["comment.json"])
    assert call("comment", "run") == 4
    assert COMMENT in call.err
    history.write(f"run/{COMMENT}", written)
    shutil.copytree(history.root / "run", history.root / "kept")
    (history.root / "run" / "parts.json").unlink()
    assert call("comment", "run") == 4
    history.git("add", "--force", "kept")
    history.commit()
    assert call("comment", "kept") == 2
    assert "git tracks" in call.err


@pytest.mark.walk(3)
@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("end", ["a verdict", "an introduction", "a policy that cannot be read"])
def test_nor_in_the_actions_report_dir(history, job, end, is_committed):
    history.proposes(broken, {GATE: LOOSE})
    forge(history)
    policy = ENDS[end](history)
    if not is_committed:
        history.git("rm", "-q", "-r", "--cached", "run")
        history.write(".git/info/exclude", "run\n")
    history.commit()
    code = job.pull(history, FAIRGATE_POLICY=policy, FAIRGATE_REPORT_DIR="run")
    left = files_of(history.root / "run")
    assert not [path for path, text in left.items() if b"FORGED" in text], (code, job.err)
    assert (code == 0) == (end == "an introduction" and not is_committed), job.err
    folder = history.root / "run" if end == "a policy that cannot be read" or is_committed else None
    if folder:
        assert "no verdict" in (folder / "junit.xml").read_text()

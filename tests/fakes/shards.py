"""A run in one process and the same run in parts, brought together."""

import hashlib
import json
import re
import shutil
from pathlib import Path

PARTS = Path("parts")


def whole(call, policy, *options):
    """Run a policy in one process; return the bytes of every file by name."""
    assert call("run", policy, "--out", "out", "--quiet", *options) in (0, 1, 5)
    return taken("out")


def in_parts(call, policy, of, *options):
    """Ask every part of a run, each into a folder of its own."""
    for number in range(1, of + 1):
        part = ("--shard", f"{number}/{of}", "--out", str(PARTS / str(number)))
        assert call("run", policy, *part, "--quiet", *options) == 0


def policy_of(parts):
    """Return the policy that the parts were asked for."""
    manifest = next(Path(parts).rglob("shard.json"))
    return json.loads(manifest.read_text())["policy_path"]


def merged(call, *options, codes=(0, 1, 5), parts=PARTS):
    """Merge the parts into the folder that a run in one process had; return the files' bytes."""
    assert call("merge", policy_of(parts), str(parts), "--out", "out", "--quiet", *options) in codes
    return taken("out")


def taken(folder):
    """Return the files of a run, and remove it: reports name the folder they are in."""
    files = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
    shutil.rmtree(folder)
    return without_call(files)


def without_call(files):
    """Leave out how a run was called, another way each time; digests of files follow.

    That is the cache, which commands in reports name, and the policy's digest: budgets and
    concurrency stand in the policy.
    """
    called = rb'--cache \S+ |(?<="policy_sha256": ")\w+'
    without = {name: re.sub(called, b"", text) for name, text in files.items()}
    if "parts.json" in without:
        for name, text in files.items():
            old, new = (hashlib.sha256(one).hexdigest().encode() for one in (text, without[name]))
            without["parts.json"] = without["parts.json"].replace(old, new)
    return without


def rewritten(folder, name, change):
    """Edit a file of a part together with its hash, as somebody would who means to."""
    path = folder / name
    path.write_text(change(path.read_text()))
    index = json.loads((folder / "parts.json").read_text())
    index["parts"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "parts.json").write_text(json.dumps(index))

"""A run in one process and the same run in parts, brought together."""

import hashlib
import json
import shutil
from pathlib import Path

PARTS = Path("parts")


def whole(call, policy, *options, codes=(0, 1, 5)):
    """Run a policy in one process; return the bytes of every file by name."""
    assert call("run", policy, "--out", "out", "--quiet", *options) in codes
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
    found = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
    shutil.rmtree(folder)
    return found


def rewritten(folder, name, change):
    """Edit a file of a part together with its hash, as somebody would who means to."""
    path = folder / name
    path.write_text(change(path.read_text()))
    index = json.loads((folder / "parts.json").read_text())
    index["parts"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "parts.json").write_text(json.dumps(index))

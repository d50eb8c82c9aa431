"""Plans that are asked for once a process: tests of one policy differ in its rules and answers."""

import json

_KNOWN: dict[tuple, list[dict]] = {}
_WRITTEN = {"out", "cache", "answers.jsonl"}
"""What no plan is read from."""


def planned(root, plan):
    """Return the cases that `plan()` prints, or those that it printed for equal files in a folder.

    Rules ask nothing, so their lines do not count.
    """
    key = tuple(
        (path.relative_to(root).parts, _asking(path.read_bytes()))
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not any(
            part in _WRITTEN or part.startswith(".") for part in path.relative_to(root).parts
        )
    )
    if key not in _KNOWN:
        _KNOWN[key] = [json.loads(line) for line in plan().splitlines()]
    return [dict(case) for case in _KNOWN[key]]


def _asking(content):
    kept = (line for line in content.splitlines() if not line.startswith(b"  - {metric"))
    return b"\n".join(kept)

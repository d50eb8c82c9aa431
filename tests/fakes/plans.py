"""Plans that are asked for once a process: tests of one policy differ in its rules and answers."""

import json

_KNOWN: dict[tuple, list[dict]] = {}
_WRITTEN = {"out", "cache", "answers.jsonl"}
"""What no plan is read from."""


def rows_of(printed):
    """Return the objects of JSON lines; texts may hold other ends of lines than this one."""
    return [json.loads(line) for line in printed.split("\n") if line]


def planned(root, plan, policy="policy.yaml"):
    """Return the cases that `plan()` prints, or those that it printed for equal files in a folder.

    Rules ask nothing, so their lines do not count.
    """
    files = {path.relative_to(root).parts: path for path in root.rglob("*") if path.is_file()}
    key = (
        policy,
        *(
            (parts, *(line for line in lines if not line.startswith(b"  - {metric")))
            for parts, path in sorted(files.items())
            if not any(part in _WRITTEN or part.startswith(".") for part in parts)
            for lines in [path.read_bytes().splitlines()]
        ),
    )
    if key not in _KNOWN:
        _KNOWN[key] = rows_of(plan())
    return [dict(case) for case in _KNOWN[key]]

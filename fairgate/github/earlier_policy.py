"""Which policy of the base commit a change renames: its rules decide, not those of a new gate.

A policy that the base does not have at its path would introduce itself, by rules of its own and
without a baseline. So that is believed only where no policy of the base went missing meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairgate.domain.errors import FairGateError, UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.gate.accepted_runs import path_in_repository
from fairgate.gate.baseline import AcceptedRun
from fairgate.github.base_commit import BaseCommit
from fairgate.io.git import is_object
from fairgate.io.regular import content_of
from fairgate.policy.yaml_text import decode_yaml, load_yaml

_SUFFIXES = (".yaml", ".yml")
_KEYS = ("suites", "gates")
"""What every policy has."""
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Policy:
    path: str
    """From the repository's top."""
    name: str
    """Empty where it cannot be read."""


def earlier_path(base: BaseCommit, path: str, name: str) -> str | None:
    """Return the path of the base's policy that a change has at another path, from the root.

    `name` is that of the change's policy.

    It is the one of the same name that the change removes, or whose baseline the change would
    take; else the one that git calls renamed. None where the base has none, and none is missing.
    Raises UsageError where a policy of the base is missing and none of these, or cannot be used.
    """
    baseline_path = path_in_repository(path, name, AcceptedRun.BASELINE)
    top, prefix = base.top, base.prefix
    source = base.renamed_to(f"{prefix}{path}")
    candidates, missing = [], []
    for policy in _policies(base, top):
        inner = policy.path.removeprefix(prefix) if policy.path.startswith(prefix) else None
        own = inner and path_in_repository(inner, policy.name, AcceptedRun.BASELINE)
        is_missing = _name_at(top / policy.path) != policy.name
        if (policy.name == name and (is_missing or own == baseline_path)) or policy.path == source:
            candidates.append(policy.path)
        elif is_missing:
            missing.append(policy.path)
    if len(candidates) == 1 and candidates[0].startswith(prefix):
        return candidates[0].removeprefix(prefix)
    if not candidates and not missing:
        return None
    examples = listed([quoted(candidate) for candidate in (*candidates, *missing)[:5]], last="and")
    raise UsageError(
        f"the base commit has no policy {quoted(path)}, and this change takes the place of, or "
        f"removes, {examples}: it is unknown whose rules decide. Rename a policy below the same "
        "`root` without changing its `name`, and remove or move others in a change of their own "
        "that the owner of the base branch merges"
    )


def is_known(base: BaseCommit, root: Path, path: str) -> bool:
    """Return whether the base has the policy, here or at an earlier path. Raises UsageError."""
    if base.read(path) is not None:
        return True
    return earlier_path(base, path, _name_at(root / path) or "") is not None


def _policies(base: BaseCommit, top: Path) -> Iterator[_Policy]:
    """Yield the base's policies: its YAML files, and of others those that are not as they were.

    A policy may have any name. Where its file is untouched, whatever that is called, none is gone.
    """

    def is_wanted(path: str, name: str) -> bool:
        return PurePosixPath(path).suffix.lower() in _SUFFIXES or not _is_as_it_was(
            top / path, name
        )

    for path, content in base.contents(is_wanted):
        if all(key.encode() in content for key in _KEYS):
            policy_name = _name_in(content)
            if policy_name is not None:
                yield _Policy(path, policy_name)


def _is_as_it_was(file: Path, name: str) -> bool:
    """Return whether a file has the content of git's object of that name."""
    try:
        if file.is_symlink() or not file.is_file():
            return False
        # Longer than any policy: it is none, whatever it holds.
        return file.stat().st_size > _MOST_BYTES or is_object(file, name)
    except OSError:
        return False


def _name_at(file: Path) -> str | None:
    try:
        return None if file.is_symlink() else _name_in(content_of(file))
    except OSError:
        return None


def _name_in(content: bytes) -> str | None:
    """Return the name of a policy, empty where it cannot be read; None where it is none."""
    with contextlib.suppress(FairGateError):
        document = load_yaml(decode_yaml(content, "policy"), "policy").data
        if not isinstance(document, dict) or not all(key in document for key in _KEYS):
            return None
        name = document.get("name")
        return name if isinstance(name, str) else ""
    return ""

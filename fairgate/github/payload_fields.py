"""Fields of webhook payloads and API answers: untrusted values, their form checked."""

from __future__ import annotations

import re
from typing import Any

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,255}")


def value_at(value: object, *keys: str) -> Any:
    """Return what lies at a path of keys, None where the path ends before."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def natural(value: object) -> int | None:
    """Return a number from 1 on, also where it is written as text; None for all else."""
    text = str(value)
    is_number = re.fullmatch(r"[0-9]{1,18}", text, re.ASCII)
    return int(text) if is_number and int(text) > 0 and not isinstance(value, bool) else None


def commit_of(value: object) -> str:
    """Return a commit's full name, nothing for all else."""
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""


def repository_of(value: object) -> str:
    """Return `owner/name`, nothing for all else."""
    return value if isinstance(value, str) and _REPOSITORY.fullmatch(value) else ""


def branch_of(value: object) -> str:
    """Return the name of a branch, nothing for all else."""
    return value if isinstance(value, str) and _BRANCH.fullmatch(value) else ""

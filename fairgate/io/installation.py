"""Where this FairGate was installed from, as pip noted it: another environment gets the same."""

from __future__ import annotations

import contextlib
import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

_UNKNOWN = "git+https://github.com/org/fairgate@COMMIT"
"""`org` stands for the owner of a fork or copy; no release is on a package index."""


def direct_url() -> dict[str, Any]:
    """Return the origin that pip recorded (PEP 610); empty where it recorded none."""
    with contextlib.suppress(PackageNotFoundError, ValueError, AttributeError):
        noted = json.loads(distribution("fairgate").read_text("direct_url.json") or "{}")
        if isinstance(noted, dict):
            return noted
    return {}


def requirement(extra: str) -> str:
    """Return the argument of `pip install` by which no index is asked for the name."""
    noted = direct_url()
    url, version = str(noted.get("url", "")), noted.get("vcs_info")
    if "dir_info" in noted:
        return f"{unquote(urlsplit(url).path)}[{extra}]"
    if isinstance(version, dict):
        url = f"git+{url}@{version.get('commit_id', 'COMMIT')}"
    return f"fairgate[{extra}] @ {url or _UNKNOWN}"

"""Programs of others that tests ask: Node's packages from the lock beside this file, Chromium, cmark-gfm.

Where one is not installed the test is skipped and says why. `FAIRGATE_REQUIRE` names those that
were installed ("node chromium cmark-gfm"): there a missing one is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

FOLDER = Path(__file__).resolve().parent
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_GFM = ("autolink", "table", "strikethrough", "tagfilter")
"""The extensions with which GitHub renders comments and summaries."""


def installed(path: str) -> Path:
    """Return a file of an installed Node package."""
    found = FOLDER / "node_modules" / path
    return found if found.is_file() else _missing("node", f"{path} is not there: `make test-node`")


def ask_node(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node") or _missing("node", "Node is not installed")
    return subprocess.run(
        [node, *command], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


def chromium() -> str:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    return found or _missing("chromium", "Chromium is not installed")


def github_html(markdown: str) -> str:
    """Return what GitHub's own renderer makes of a Markdown text, raw HTML kept."""
    program = shutil.which("cmark-gfm") or _missing("cmark-gfm", "cmark-gfm is not installed")
    extensions = [part for name in _GFM for part in ("--extension", name)]
    done = subprocess.run(
        [program, "--unsafe", *extensions], input=markdown.encode(), capture_output=True, check=True, timeout=60
    )  # fmt: skip
    return done.stdout.decode()


def _missing(program: str, reason: str) -> NoReturn:
    if program in os.environ.get("FAIRGATE_REQUIRE", "").split():
        pytest.fail(f"FAIRGATE_REQUIRE names {program}, but {reason}")
    pytest.skip(reason)

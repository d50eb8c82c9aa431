"""Set the owner of the repository, wherever it is named: `make release OWNER=acme`.

The place is `REPOSITORY` in `fairgate/__init__.py`; every other file is made to say the same.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = re.compile(r'^REPOSITORY = "https://github.com/([\w-]+)/fairgate"$', re.MULTILINE)
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}")


def owner_of(root: Path = ROOT) -> str:
    """Return the owner that the package names."""
    found = PLACE.search((root / "fairgate" / "__init__.py").read_text("utf-8"))
    if found is None:
        raise SystemExit("fairgate/__init__.py: expected `REPOSITORY` with an address of GitHub's")
    return found[1]


def tracked(root: Path = ROOT) -> list[Path]:
    """List the text files that git tracks, but for the tests' own."""
    command = ["git", "-C", str(root), "grep", "-Ilz", "", "--", ":!tests", ":!CHANGELOG.md"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    return [root / name for name in listed.decode().split("\0") if name]


def set_owner(owner: str, root: Path = ROOT) -> list[Path]:
    """Write the owner into every file that names the repository; return these files."""
    if not _ACCOUNT.fullmatch(owner):
        raise SystemExit(f"OWNER={owner!r}: expected an account of GitHub's, such as `acme`")
    before = re.compile(rf"(?<![\w.-]){re.escape(owner_of(root))}/fairgate(?![\w-])")
    changed = []
    for file in tracked(root):
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        new = before.sub(f"{owner}/fairgate", text)
        if new != text:
            file.write_bytes(new.encode("utf-8", "surrogateescape"))
            changed.append(file)
    return changed


if __name__ == "__main__":
    for changed_file in set_owner(sys.argv[1] if len(sys.argv) == 2 else ""):
        print(changed_file.relative_to(ROOT))

"""Make a release of the checkout: `make release OWNER=acme`; a tag `v0.1.0` does the rest.

The owner's place is `REPOSITORY` in `fairgate/__init__.py`; every other file is made to say the
same. What the changelog has as unreleased becomes the version's section, and its notes.
"""

from __future__ import annotations

import datetime as dt
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


def version_of(root: Path = ROOT) -> str:
    """Return the version that the package names."""
    text = (root / "fairgate" / "__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)[0]


def date_changelog(day: str, root: Path = ROOT) -> None:
    """Make what is unreleased the section of the version; one that is there stays."""
    file = root / "CHANGELOG.md"
    text, version = file.read_text("utf-8"), version_of(root)
    if f"## [{version}]" not in text:
        section = f"## [Unreleased]\n\n## [{version}] - {day}\n"
        file.write_text(text.replace("## [Unreleased]\n", section, 1), "utf-8")


def notes(root: Path = ROOT) -> str:
    """Return what the changelog says of the version."""
    version = version_of(root)
    _, *sections = re.split(r"^## ", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading.startswith(f"[{version}] - ") and body.strip():
            return body.strip() + "\n"
    raise SystemExit(
        f"CHANGELOG.md: expected a section `## [{version}] - YYYY-MM-DD` that is filled"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--notes"]:
        print(notes(), end="")
    else:
        for changed_file in set_owner(sys.argv[1] if len(sys.argv) == 2 else ""):
            print(changed_file.relative_to(ROOT))
        date_changelog(dt.datetime.now(tz=dt.UTC).date().isoformat())

"""What `make site` adds to the pages: the README as the first one, reports of demos, links to the repository.

A hook of MkDocs. On GitHub links lead from the pages to other files of the repository; the site holds the
pages alone, so there they lead to the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parent.parent
INDEX = "index.md"
REPORTS = {
    "demo.html": ("demo/before/report.html", "Of the bundled model: green"),
    "smollm2.html": (
        "demo-slm/corpus/run/report.html",
        "Of SmolLM2, after a change of the corpus: red",
    ),
}
"""Page of the site → the report that it is, in the cache, and its title."""
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the README and the reports."""
    from mkdocs.structure.files import File

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, INDEX, content=readme))
    for name, path, _ in _reports():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to where they lead on the site, and from the first page to the reports."""
    del files
    text = linked(markdown, page.file.src_uri, config.extra["repository"])
    reports = [f"- [{title}]({name})\n" for name, _, title in _reports()]
    if page.file.src_uri == INDEX and reports:
        text += f"\n## Reports of the demos\n\n{''.join(reports)}"
    return text


def linked(markdown: str, page: str, repository: str) -> str:
    """Return a page of the site with links to other pages, and to the repository for all else."""
    folder = PurePosixPath("docs", page).parent if page != INDEX else PurePosixPath()

    def target(match: re.Match[str]) -> str:
        before, link, after = match.groups()
        if "://" in link or link.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath((folder / link).as_posix())
        if path.startswith("docs/") and not path.startswith("docs/examples/"):
            start = posixpath.dirname(page) or "."
            return f"{before}{posixpath.relpath(path.removeprefix('docs/'), start)}{after}"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{before}{repository}/{kind}/main/{path}{after}"

    return _LINK.sub(target, markdown).replace('="docs/pictures/', '="pictures/')


def _reports() -> Iterator[tuple[str, Path, str]]:
    """Yield page, file and title of each report that there is."""
    cache = Path(os.environ.get("FAIRGATE_CACHE", ROOT / ".fairgate"))
    for name, (path, title) in REPORTS.items():
        if (cache / path).is_file():
            yield name, cache / path, title

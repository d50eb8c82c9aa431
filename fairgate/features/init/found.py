"""What a folder says of the service in it; files are read, nothing is imported or run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_APP = re.compile(r"^(?:(\w+)(?:: FastAPI)? = FastAPI\(|def (\w+)\(\) -> FastAPI:)", re.MULTILINE)
_POST = re.compile(
    r"""\.post\(["']([^"'{]+)["'].*\)\s+(?:async )?def \w+\(\w+: (\w+).*?\)(?: -> (\w+))?:"""
)
_GET = re.compile(r"""\.get\(["']([^"'{]+)["']""")
_FIELD = re.compile(r"^    (\w+): (\w+)(.*)$", re.MULTILINE)
_SECRET = re.compile(r"""os\.environ\[["'](\w+)["']\]""")
_IMAGE = re.compile(r"^FROM python:(3\.(?:1[1-9]|[2-9]\d))\b|^EXPOSE (\d+)", re.MULTILINE)
_CORPORA = ("corpus", "documents", "notes", "knowledge")


def found(folder: Path) -> dict[str, Any]:
    """Return the packages to install, Python and port of a Dockerfile, a corpus, a FastAPI app."""
    files = {"requirements.txt": "-r requirements.txt", "pyproject.toml": "."}
    seen: dict[str, Any] = {
        "install": next((how for name, how in files.items() if (folder / name).is_file()), ""),
        "python": "3.11", "port": "8000", "service": "", "env": [], "url": "/ask", "ready": "/",
        "asked": "question", "given": "documents", "answer": "answer", "documents": "documents",
    }  # fmt: skip
    tables = (folder / "data" / f"{name}.{end}" for name in _CORPORA for end in ("jsonl", "csv"))
    seen["corpus"] = next((str(one.relative_to(folder)) for one in tables if one.is_file()), "")
    image = folder / "Dockerfile"
    for python, port in _IMAGE.findall(_text(image) if image.is_file() else ""):
        seen |= {"python": python} if python else {"port": port}
    for path in (
        one for depth in ("", "*/", "*/*/") for one in sorted(folder.glob(f"{depth}*.py"))
    ):
        if app := _APP.search(text := _text(path)):
            return seen | _service(path, folder, app, text)
    return seen


def _service(path: Path, folder: Path, app: re.Match[str], text: str) -> dict[str, Any]:
    """Return how a FastAPI app is started and asked, and the variables that it needs."""
    module, place = path.stem, path.parent
    while place != folder and (place / "__init__.py").is_file():
        module, place = f"{place.name}.{module}", place.parent
    words = ["--factory", f'"{module}:{app[2]}"'] if app[2] else [f'"{module}:{app[1]}"']
    words += ["--app-dir", place.relative_to(folder).as_posix()] if place != folder else []
    seen = {
        "service": ", ".join(["python", "-m", "uvicorn", *words]),
        "env": sorted({*_SECRET.findall(text)}),
        "ready": next(iter(_GET.findall(text)), "/openapi.json"),
    }
    if post := _POST.search(text):
        seen["url"] = post[1]
        for name, of_text, of_list in (
            (post[2], "asked", "given"),
            (post[3], "answer", "documents"),
        ):
            body = text.partition(f"\nclass {name}(")[2].partition("\n\n\n")[0]
            kinds = {field: f"{kind}{more}" for field, kind, more in _FIELD.findall(body)}
            texts = [field for field, kind in kinds.items() if kind.startswith("str")]
            lists = [field for field, kind in kinds.items() if kind.startswith("list[")]
            if texts:
                seen |= {of_text: texts[0], of_list: lists[0] if lists else ""}
    return seen


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


NOTHING = found(Path("/nowhere"))
"""What the templates start with where nothing is found."""

"""A Hugging Face hub on this machine: serves a folder of models and remembers what was asked."""

import hashlib
import http.server
import json
import os
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fakes.serving import Answering, served

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.ThreadingHTTPServer):
    """The server; `root/ORG/NAME` is a model."""

    def __init__(self, root: Path):
        super().__init__(("127.0.0.1", 0), Request)
        self.root = root
        self.fetched: list[str] = []


class Request(Answering):
    """One request: what a model has, or one of its files."""

    def do_HEAD(self):  # noqa: N802 its name
        self.do_GET()

    def do_GET(self):  # noqa: N802 its name
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self.describe("/".join(parts[2:4]), tree=parts[4:5] == ["tree"])
        model, file = "/".join(parts[:2]), "/".join(parts[4:])
        return self.send_file(self.server.root / model / file, file)

    def describe(self, model, *, tree):
        folder = self.server.root / model
        if not folder.is_dir():
            return self.refuse("RepoNotFound")
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        names = [file.relative_to(folder).as_posix() for file in files]
        siblings = [{"rfilename": name} for name in names]
        body = {
            "id": model,
            "modelId": model,
            "sha": COMMIT,
            "siblings": siblings,
            "private": False,
        }
        if tree:
            body = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": "0" * 40}
                for name, file in zip(names, files, strict=True)
            ]
        return self.answer(json.dumps(body).encode(), {})

    def send_file(self, path, name):
        if not path.is_file():
            return self.refuse("EntryNotFound")
        if self.command == "GET":
            self.server.fetched.append(name)
        content = path.read_bytes()
        etag = hashlib.sha256(content).hexdigest()
        return self.answer(content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

    def refuse(self, code):
        self.send(404, b"", {"X-Error-Code": code, "X-Repo-Commit": COMMIT})

    def answer(self, content, headers):
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def asking(address: str, home: Path) -> dict[str, str]:
    """Return the environment of a process that asks the hub, whatever the caller's own says."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "TRANSFORMERS_")) and not name.lower().endswith("_proxy")
    }
    return {**inherited, "HF_ENDPOINT": address, "HF_HOME": str(home)}


@contextmanager
def model_hub(root: Path):
    """Yield the hub's address and the list of files fetched from it."""
    with served(Hub(root)) as server:
        yield server.url, server.fetched

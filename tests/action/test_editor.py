"""An editor completes a policy's keys: asked of the YAML language server, as VS Code asks it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from node.programs import installed

from fairgate.features.init import starter_files
from fairgate.policy.assembled import schema_address

pytestmark = pytest.mark.node
ROOT = Path(__file__).parents[2]
OWNER = "acme"


class Server:
    def __init__(self, folder):
        program = installed("yaml-language-server/bin/yaml-language-server")
        self._process = subprocess.Popen(
            [shutil.which("node"), program, "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        )
        self.ask("initialize", processId=None, rootUri=folder.as_uri(), capabilities={})
        self.tell("initialized")

    def tell(self, method, number=None, **parameters):
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        body = json.dumps(message | ({} if number is None else {"id": number})).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def ask(self, method, **parameters):
        self.tell(method, 1, **parameters)
        while True:
            size = 0
            while line := self._process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.partition(b":")[2])
            message = json.loads(self._process.stdout.read(size))
            if message.get("id") == 1 and "method" not in message:
                return message["result"]

    def end(self):
        self._process.kill()
        self._process.communicate()


@pytest.mark.parametrize(("typed", "offered"), [
    ("", {"gates", "waivers", "suites"}),
    ("gates:\n  - ", {"parity", "metric"}),
    ("gates:\n  - parity: answers\n    ", {"max", "regression", "must_see"}),
    ("suites:\n  - id: s\n    ", {"task", "perturbations", "control"}),
])  # fmt: skip
def test_a_policy_of_init_is_completed(tmp_path, typed, offered):
    text = starter_files(name="p", system="demo", task="sentiment", owner=OWNER)["policies/p.yaml"]
    line = text.splitlines()[0]
    assert schema_address(f"https://github.com/{OWNER}/fairgate") in line
    # What is at that address after a release is the shipped file.
    shutil.copy(ROOT / "fairgate/data/policy.schema.json", tmp_path)
    document = f"# yaml-language-server: $schema={(tmp_path / 'policy.schema.json').as_uri()}\nversion: 1\n{typed}"
    server = Server(tmp_path)
    try:
        uri = (tmp_path / "p.yaml").as_uri()
        server.tell(
            "textDocument/didOpen",
            textDocument={"uri": uri, "languageId": "yaml", "version": 1, "text": document},
        )
        lines = document.split("\n")
        at = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = server.ask("textDocument/completion", textDocument={"uri": uri}, position=at)
    finally:
        server.end()
    labels = {item["label"] for item in found["items"]}
    assert offered <= labels, labels

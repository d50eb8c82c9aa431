"""A server that is started for a run: it answers, and nothing of it stays behind."""

import contextlib
import errno
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from contract.conftest import lives
from fakes import rag_app
from fakes.raw_server import raw_server
from fakes.serving import Answering
from fakes.serving import served as serving_at

from fairgate.domain.errors import ApplicationError, UsageError
from fairgate.systems import serving
from fairgate.systems.serving import ServePart, served

SERVICE = """\
import os, sys, threading
from pathlib import Path
sys.path.insert(0, {folder!r})
import rag_app
{before}
class Fixed(rag_app.App):
    def __init__(self):
        rag_app.http.server.ThreadingHTTPServer.__init__(self, ("127.0.0.1", {port}), rag_app._Handler)
        self.rules, self.seen, self.faults, self.delay = {{}}, [], [], 0.0
        self.revision, self.usage, self.lock = "r1", None, threading.Lock()
        self.failing, self.fault_at = (), lambda question: None
Path("pid").write_text(str(os.getpid()))
Fixed().serve_forever()
"""
CHILD = """
child = os.fork()
if child == 0:
    import time; time.sleep(600)
Path("child").write_text(str(child))
"""


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def server(tmp_path, port):
    def named(before="", **fields):
        folder = str(Path(rag_app.__file__).parent)
        text = SERVICE.format(folder=folder, port=port, before=before)
        (tmp_path / "service.py").write_text(text)
        given = {"command": [sys.executable, "service.py"], "timeout": 60.0, **fields}
        return ServePart.model_construct(**{"ready_url": f"http://127.0.0.1:{port}/", **given})

    return named


def is_gone(folder, name="pid"):
    pid = int((folder / name).read_text())
    for _ in range(2000):
        if not lives(pid):
            return True
        time.sleep(0.05)  # lower bound: the system needs so long to end a process
    return False


def test_a_policy_starts_its_application_and_ends_it(place, server, port):
    server()  # writes it into the same folder
    url = f"http://127.0.0.1:{port}"
    response = {"documents": "$.contexts[*]"}
    http_part = {"url": f"{url}/ask", "request": {"question": "{{query}}"}, "response": response}
    serve = {"command": [sys.executable, "service.py"], "ready_url": f"{url}/"}
    assert place.gate({"http": http_part, "serve": serve}) == 0, place.err
    assert is_gone(place.root)
    (place.root / "service.py").write_text("raise SystemExit('no model here')")
    assert place.gate({"http": http_part, "serve": serve}, "second") == 4
    assert "ended with exit code 1 before it was ready" in place.err
    assert "no model here" in place.err


def test_what_it_started_ends_with_it_and_so_does_what_ignores_a_polite_end(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(serving, "_PATIENCE", 0.2)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with served(server(CHILD + deaf), tmp_path):
        os.kill(int((tmp_path / "child").read_text()), 0)
    assert is_gone(tmp_path)
    assert is_gone(tmp_path, "child")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ApplicationError("x"), SystemExit(3)])
def test_it_ends_whatever_happens_in_between(server, tmp_path, error):
    with pytest.raises(type(error)), served(server(), tmp_path):
        raise error
    assert is_gone(tmp_path)


def test_it_ends_where_fairgate_is_killed(server, tmp_path, port):
    server(CHILD)
    code = f"""if True:
        import os, signal
        from pathlib import Path
        from fairgate.systems.serving import ServePart, served
        part = ServePart(command=[{sys.executable!r}, "service.py"],
                         ready_url="http://127.0.0.1:{port}/")
        with served(part, Path(".")):
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == -9
    assert is_gone(tmp_path)
    assert is_gone(tmp_path, "child")


def refused(part, folder, match, error=ApplicationError):
    """Return the words by which a server is no server of this run."""
    with pytest.raises(error, match=match) as caught, served(part, folder):
        raise AssertionError
    return str(caught.value)


def test_a_server_that_is_never_ready_is_no_verdict_and_gone(server, tmp_path):
    says = "Path('pid').write_text(str(os.getpid())); print('loading', flush=True)\n"
    part = server(f"{says}import time; time.sleep(600)", timeout=2.0)  # lower bound
    said = refused(part, tmp_path, r"not ready after 2 s: no answer.*longer")
    assert "it printed: loading" in said
    assert is_gone(tmp_path)


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("status", "is_ready"), [(204, True), (405, True), (501, True), (404, False), (503, False)]
)
def test_a_status_says_whether_a_server_is_ready(tmp_path, port, status, is_ready):
    (tmp_path / "service.py").write_text(
        "from http.server import BaseHTTPRequestHandler, HTTPServer\n"
        "class Handler(BaseHTTPRequestHandler):\n"
        f"    def do_GET(self):\n        self.send_response({status})\n"
        "        self.send_header('Content-Length', '0')\n        self.end_headers()\n"
        f"HTTPServer(('127.0.0.1', {port}), Handler).serve_forever()\n"
    )
    part = ServePart.model_construct(
        command=[sys.executable, "service.py"], timeout=30.0 if is_ready else 2.0,
        ready_url=f"http://127.0.0.1:{port}/",
    )  # fmt: skip
    if is_ready:
        with served(part, tmp_path):
            pass
    else:
        refused(part, tmp_path, f"not ready after 2 s: HTTP {status}")


class Other(Answering):
    status = 404

    def do_GET(self):  # noqa: N802 its name
        self.send(self.status, b"")


class Fine(Other):
    status = 200


def other_server(port, handler):
    return serving_at(http.server.HTTPServer(("127.0.0.1", port), handler))


TAKEN = r"something answers at .* before the server"


@pytest.mark.parametrize(
    "other",
    [
        lambda port: other_server(port, Other),
        lambda port: other_server(port, Fine),
        lambda port: socket.create_server(("127.0.0.1", port)),
        lambda _: raw_server(b"no HTTP"),
        lambda _: raw_server(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (2 << 20)),
    ],
    ids=["with an error", "with a page", "late", "with no HTTP", "with too much"],
)
def test_another_server_that_answers_is_not_taken_for_it(server, tmp_path, port, other):
    with other(port) as found:
        url = getattr(found, "url", f"http://127.0.0.1:{port}/")
        refused(server(ready_url=url), tmp_path, TAKEN)


@pytest.mark.parametrize(
    ("numbers", "is_free"),
    [
        (("ECONNREFUSED",), True),
        (("ECONNREFUSED", "EHOSTUNREACH"), True),
        (("EADDRNOTAVAIL", "ECONNREFUSED", "ENETUNREACH"), True),
        (("EHOSTUNREACH",), False),
        (("ECONNREFUSED", "ETIMEDOUT"), False),
    ],
)
def test_an_address_is_free_where_the_networks_that_are_there_refuse(
    server, monkeypatch, numbers, is_free
):
    def connect(*_, **__):
        raise ExceptionGroup("failed", [OSError(getattr(errno, one), one) for one in numbers])

    monkeypatch.setattr("socket.create_connection", connect)
    said = pytest.raises(ApplicationError, match="it is unknown what answers")
    with contextlib.nullcontext() if is_free else said:
        serving._require_free(server())


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://[::1/"])
def test_an_address_that_is_none_is_no_verdict(server, tmp_path, url):
    refused(server(ready_url=url), tmp_path, "it is unknown what answers")


def test_an_answer_counts_only_while_the_server_itself_runs(server, tmp_path, port, monkeypatch):
    """Another server took the address after it was found free; the policy's own could not."""
    real = subprocess.Popen
    with contextlib.ExitStack() as others:

        def started(*arguments, **named):
            process = real(*arguments, **named)
            process.wait()
            others.enter_context(other_server(port, Fine))
            return process

        monkeypatch.setattr(subprocess, "Popen", started)
        part = server(command=[sys.executable, "-c", "raise SystemExit(1)"])
        refused(part, tmp_path, "ended with exit code 1 before it was ready")


def test_a_server_that_ends_while_it_is_asked_is_no_verdict(server, tmp_path, monkeypatch):
    real, started = subprocess.Popen, []
    monkeypatch.setattr(
        subprocess, "Popen", lambda *a, **named: started.append(real(*a, **named)) or started[0]
    )
    ended = pytest.raises(ApplicationError, match=r"ended with exit code 137 while it was asked")
    with ended, served(server(), tmp_path):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        started[0].wait()


def test_it_sees_no_variable_that_is_not_named(server, tmp_path, monkeypatch):
    monkeypatch.setenv("NAMED_KEY", "swordfish-0815")
    monkeypatch.setenv("OTHER_KEY", "herring-4711")
    tell = "import json; Path('seen').write_text(json.dumps(dict(os.environ)))"
    with served(server(tell, env=["NAMED_KEY"]), tmp_path):
        pass
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["NAMED_KEY"] == "swordfish-0815"
    assert "OTHER_KEY" not in seen
    fails = "raise SystemExit('bad key ' + os.environ['NAMED_KEY'])"
    said = refused(server(fails, env=["NAMED_KEY"]), tmp_path, r"bad key \*\*\*")
    assert "swordfish" not in said


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"env": ["ABSENT_KEY"]}, UsageError, "'ABSENT_KEY', which `env` names, is not set"),
        ({"command": ["./no-such-server"]}, ApplicationError, "cannot be started: No such file"),
    ],
)
def test_what_cannot_be_started_is_said(server, tmp_path, fields, error, words):
    refused(server(**fields), tmp_path, words, error)

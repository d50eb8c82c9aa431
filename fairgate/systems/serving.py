"""A server of the user's that is started for a run and ended after it: `serve:`."""

from __future__ import annotations

import contextlib
import errno
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import Field

from fairgate.domain.errors import ApplicationError
from fairgate.domain.schema import Access, Address, Strict, Text, way_of
from fairgate.domain.wording import quoted
from fairgate.io.http_messages import HttpError, Limits, Request
from fairgate.io.machine import last_words, program_environment
from fairgate.systems.service_fields import Seconds, Variable

if TYPE_CHECKING:
    from fairgate.io.http_client import HttpClient

_PATIENCE = 5.0
"""Seconds between asking the server to end and ending it."""
_TAKES_NO_GET = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
"""What a server answers that takes only what is sent to it; Python's own says the second."""
_BETWEEN = 0.1
_WATCH = Path(__file__).with_name("server_watch.py")
"""A program of its own, which ends the server with this process."""
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.ENETUNREACH, errno.EHOSTUNREACH)
"""What an address of a network says that this machine is not in."""


class ServePart(Strict):
    """A server that runs for as long as it is asked."""

    command: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Program and arguments; run without a shell."
    )
    ready_url: Address = Field(description="Address that answers once it can be asked.")
    timeout: Seconds = 120.0
    env: list[Variable] = Field(
        default_factory=list,
        description="NAMES of the environment variables that it is given.",
    )

    @property
    def accesses(self) -> list[Access]:
        """Return the program with each variable that it is given, and what is asked."""
        variables: list[str | None] = [*self.env] or [None]
        line, way = shlex.join(self.command), way_of(self, named=["env"])
        starts = [Access("starts", line, variable, way) for variable in variables]
        return [*starts, Access("asks", self.ready_url, way=way)]

    @property
    def name(self) -> str:
        """Say what is started."""
        return f"the server {quoted(shlex.join(self.command))}"


@contextlib.contextmanager
def served(server: ServePart, folder: Path) -> Iterator[None]:
    """Run a server in a folder until the block ends, also where this process is killed.

    Raises ApplicationError where it ends by itself or is not ready in time, and where something
    else is at its address already: the wrong system would be judged.
    """
    from fairgate.io.http_client import HttpClient

    environment = program_environment(server.env)
    with (
        HttpClient(Limits(seconds=2.0, attempts=1, most_bytes=1 << 20)) as client,
        tempfile.TemporaryFile() as messages,
    ):
        _require_free(server)
        try:
            process = subprocess.Popen(  # noqa: S603  # what the policy names, without a shell
                [sys.executable, "-I", str(_WATCH), str(_PATIENCE), *server.command],
                stdin=subprocess.PIPE,
                stdout=messages,
                stderr=messages,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ApplicationError(f"{server.name} cannot be started ({error})") from error
        try:
            wrong = _problem_of_start(server, process, client)
            if not wrong:
                yield
                if (code := process.poll()) is None:
                    return
                wrong = (
                    f"ended with exit code {code} while it was asked, so another one may have "
                    "answered; look into its log"
                )
        finally:
            process.communicate()  # closes the watch's input, which ends the server and the watch
        words = last_words(messages, [environment[name] for name in server.env])
        raise ApplicationError(f"{server.name} {wrong}{f'; it printed: {words}' if words else ''}")


def _require_free(server: ServePart) -> None:
    """Raise ApplicationError unless connections to the server's address are refused.

    Whatever takes a connection there is something else, also where it answers late or nothing.
    """
    try:
        url = urlsplit(server.ready_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        address = (url.hostname or "", port)
        with socket.create_connection(address, timeout=_PATIENCE, all_errors=True):
            state = "something answers"
    except socket.gaierror:  # a name may come with the server
        return
    except ExceptionGroup as errors:
        # One for each address of the name; a machine may not have the network of all of them.
        numbers = {error.errno for error in errors.exceptions if isinstance(error, OSError)}
        if errno.ECONNREFUSED in numbers and numbers <= {errno.ECONNREFUSED, *_NOT_HERE}:
            return
        state = f"it is unknown what answers ({errors.exceptions[-1]})"
    except (OSError, ValueError) as error:
        state = f"it is unknown what answers ({error})"
    raise ApplicationError(
        f"{state} at {quoted(server.ready_url)} before {server.name} was started; stop it, or "
        "leave out `serve` to ask what runs there"
    )


def _problem_of_start(
    server: ServePart, process: subprocess.Popen[bytes], client: HttpClient
) -> str:
    """Wait until the server is ready; return why it is not, empty where it is."""
    latest = time.monotonic() + server.timeout
    while True:
        try:
            status = client.ask(Request(method="GET", url=server.ready_url)).status
        except HttpError:
            status = None
        code = process.poll()  # after the answer, which may be another server's
        if code is not None:
            return f"ended with exit code {code} before it was ready; check `serve.command`"
        if status is not None and (status // 100 == 2 or status in _TAKES_NO_GET):
            return ""
        if time.monotonic() >= latest:
            answered = "no answer" if status is None else f"HTTP {status}"
            return (
                f"is not ready after {server.timeout:g} s: {answered} from "
                f"{quoted(server.ready_url)}; check `serve.ready_url`, or set a longer "
                "`serve.timeout`"
            )
        time.sleep(_BETWEEN)

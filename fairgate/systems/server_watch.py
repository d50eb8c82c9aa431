"""Runs a server for as long as its own input stays open, then ends all that the server started.

A program of its own, standard library only: whoever starts it holds the other end of its input, and
the operating system closes that even where the holder is killed. Arguments: seconds to wait after a
polite end, then the command. Exits with the server's own code, 127 where it cannot be started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    """Start the server, and end it when the input ends."""
    patience, command = float(sys.argv[1]), sys.argv[2:]
    try:
        server = subprocess.Popen(  # noqa: S603  # what the policy names, without a shell
            command, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError as error:
        sys.stderr.write(f"cannot be started: {error.strerror}\n")
        return 127
    threading.Thread(target=_end_with_input, args=(server, patience), daemon=True).start()
    code = server.wait()
    _signal_all(server, signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _end_with_input(server: subprocess.Popen[bytes], patience: float) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):  # not sys.stdin, whose lock would be held when this program exits
            pass
    _signal_all(server, signal.SIGTERM)
    try:
        server.wait(patience)
    except subprocess.TimeoutExpired:
        _signal_all(server, signal.SIGKILL)


def _signal_all(server: subprocess.Popen[bytes], sent: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, sent)


if __name__ == "__main__":
    sys.exit(main())

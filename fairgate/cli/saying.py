"""Messages on stderr: no part of a message is interpreted, whatever its origin."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

import click

from fairgate.domain.wording import harmless


def say(text: str) -> None:
    """Print a message on stderr, keeping its own line ends, harmlessly.

    A message quotes file names, keys and libraries' messages about untrusted files: a line of it
    could begin with a workflow command or steer a terminal. Where stderr cannot be written the exit
    code still shows the outcome.
    """
    try:
        click.echo("\n".join(harmless(line) for line in text.split("\n")), err=True)
    except OSError:
        give_up_output(sys.stderr)


def give_up_output(*streams: TextIO) -> None:
    """Prevent further writes to streams that refuse them.

    The interpreter would try again when it ends, fail again, and change the exit code.
    """
    for stream in streams or (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def has_colour() -> bool:
    """Return whether the result may be coloured: on a terminal, unless NO_COLOR forbids it."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout.isatty()

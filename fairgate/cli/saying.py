"""The voice of the command line on stderr: no part of a message acts, whoever wrote it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

import click

from fairgate.domain.wording import harmless


def say(text: str) -> None:
    """Print a message on stderr, keeping its own line ends; nothing in it is live.

    A message quotes file names, keys and what libraries say of a stranger's file: a line of it
    could begin with a workflow command or steer a terminal. Where stderr cannot be written the exit
    code still tells what the message would have said.
    """
    try:
        click.echo("\n".join(harmless(line) for line in text.split("\n")), err=True)
    except OSError:
        give_up_output(sys.stderr)


def give_up_output(*streams: TextIO) -> None:
    """Let nothing more be written to streams that refuse it.

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

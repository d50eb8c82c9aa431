"""The voice of the command line on stderr: no part of a message acts, whoever wrote it."""

from __future__ import annotations

import click

from fairgate.domain.wording import harmless


def say(text: str) -> None:
    """Print a message on stderr, keeping its own line ends; nothing in it is live.

    A message quotes file names, keys and what libraries say of a stranger's file: a line of it
    could begin with a workflow command or steer a terminal.
    """
    click.echo("\n".join(harmless(line) for line in text.split("\n")), err=True)

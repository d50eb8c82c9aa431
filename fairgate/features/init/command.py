"""`fairgate init`."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted

_SYSTEMS = ("demo", "models", "recorded", "http", "command", "python", "endpoint")
_TASKS = ("sentiment", "toxicity")
_NAME_FORM = "lower-case letters, digits, `-` and `_`, a letter first"
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML, or a YAML of before 2009, reads as another value than a text."""


@click.command(short_help="Write a starter policy, a baselines folder and a workflow.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the answers given as options.")
@click.option("--name", default="rag-fairness", show_default=True, help="Name of the policy.")
@click.option(
    "--task", type=click.Choice(_TASKS), default="sentiment", show_default=True,
    help="What the system is asked to do.",
)  # fmt: skip
@click.option(
    "--system", type=click.Choice(_SYSTEMS), default="demo", show_default=True,
    help="What is tested: embedded models, your own ONNX models, recorded answers, or a system of "
    "your own, asked over HTTP, as a program, as a Python function, or a model at an endpoint.",
)  # fmt: skip
@click.option(
    "--action", default="org/fairgate@v1", show_default=True,
    help="The action as the workflow names it; pin it by its commit.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1), metavar="N",
    help="Sources that are asked about, so that there is less to put to a system (default: all).",
)  # fmt: skip
def init(*, yes: bool, name: str, task: str, system: str, action: str, limit: int | None) -> int:
    """Write a starter policy, `baselines/`, a CODEOWNERS hint and a workflow into this repository.

    In a folder of a repository the workflow is written at the repository's top, with `root:`.

    Never overwrites: a file that is there stays as it is, so the command can be run again. Only
    .gitignore gets a line for the cache, where it lacks one.
    """
    from fairgate.features.init.starter_files import (
        Start,
        ignore_cache,
        place_in_repository,
        starter_files,
        workflow_file,
        write_missing,
    )

    _require_name(name)
    if not yes:
        with _answered():
            name = click.prompt("Name of the policy", default=name, value_proc=_asked_name)
            task = click.prompt("Task", default=task, type=click.Choice(_TASKS))
            system = click.prompt("System under test", default=system, type=click.Choice(_SYSTEMS))
            if system == "recorded" and limit is None:
                asked = "Sources to ask about, each about 30 times (0: all)"
                limit = click.prompt(asked, default=0, type=click.IntRange(0)) or None
    place = place_in_repository(Path())
    top, root = place or (Path(), "")
    start = Start(name=name, task=task, system=system, action=action, root=root, limit=limit)
    up = "../" * len(Path(root).parts)
    files = [
        *write_missing(Path(), starter_files(start)),
        *((up + path, is_new) for path, is_new in write_missing(top, workflow_file(start))),
    ]
    for path, is_new in files:
        click.echo(f"{'wrote' if is_new else 'kept '}  {path}")
    click.echo(f"{'added' if ignore_cache(Path()) else 'kept '}  .gitignore: .fairgate/")
    if place is None:
        click.echo(
            "note   this folder is in no git repository: the workflow needs one (`git init`)"
        )
    click.echo("\nNext: " + "\n      ".join(_next_steps(f"policies/{name}.yaml", system)))
    return ExitCode.PASS


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Let the block ask questions. Raises UsageError where nobody is there who could answer."""
    nobody = UsageError(
        "the input ended before every question was answered; nothing was written: add --yes, and "
        "the answers as options (`fairgate init --help`)"
    )
    if sys.stdin is None:  # started with its input closed
        raise nobody
    try:
        yield
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl+C, or Ctrl+D
            raise
        raise nobody from None


def _next_steps(policy: str, system: str) -> list[str]:
    from fairgate.features.init.starter_files import ANSWERS, SYSTEMS

    before = {
        "models": [
            "fairgate export MODEL --output models/my-model",
            f"put your documents into data/corpus.jsonl, or name others in {policy}",
        ],
    }
    asking = [
        f"fairgate plan {policy} --output .fairgate/plan.jsonl",
        f"put each line to your system and write its answers into {ANSWERS}",
    ]
    return [
        *before.get(system, []),
        f"fairgate check {policy}",
        *(asking if system == "recorded" else []),
        *([f"fairgate run {policy} --limit 20 # a first look"] if system == "demo" else []),
        f"fairgate run {policy} --out .fairgate/first{SYSTEMS[system].options}",
        'fairgate baseline accept .fairgate/first --reason "first baseline"',
    ]


def _require_name(name: str) -> None:
    if not _is_name(name):
        raise UsageError(f"the name is {quoted(name)}, expected {_NAME_FORM}: `rag-fairness`")


def _asked_name(name: str) -> str:
    """Return a name that can be one; else it is asked for again."""
    if not _is_name(name):
        raise click.BadParameter(f"expected {_NAME_FORM}, such as rag-fairness")
    return name


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,59}", name) is not None and name not in _WORDS

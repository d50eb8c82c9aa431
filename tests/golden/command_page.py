"""The page of the command line, from the commands: by group, what several have in common said once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import click

from fairgate.cli import cli, every_command

Option = tuple[str, str]

RANGE = re.compile(r"; [\d.]+<=?x<=?\d+|\[(\d+<=)?x[<>=]+\d+\]")
HEAD = """\
# Command line

`fairgate COMMAND --help` lists all options of a command; here stand its own, and at the end [those of
several](#options-of-several-commands).

[Exit codes](../explanation/verdict.md#exit-codes), and 130 where a run was interrupted: run it again to go on.

[The action](action.md) calls `fairgate github`. Before every command:

"""
TOGETHER = {
    "Files": ("--root", "--cache"),
    "Models": ("--batch-size", "--threads", "--device"),
    "Others": (),
}
"""Options that come together, by the heading below which they stand; the last are all further ones."""
OF_THE_ACTION = "github"
"""Options of these commands are the action's inputs, which have a page of their own."""


def command_page() -> str:
    """Return the page; equal commands, equal bytes."""
    found = dict(leaves(cli, click.Context(cli, info_name="fairgate")))
    users = Counter(each for name, context in found.items() for each in options(name, context))
    shared = [option for option, number in users.items() if number > 1]
    before = [each for each in options("", click.Context(cli)) if "--help" not in each[0]]
    parts = [HEAD, *map(line, before)]
    groups = groupby(every_command().items(), lambda each: each[1].group)
    for title, commands in ((title, dict(rows)) for title, rows in groups):
        parts.append(f"\n## {title}\n")
        for name, context in found.items():
            if name.split()[0] in commands and not name.startswith(OF_THE_ACTION):
                parts += _command(name, context, shared)
    parts.append("\n## Options of several commands\n")
    known = {name for names in TOGETHER.values() for name in names}
    for title, names in TOGETHER.items():
        parts.append(f"\n### {title}\n\n")
        parts += [
            line(each)
            for each in shared
            if (long(each) in names if names else long(each) not in known)
        ]
    return "".join(parts)


def _command(name: str, context: click.Context, shared: list[Option]) -> Iterator[str]:
    usage = [name, *context.command.collect_usage_pieces(context)[1:]]
    first = " ".join(str(context.command.help).split("\n\n")[0].split())
    yield f"\n### `fairgate {' '.join(usage)}`\n\n{first}"
    yield "\n"
    found = options(name, context)
    own = [line(option) for option in found if option not in shared]
    yield from ["\n", *own] if own else []


def leaves(command: click.Group, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Yield the name and context of each command that has none below it, by group."""
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        below = click.Context(child, parent=context, info_name=name)
        if isinstance(child, click.Group):
            yield from ((f"{name} {last}", found) for last, found in leaves(child, below))
        else:
            yield name, below


def options(name: str, context: click.Context) -> list[Option]:
    """Return the names and the text of each option that the page shows of a command."""
    if name.startswith(OF_THE_ACTION):
        return []
    found = (each for each in context.command.params if isinstance(each, click.Option))
    records = (
        getattr(option, "explained", option.get_help_record)(context)
        for option in found
        if not option.hidden
    )
    return [record for record in records if record is not None]


def long(option: Option) -> str:
    """Return the name of an option."""
    return option[0].split()[0]


def line(option: Option) -> str:
    """Return the line of an option, without the range of a number."""
    return f"- `{option[0].removesuffix(' RANGE')}`: {' '.join(RANGE.sub('', option[1]).split())}\n"

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

Before every command:

"""
TOGETHER = {
    "Files": ("--root", "--cache"),
    "Models": ("--batch-size", "--threads", "--device"),
    "Others": (),
}
"""Options that come together, by the heading below which they stand; the last are all further ones."""
FURTHER = "Further commands"
"""The group whose commands have a line each, without options."""


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
            if name.split()[0] in commands:
                parts += _command(name, context, shared, in_a_line=title == FURTHER)
    parts.append("\n\n## Options of several commands\n")
    known = {name for names in TOGETHER.values() for name in names}
    for title, names in TOGETHER.items():
        parts.append(f"\n### {title}\n\n")
        parts += [
            line(each)
            for each in shared
            if (long(each) in names if names else long(each) not in known)
        ]
    return "".join(parts)


def _command(
    name: str, context: click.Context, shared: list[Option], *, in_a_line: bool
) -> Iterator[str]:
    usage = " ".join([name, *context.command.collect_usage_pieces(context)[1:]])
    first = " ".join(str(context.command.help).split("\n\n")[0].split())
    yield f"\n- `{usage}`: {first}" if in_a_line else f"\n### `fairgate {usage}`\n\n{first}\n"
    own = [line(option) for option in options(name, context) if option not in shared]
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
    if name and every_command()[name.split(maxsplit=1)[0]].group == FURTHER:
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

"""The page of the command line, from the commands: by group, what several have in common said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from fairgate.cli import cli

Option = tuple[str, str]

GROUPS = {
    "Every day": ("init", "check", "run", "table", "explain", "baseline"),
    "Asking why": ("blame", "rescore", "doctor"),
    "Trusting the gate": ("power", "mutate", "record"),
    "Data and models": ("corpus", "generate", "lint", "judge", "export", "relations", "metrics"),
    "In CI": ("github", "rehearse", "comment", "hook", "merge", "plan"),
}
HEAD = """\
# Command line

`fairgate --help` lists the commands, `fairgate COMMAND --help` has more about each.

| exit code | meaning |
|--:|---|
| 0 | pass |
| 1 | gate failed: a limit is broken, or a regression is significant and larger than its margin |
| 2 | usage or policy error: every problem with `path:line:column` |
| 3 | baseline missing, damaged or made under other conditions |
| 4 | execution error: model, index, data |
| 5 | no verdict: too little was decided |
| 130 | interrupted; run again to go on |

Before every command:

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
    for title, commands in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name, context in found.items():
            if name.split()[0] in commands:
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
    if name.startswith(OF_THE_ACTION):
        yield " Its options are [inputs of the action](action.md)."
    found = options(name, context)
    common = [long(option) for option in found if option in shared]
    also = []
    for title, names in TOGETHER.items():
        if names and {*names} <= {*common}:
            common = [name for name in common if name not in names]
            also.append(f"[{title.lower()}](#{title.lower()})")
    also = [*(f"`{name}`" for name in common), *also]
    yield f" Also: {', '.join(also)}.\n" if also else "\n"
    own = [line(option) for option in found if option not in shared]
    yield from ["\n", *own] if own else []


def leaves(command: click.Group, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Yield the name and context of each command that has none below it, by group."""
    every = command.list_commands(context)
    names = [name for group in GROUPS.values() for name in group] if command is cli else every
    assert sorted(names) == sorted(every), "a command is in no group, or in two"
    for name in names:
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
    records = (option.get_help_record(context) for option in found)
    return [record for record in records if record is not None]


def long(option: Option) -> str:
    """Return the name of an option."""
    return option[0].split()[0]


def line(option: Option) -> str:
    """Return the line of an option."""
    return f"- `{option[0]}`: {' '.join(option[1].split())}\n"

"""Every command has the options that mean something on it, and refuses the others."""

import re
from itertools import chain

import click
import pytest

from fairgate.cli import cli, every_command

MACHINE = {"--batch-size", "--threads", "--device"}
PLACES = {"--root", "--cache"}
PYTHON = {"--allow-python"}
SHARED = MACHINE | PLACES | PYTHON
ASKED = {"run", "merge", "doctor"}
"""They put questions to the system of a policy, which may be a Python function."""
WITH_MODELS = {
    "baseline accept", "baseline anchor", "check", "explain", "generate",
    "judge evaluate", "plan", "power", "rescore",
}  # fmt: skip
"""They embed the documents of a run again, or ask a judge, a classifier or a generator."""
WITH_FILES = {"comment", "corpus prepare"}
WITH_CACHE = {"export", "table"}
TWO_FOLDERS = {"blame"}
"""They read two folders, so that no root could be named for both."""
WITHOUT = {
    "baseline diff", "baseline verify", "init", "metrics list",
    "record", "relations explain", "relations list",
}  # fmt: skip
OF_THE_ACTION = {"github run", "github merge", "github comment"}
"""Their options are the action's inputs."""
EXPECTED = {
    name: shared
    for names, shared in (
        (ASKED, SHARED), (WITH_MODELS, MACHINE | PLACES), (WITH_FILES, PLACES),
        (WITH_CACHE, {"--cache"}), (TWO_FOLDERS, MACHINE | {"--cache"}), (WITHOUT, set()),
    )
    for name in names
}  # fmt: skip


def leaves(command, parent=None, name=""):
    context = click.Context(command, parent=parent, info_name=name)
    if not isinstance(command, click.Group):
        yield name, command
        return
    for child in command.list_commands(context):
        yield from leaves(command.get_command(context, child), context, f"{name} {child}".strip())


COMMANDS = {
    name: {word for each in command.params if isinstance(each, click.Option) for word in each.opts}
    for name, command in leaves(cli)
}


def test_every_command_is_of_one_sort():
    assert set(COMMANDS) == set(EXPECTED) | OF_THE_ACTION


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_command_has_the_shared_options_that_mean_something_on_it(name):
    assert COMMANDS[name] & SHARED == EXPECTED[name]


def test_what_takes_long_can_be_quiet():
    assert {name for name in ASKED if "--quiet" not in COMMANDS[name]} == {"doctor"}


@pytest.mark.walk(2)
@pytest.mark.parametrize("option", [("--device", "cpu"), ("--threads", "1"), ("--batch-size", "2")])
@pytest.mark.parametrize(("command", "needed"), [
    (("check", "policy.yaml"), "--quality"),
    (("plan", "policy.yaml"), "--after RUN"),
    (("power", "policy.yaml"), "--run RUN"),
    (("generate", "genfair", "--out", "cases.jsonl"), "not for `generate genfair`"),
])  # fmt: skip
def test_an_option_about_models_is_refused_where_none_runs(workspace, command, needed, option):
    assert workspace.run(*command) == 0, workspace.err
    (workspace.root / "cases.jsonl").unlink(missing_ok=True)
    assert workspace.run(*command, *option) == 2
    assert option[0] in workspace.err
    assert needed in workspace.err
    assert "leave" in workspace.err
    assert not (workspace.root / "cases.jsonl").exists()


def test_help_has_a_line_for_fifteen_commands_and_names_the_others():
    printed = cli.get_help(click.Context(cli, info_name="fairgate")).split("Show this message")[1]
    _, *sections = re.split(r"^([A-Z].*):$", printed, flags=re.MULTILINE)
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    further = re.findall(r"`(\w+)`", texts.pop("Further commands"))
    assert "--cache DIRECTORY" in texts.pop("Options of most commands")
    listed = {title: re.findall(r"^  (\w+)", rows, re.MULTILINE) for title, rows in texts.items()}
    assert listed == {
        "Every day": ["init", "check", "run", "table", "explain", "baseline"],
        "Asking why": ["blame", "doctor", "power", "record"],
        "Data and models": ["generate", "export"],
        "In CI": ["plan", "merge", "comment"],
    }
    assert sorted([*further, *chain(*listed.values())]) == sorted(every_command())

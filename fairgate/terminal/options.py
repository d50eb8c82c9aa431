"""Options that several commands share."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import inspect
import math
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fairgate.domain.errors import UsageError
from fairgate.domain.ports import Runtime
from fairgate.domain.registry import FEATURES
from fairgate.domain.wording import listed
from fairgate.io.regular import IrregularFileError, content_of, require_regular
from fairgate.terminal.document import failing_as_json

C = TypeVar("C", bound=Callable[..., Any])


class _File(click.Path):
    """A regular file that is there, or with `dir_okay` a folder."""

    def __init__(self, *, dir_okay: bool = False) -> None:
        super().__init__(exists=True, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            require_regular(path)
        except IrregularFileError as error:
            self.fail(f"{str(path)!r} {error.strerror}.", param, ctx)
        return path


class _PolicyFile(_File):
    """A file that is there; a policy that is not is told with those that are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not Path(value).exists():
            found = [str(file) for file in _policies()]
            there = f"there are {listed(found, last='and')}; " if found else ""
            message = f"File {str(value)!r} does not exist; {there}`fairgate init` writes a policy."
            self.fail(message, param, ctx)
        return super().convert(value, param, ctx)


def _policies() -> list[Path]:
    """Return the policies of this folder and of `policies`, the first few by name."""
    files = [*Path().glob("*.y*ml"), *Path("policies").glob("*.y*ml")]
    found = []
    for file in sorted(files):
        with contextlib.suppress(OSError):
            if re.search(rb"(?m)^suites:", content_of(file)[:_MOST_READ]):
                found.append(file)
    return found[:_MOST_NAMED]


_MOST_READ, _MOST_NAMED = 1 << 16, 8
EXISTING_FILE = _File()
FILE_OR_FOLDER = _File(dir_okay=True)
POLICY_FILE = _PolicyFile()
FOLDER = click.Path(file_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _Share(click.FloatRange):
    """A number above 0 and at most 1; a float range lets `nan` pass, which is in no range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        share: float = super().convert(value, param, ctx)
        if math.isnan(share):
            self.fail(f"{value} is not in the range 0<x<=1.", param, ctx)
        return share


class _BatchSize(click.IntRange):
    """A number of rows, or `auto`, which is None."""

    name = "auto or integer range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return None if value == "auto" else super().convert(value, param, ctx)


SHARE = _Share(0, 1, min_open=True)
DATE = click.DateTime(["%Y-%m-%d"])


class _Common(click.Option):
    """An option of many commands: their help names it, that of `fairgate` explains it."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of all such options for the first of a command's; None for others."""
        common = [option for option in ctx.command.params if isinstance(option, _Common)]
        if self is not common[0]:
            return None
        return ", ".join(option.opts[0] for option in common), "See `fairgate --help`."

    def explained(self, ctx: click.Context) -> tuple[str, str]:
        """Return the option with its metavar, and what it means."""
        return super().get_help_record(ctx) or (self.opts[0], "")


_ROOT = click.option(
    "--root", cls=_Common, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder that relative paths start at, and that no path may leave.",
)  # fmt: skip
_TODAY = click.option(
    "--today", type=DATE, hidden=True,
    help="Date on which waivers are checked (default: today).",
)  # fmt: skip
_MACHINE = (
    click.option(
        "--batch-size", cls=_Common, type=_BatchSize(1, 1024), metavar="auto|NUMBER",
        default="auto", show_default=True,
        help="Prompts or texts in one batch (auto: at most 16 on the CPU, 64 on a GPU; halved "
        "where memory runs out). Never changes a result.",
    ),
    click.option(
        "--threads", cls=_Common, type=click.IntRange(0, 1024), default=0, show_default="all cores",
        help="Threads of the models; never changes a result.",
    ),
    click.option(
        "--device", cls=_Common, type=click.Choice(["cpu", "cuda"]), default="cpu",
        show_default=True, help="Where the models run.",
    ),
)  # fmt: skip


def together(*options: Callable[[Any], Any]) -> Callable[[C], C]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


cache_option = click.option(
    "--cache", cls=_Common, type=FOLDER,
    help="Folder for stored results and models (default: .fairgate; FAIRGATE_CACHE).",
)  # fmt: skip
"""`--cache` alone, for a command that reads no other file by a relative path."""
place_options = together(_ROOT, cache_option, _TODAY)
"""The options of `Runtime` for a command that runs no model: where its files are."""
machine_options = together(*_MACHINE)
"""How models run alone, for a command whose paths start elsewhere."""
runtime_options = together(_ROOT, cache_option, *_MACHINE, _TODAY)
"""The options of `Runtime`: how to run, never what."""


def common_options(ctx: click.Context) -> list[tuple[str, str]]:
    """Return each common option with its metavar, and what it means."""
    command = click.command()(runtime_options(lambda: None))
    return [option.explained(ctx) for option in command.params if isinstance(option, _Common)]


MACHINE = ("batch_size", "threads", "device")
"""Parameters about how models run."""


def import_relations(version: Callable[[Path], Path] = lambda path: path) -> None:
    """Import the files that `--relations` names, in a version of them, until the command ends."""
    context = click.get_current_context().find_root()
    for path in context.params["relations"]:
        from fairgate.relations.relation_files import own_relations

        context.with_resource(own_relations(version(path)))


def given_options() -> dict[str, str]:
    """Return the options that stand on the command line, by the parameter that each one sets."""
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if parameter.name is not None
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


FIRST_RUN = Path(".fairgate/first")
"""Where what is printed before a first run puts it."""
_KEPT = (
    *("relations", "root", "cache", "device", "allow_python", "baseline"),
    *("source", "who", "category", "outcome", "repeat", "control", "by", "difference", "better"),
)
"""What a further command of the same work needs, too: where files are, whose code may run."""


def called(name: str, policy: str = "", run: Path = FIRST_RUN) -> str:
    """Return a command of FairGate's, `run` or `baseline accept`, with what this call was given.

    `policy` is that of a folder `run`: it is named where the run's record does not find it.
    Without a call, and where no feature brings the command, it is the command alone.
    """
    from fairgate.gate.run_folder import is_own_policy

    context = click.get_current_context(silent=True)
    if context is None:
        return f"fairgate {name}"
    root = context.find_root()
    words, command = [_given(root, root.command)], root.command
    for word in name.split():
        inner = command.get_command(root, word) if isinstance(command, click.Group) else None
        if inner is None:
            return f"fairgate {name}"
        words.append(word)
        command = inner
    takes_policy = any("--policy" in parameter.opts for parameter in command.params)
    if takes_policy and policy and not is_own_policy(Path(policy), run):
        words.append(shlex.join(["--policy", policy]))
    return " ".join(filter(None, ["fairgate", *words, _given(context, command)]))


def _given(context: click.Context, command: click.Command) -> str:
    """Return those options of a call that another command takes, too, as they were given."""
    words: list[str] = []
    for parameter in command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in _KEPT and is_given:
            value = context.params.get(name, context.meta.get(name))
            for one in value if isinstance(value, list | tuple) else (value,):
                words += [parameter.opts[0], *([] if one is True else [str(one)])]
    return shlex.join(words)


def refuse_machine_options(unless: str) -> None:
    """Raise UsageError for options about models where the command as given runs none."""
    options_given = given_options()
    for name in MACHINE:
        if name in options_given:
            command = click.get_current_context().info_name
            raise UsageError(
                f"{options_given[name]} says how models run, and `{command}` runs one only with "
                f"{unless}; leave out {options_given[name]}"
            )


allow_python = click.option(
    "--allow-python",
    is_flag=True,
    help="Import the function that `system: {python: …}` names, and call it.",
)
"""For commands that ask the system: the user's word, never the policy's."""


def runtime_of(options: dict[str, Any], *, confined: bool = False) -> Runtime:
    """Return the Runtime that the shared options describe, taking them out of `options`."""
    root: Path | None = options.pop("root", None)
    cache: Path | None = options.pop("cache", None)
    from_environment = os.environ.get("FAIRGATE_CACHE")
    today: dt.datetime | None = options.pop("today", None)
    now = today or dt.datetime.now(tz=dt.UTC)
    return Runtime(
        root=root or Path(),
        cache=cache or (Path(from_environment) if from_environment else Path(".fairgate")),
        batch_size=options.pop("batch_size", None),
        threads=options.pop("threads", 0),
        device=options.pop("device", "cpu"),
        allow_python=options.pop("allow_python", False),
        confined=confined or root is not None,
        today=now.date(),
    )


def format_option(command: Callable[..., Any]) -> Any:
    """Add `--format LIST`, which names the formats of the core and of features."""
    names = ["md", "html", *(name for feature in FEATURES for name in feature.formats)]
    option = click.option(
        "--format", "formats", default="", metavar="LIST",
        help=f"Reports to write, comma-separated: {', '.join(names)} (default: md,html); with "
        "`json`, the printed output is JSON as well.",
    )  # fmt: skip
    return option(failing_as_json(command, lambda options: prints_json(options["formats"])))


def prints_json(formats: str) -> bool:
    """Return whether a list of formats asks for JSON on stdout."""
    return "json" in (name.strip() for name in formats.split(","))


def extended(
    command: click.Command, callback: Callable[..., Any], *, before: str = "root", says: str = ""
) -> click.Command:
    """Return a command that `callback` takes the call of, with the options it is decorated with.

    They stand `before` one of its own, or last. `says` ends the command's help.
    """
    own, copied = click.command()(callback), copy.copy(command)
    names = [parameter.name for parameter in command.params]
    index = names.index(before) if before in names else len(names)
    copied.params = [*command.params[:index], *own.params, *command.params[index:]]
    copied.callback = own.callback
    copied.help = inspect.cleandoc(command.help or "") + says
    return copied


_JSON = click.option(
    "--format", "shape", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Form of the output: text for people, or JSON.",
)  # fmt: skip


def json_option(callback: Callable[..., Any]) -> Any:
    """Add `--format json`: the same for machines, one JSON document on stdout, errors included."""
    return _JSON(failing_as_json(callback, lambda options: options["shape"] == "json"))

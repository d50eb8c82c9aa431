"""The command line: the only code that prints, reads the environment, catches and exits.

What went wrong is told in words and an exit code: a crash is never a verdict. Full disks, closed
pipes, too little memory and libraries that cannot be loaded are the machine's state; only what is
left is an internal error.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import errno
import gc
import io
import os
import re
import sys
import traceback
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from fairgate import __version__
from fairgate.domain.errors import ExitCode, FairGateError, StoreError, UsageError
from fairgate.domain.registry import CI, DAILY, FEATURES, GROUPS, MORE, Command, at
from fairgate.domain.wording import harmless, listed, nearest, quoted
from fairgate.features.shipped import SHIPPED
from fairgate.terminal.options import EXISTING_FILE, common_options, import_relations
from fairgate.terminal.output import Output, say

_OF_THE_CORE = {
    "check": Command(
        "fairgate.cli.gate:check",
        "Validate a policy, or a file of generated cases; loads no model.",
        answers=True,
        group=DAILY,
    ),
    "run": Command(
        "fairgate.cli.gate:run",
        "Run a policy's gate: ask the system, compare, decide.",
        answers=True,
        group=DAILY,
    ),
    "rescore": Command(
        "fairgate.cli.gate:rescore",
        "Judge the answers of an earlier run again, without a model.",
        answers=True,
        group=MORE,
    ),
    "plan": Command(
        "fairgate.cli.gate:plan",
        "Write one JSON line for each question that a run would ask.",
        group=CI,
    ),
    "github": Command(
        "fairgate.github:github",
        "The gate as a step of a GitHub workflow; the action calls it.",
        answers=True,
        takes_relations=False,
        group=MORE,
    ),
}
for _feature in SHIPPED:
    FEATURES.add(_feature)
_OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "1")
"""numpy multiplies matrices in one thread. Ours are small: the threads would mostly wait for each
other, at full processor time; what they compute is the same."""
_FEWEST_FILES = 64
"""Open at once; a run of a bundled model was seen to need 24."""
_MOST = 500
_LACKING = re.compile(
    r"ThreadPoolBuildError|can't (?:start|allocate) (?:new |lock|read)|\bstd::bad_alloc\b|"
    r"failed to spawn thread|global thread pool",
    re.IGNORECASE,
)
"""How libraries say that they found no memory, or could start no thread."""
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)
_COMPLETION = "_FAIRGATE_COMPLETE"
"""Set by a shell that asks what could follow; the name is click's."""


def every_command() -> dict[str, Command]:
    """Return every command, of the core and of features, in the order of `--help`."""
    commands: dict[str, Command] = {}
    for name in (*_OF_THE_CORE, ""):
        for feature in FEATURES:
            commands |= feature.commands if feature.before == name else {}
        commands |= {name: _OF_THE_CORE[name]} if name else {}
    return dict(sorted(commands.items(), key=lambda each: GROUPS.index(each[1].group)))


class _LazyGroup(click.Group):
    """Imports a command's module when the command is called, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(every_command())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = every_command().get(cmd_name)
        if entry is None:
            return None
        command: click.Command = at(entry.location)
        for feature in FEATURES:
            if cmd_name in feature.extends:
                command = at(feature.extends[cmd_name])(command)
        return _importing_relations(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a mistyped one is told with what was probably meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in every_command():
            close = nearest(name, every_command())
            hint = f"did you mean {listed(close)}?" if close else "see `fairgate --help`"
            raise click.UsageError(f"no command is called {quoted(name)}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = every_command()
        widest = max(map(len, commands))
        for group, rows in groupby(commands.items(), lambda each: each[1].group):
            with formatter.section(group):
                if group == MORE:
                    formatter.write_text(listed((name for name, _ in rows), last="and"))
                else:
                    formatter.write_dl([(name.ljust(widest), row.summary) for name, row in rows])
        with formatter.section("Options of most commands"):
            formatter.write_dl(common_options(ctx))


def _importing_relations(command: click.Command) -> click.Command:
    """Return a command that imports what `--relations` names first.

    One that is given a base commit by `--base` imports that commit's version itself.
    """
    called: Any = command.callback
    base = next((one.name for one in command.params if "--base" in one.opts), "")

    def callback(*arguments: Any, **options: Any) -> Any:
        if options.get(base or "") is None:
            import_relations()
        return called(*arguments, **options)

    importing = copy.copy(command)
    importing.callback = callback
    return importing


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fairgate")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--relations", multiple=True, metavar="FILE.py",
    type=EXISTING_FILE,
    help="Relations of your own, beside the shipped ones; the file is imported and run.",
)  # fmt: skip
@click.pass_context
def cli(ctx: click.Context, *, debug: bool, relations: tuple[Path, ...]) -> None:
    """Fairness gate for retrieval-augmented small language models.

    Exit codes: 0 pass, 1 gate failed, 2 usage or policy error, 3 baseline missing or incompatible,
    4 execution error, 5 no verdict, 130 interrupted.
    """
    del debug  # read in `main`, which alone catches
    ctx.obj.append(ctx.invoked_subcommand)
    entry = every_command().get(ctx.invoked_subcommand or "")
    if relations and entry is not None and not entry.takes_relations:
        raise UsageError(
            f"--relations is not for `fairgate {ctx.invoked_subcommand}`: it runs on files of a "
            "change that nobody reviewed yet, and imports none of them"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; no exception leaves it."""
    ends = arguments is None  # the process, after this: looking for cycles would only take time
    if arguments is None:
        arguments = sys.argv[1:]
        atexit.register(gc.freeze)
    thresholds = gc.get_threshold()
    # Most of what a run makes lives until its end; looking for cycles often finds none.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *thresholds[1:])
    os.environ.setdefault(*_BLAS_THREADS)  # read when numpy is imported, which no command has yet
    names_called: list[str] = []
    out = Output(sys.stdout)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(Output(sys.stderr)):
        try:
            code = _main(arguments, names_called)
        finally:
            if not ends:
                gc.set_threshold(*thresholds)
        out.flush()
        if not out.lost or code in (ExitCode.USAGE, ExitCode.EXECUTION, ExitCode.INTERRUPTED):
            return code  # which has been said
        is_help = not {"-h", "--help"}.isdisjoint(arguments)
        lost = f"the output cannot be written ({out.lost})"
        answers = {name for name, entry in every_command().items() if entry.answers}
        if is_help or answers.isdisjoint(names_called):
            if not out.is_unread:
                say(f"fairgate: error: {lost}; write it elsewhere")
            return ExitCode.EXECUTION
        if out.is_unread:
            return code
        say(f"fairgate: note: {lost}; the exit code, {code}, stands")
        return code


def _main(arguments: list[str], names_called: list[str]) -> int:
    try:
        _require_machine()
        _require_text(arguments)
        for feature in SHIPPED:
            if feature.first:
                at(feature.first)(arguments)
        result = cli.main(
            args=arguments, prog_name="fairgate", standalone_mode=False, obj=names_called
        )
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:
        if _COMPLETION in os.environ:  # click leaves so when a shell asks what could follow
            return stop.code if isinstance(stop.code, int) else ExitCode.PASS
        return explain(stop)
    except GeneratorExit:  # no failure: the interpreter's own way out
        raise
    except BaseException as error:  # noqa: BLE001 - the last line; a panic of Rust is no Exception
        if "--debug" in arguments:
            # Raised on, it would end with status 1, which says that the gate failed.
            traceback.print_exception(error)
        return explain(error)
    return int(result) if isinstance(result, int) else ExitCode.PASS


def _require_machine() -> None:
    """Raise UsageError on Windows, where files are neither locked nor synced in the same way.

    Allow as many open files as the machine lets; raise StoreError where these are too few.
    Libraries and git do not say that it is files that they lack.
    """
    if os.name == "nt":
        raise UsageError(
            "FairGate does not run on Windows itself; run it there in WSL, the Windows Subsystem "
            "for Linux, or on Linux"
        )
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _FEWEST_FILES:
        raise StoreError(
            f"only {soft} files may be open at once, and FairGate needs {_FEWEST_FILES}: allow "
            f"more with `ulimit -n {_FEWEST_FILES}`, or a larger limit of the container"
        )


def _require_text(arguments: list[str]) -> None:
    """Raise UsageError for names that are no UTF-8: no record or report could hold them."""
    try:
        places = {"the current folder": os.getcwd()}  # noqa: PTH109 - as text, whatever its bytes
    except OSError as error:
        raise UsageError(
            f"the current folder does not exist any more ({error.strerror}); change it"
        ) from error
    places |= {f"argument {n} ({quoted(text)})": text for n, text in enumerate(arguments, start=1)}
    places |= {name: text for name, text in os.environ.items() if name.startswith("FAIRGATE_")}
    for source, text in places.items():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            if _is_utf_8(text):
                encoding = sys.getfilesystemencoding()
                raise UsageError(
                    f"{source} is UTF-8, but the locale's encoding is {encoding}: set "
                    "LC_ALL=C.UTF-8, or PYTHONUTF8=1"
                ) from error
            raise UsageError(f"{source} is not UTF-8; rename the file or folder") from error
        if "\0" in text:
            raise UsageError(f"{source} holds a NUL character; remove it")


def _is_utf_8(text: str) -> bool:
    """Whether a text that Python could not decode by the locale is UTF-8 all the same."""
    try:
        os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return False
    return True


def explain(error: BaseException) -> ExitCode:
    """Print on stderr what went wrong and what to do, and return the exit code."""
    causes = [*_causes(error)]
    if any(isinstance(cause, click.Abort | KeyboardInterrupt) for cause in causes):
        # Also where a library that was being imported turned Ctrl-C into an error of its own.
        say("fairgate: interrupted; what is stored is kept: run again to go on")
        return ExitCode.INTERRUPTED
    if any(isinstance(cause, OSError) and cause.errno in _NO_MORE_FILES for cause in causes):
        say(
            "fairgate: error: too many files and connections are open at once: allow more "
            "(`ulimit -n`), or lower `concurrency`"
        )
        return ExitCode.EXECUTION
    match error:
        case click.ClickException():
            text = io.StringIO()
            error.show(file=text)
            say(text.getvalue().rstrip("\n"))
            return ExitCode.USAGE
        case FairGateError():
            say(f"fairgate: error: {error}")
            return error.exit_code
        case SystemExit():
            # No command of ours leaves so: a library may, with a status that would be taken for a
            # verdict.
            say(
                f"fairgate: error: stopped before the end (status {str(error.code)[:80]}): a "
                "library gave up; there is no verdict"
            )
            return ExitCode.EXECUTION
    say(
        _of_the_machine(error)
        or f"fairgate: internal error: {type(error).__name__}: {harmless(str(error)[:_MOST])}\n"
        "This is a bug. Run again with `fairgate --debug …` and report the traceback."
    )
    return ExitCode.EXECUTION


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)


def _of_the_machine(error: BaseException) -> str:
    """Return the sentence for what the machine refused; empty where it is something else."""
    detail = harmless(str(error)[:_MOST])
    if _LACKING.search(f"{type(error).__name__}: {error}"):
        return (
            f"fairgate: error: there is not enough memory, or no further thread ({detail}): allow "
            "more (`ulimit -v`, `ulimit -u`), or lower --batch-size or --threads"
        )
    match error:
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return (
                f"fairgate: error: there is not enough memory, or address space ({detail}): lower "
                "--batch-size, allow more (`ulimit -v`), or take a smaller model or corpus"
            )
        case ImportError():
            return (
                f"fairgate: error: a library cannot be loaded ({detail}): install FairGate again, "
                "or allow more address space (`ulimit -v`)"
            )
        case OSError(filename=None, errno=errno.ENOSPC | errno.EDQUOT | errno.EIO | errno.EPIPE):
            return (
                f"fairgate: error: the output cannot be written ({error.strerror}); files that are "
                "complete stay: free some space, or write the output elsewhere"
            )
        case OSError(errno=errno.EFBIG):
            return (
                "fairgate: error: a file would be larger than this process may write "
                f"({detail}): raise `ulimit -f`, or write the output elsewhere"
            )
        case OSError():
            return f"fairgate: error: {detail}; check the path, its permissions and free space"
    return ""

"""The gate of a change without GitHub: `fairgate run --base` and `fairgate comment`.

What decides is what decides on a pull request: `github.change` with the base commit's files. Only
where the base comes from, and where the report goes, is another.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import ExitCode, FairGateError, UsageError
from fairgate.domain.ports import Runtime
from fairgate.domain.wording import quoted
from fairgate.io.git import writable
from fairgate.terminal import options as shared
from fairgate.terminal.output import VERDICTS, has_colour, progress_for

if TYPE_CHECKING:
    from fairgate.features.changes.base import Base
    from fairgate.github.introduction import IntroductionReport
    from fairgate.github.report import ChangeReport

_OF_THE_BASE = {
    "baseline": "--baseline names a baseline, and with --base the base's decides",
    "limit": "--limit is a first look at a part of the suite, and --base is the gate",
    "shard": "--shard asks a part of a run, and --base judges a whole one",
    "allow_python": "--allow-python imports the checkout's code into the process that judges it; "
    "ask it by `command` or `serve`, in a process of its own",
}
"""Options of `run` that mean nothing beside `--base`, with the reason."""


def run_of_a_change(run: click.Command) -> click.Command:
    """Return `fairgate run` with `--base`."""
    alone: Any = run.callback

    @click.option(
        "--base", metavar="REF",
        help="Judge the checkout as a pull request to this branch or commit, "
"whose policy and baseline decide.",
    )  # fmt: skip
    def run_(policy: Path, base: str | None, **options: Any) -> int:
        if base is None:
            context = click.get_current_context()
            shared.POLICY_FILE.convert(str(policy), context.command.params[0], context)
            return int(alone(policy=policy, **options))
        return _run_against(policy, base, options)

    says = (
        "\nWith --base what decides is read from that commit and what is under test from the "
        "checkout. A plain name is a branch of `origin`, which is fetched, or one of this clone "
        "alone."
    )
    command = shared.extended(run, run_, before="report_only", says=says)
    # The policy that decides need not be in the checkout: a change may remove it.
    argument = copy.copy(command.params[0])
    argument.type = click.Path(dir_okay=False, path_type=Path)
    command.params[0] = argument
    return command


def _run_against(policy: Path, ref: str, options: dict[str, Any]) -> int:
    from fairgate.features.changes.code import refuse_own_code, relation_of_base

    refusal = None
    try:  # before any library is imported: it could be the change's
        root, policy_name = placed(policy, options["root"] or Path())
        refuse_own_code(root)
    except UsageError as error:
        refusal = error
    with _results_in(options["out"], options["formats"]):
        for name, reason in _OF_THE_BASE.items():
            if options.get(name):
                raise UsageError(f"{reason}; leave one of them out")
        if shared.prints_json(options["formats"]):
            raise UsageError(
                "`--format json` prints a run of the checkout alone; with --base, run.json in the "
                "folder --out has the verdict: leave one of them out"
            )
        if refusal is not None:
            raise refusal
        from fairgate.features.changes.base import base_of

        with tempfile.TemporaryDirectory(prefix="fairgate-") as scratch:
            base = base_of(root, ref)
            folder = Path(scratch)
            shared.import_relations(partial(relation_of_base, base.commit, base.edited, folder))
            runtime = replace(shared.runtime_of(options, confined=True), root=root)
            runtime = replace(runtime, cache=writable(runtime.cache.absolute(), "--cache"))
            report = _judged(policy_name, base, runtime, options, folder)
    code = report.exit_code
    return ExitCode.PASS if options["report_only"] and code in VERDICTS else code


def placed(policy: Path, root: Path) -> tuple[Path, str]:
    """Return the root without links on the way, and the policy's path from there.

    The policy's path is taken by its letters: the base commit is asked for that name.
    """
    current_folder = Path.cwd()
    folder, file = (Path(os.path.normpath(current_folder / path)) for path in (root, policy))
    if not file.is_relative_to(folder):
        raise UsageError(
            f"the policy {quoted(str(policy))} lies outside of {quoted(str(root))}, where paths "
            "start; name the root of both with --root"
        )
    return folder.resolve(), file.relative_to(folder).as_posix()


def _judged(
    policy: str, base: Base, runtime: Runtime, options: Mapping[str, Any], scratch: Path
) -> ChangeReport | IntroductionReport:
    """Judge the checkout by what the base decides; write the run's folder and print the report."""
    from fairgate.gate.run_folder import output_folder
    from fairgate.github.change import ChangeGate, Introduction, evaluated
    from fairgate.github.comments import write_comment
    from fairgate.github.gate_step import introduced, reported
    from fairgate.github.no_verdict import leave_unjudged
    from fairgate.reports.console import render_console
    from fairgate.reports.formats import chosen

    formats = chosen(options["formats"])
    evaluate = partial(evaluated, progress=progress_for(quiet=options["quiet"]))
    prefix = base.commit.prefix
    gate = ChangeGate(policy, runtime, evaluate, scratch)
    with contextlib.chdir(runtime.root):
        judged = gate.change(base.commit, base.commit.commit, allow=False)
    if isinstance(judged, Introduction):
        introduction = introduced(judged, prefix, base.remarks)
        if folder := options["out"]:
            leave_unjudged(folder, introduction.unjudged, introduction.comment(""), formats)
        return introduction
    folder = output_folder(options["out"], runtime, judged.decides.loaded)
    folder = shown_path(folder)
    remarks, data = [*judged.remarks, *base.remarks], [*base.edited, *judged.data]
    judged = replace(judged, remarks=remarks, data=data)
    about = {"prefix": prefix, "report_only": options["report_only"]}
    draw = partial(render_console, colour=has_colour(), whole=options["verbose"])
    report = reported(judged, folder, formats, about, draw)
    write_comment(folder, report.comment(""), create=report.needs_attention)
    return report


@contextlib.contextmanager
def _results_in(folder: Path | None, formats: str) -> Iterator[None]:
    """Let nothing but this run's own results stand in the folder that was named for them.

    An error that ends the block is reported there, too.
    """
    from fairgate.gate.run_folder import emptied, is_shard
    from fairgate.github.no_verdict import code_of, leave_no_verdict
    from fairgate.reports.formats import chosen, known_files

    try:
        written = chosen(formats)
    except UsageError:  # raised again where they are asked for
        written = chosen("")
    try:
        if folder is not None:
            emptied(folder, known_files(), "--out")
        yield
    except BaseException as error:
        code = code_of(error)
        keeps = folder is None or is_shard(folder) or code is ExitCode.INTERRUPTED
        if folder is not None and not keeps:
            with contextlib.suppress(FairGateError):
                leave_no_verdict(error, code, folder, written)
        raise


def shown_path(path: Path) -> Path:
    """Return the path from the current folder, if it is in it."""
    current_folder = Path.cwd()
    return path.relative_to(current_folder) if path.is_relative_to(current_folder) else path

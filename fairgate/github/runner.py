"""What the runner gives a step and takes from it: inputs; outputs, annotations, the job summary.

The inputs of the action are texts from a workflow, checked all at once. Every text for the runner
is harmless before it is written: a workflow command is a line of the log, and nobody but this
module may write one.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

from fairgate.domain.errors import StoreError, UsageError
from fairgate.domain.ports import Runtime
from fairgate.domain.wording import harmless, listed, quoted

CommentMode = Literal["on-change", "always", "on-failure"]
UNTIL_PROVEN = "until-proven"
C = TypeVar("C", bound=Callable[..., Any])
_BELIEVED = (
    "RUNNER_TEMP", "HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
)  # fmt: skip
"""Variables of folders that hold stored results, models and data sets, or git's settings."""
_CHOICES = {
    "device": ("cpu", "cuda"),
    "comment": get_args(CommentMode),
    "baseline_change": ("refuse", "allow"),
    "report_only": ("true", "false", UNTIL_PROVEN),
}
_INPUTS = {
    "policy": ("", "Policy file, relative to the root of the checkout; several, each on a line."),
    "root": (".", "Folder that paths start at and may not leave, relative to the workspace."),
    "device": ("cpu", "`cpu` or `cuda`."),
    "comment": ("on-change", "When a comment is due: `on-change`, `always` or `on-failure`."),
    "baseline_change": ("refuse", "`allow` lets a pull request's own policy and baseline decide."),
    "report_only": (
        "false",
        "`true`: exit 0 whatever the verdict, which is shown; `until-proven`: at first.",
    ),
    "report_dir": ("", "Folder for the report files, inside the workspace."),
    "cache_dir": ("", "Folder for stored results, outside the checkout."),
    "answers_artifact": ("", "Artifact with the stored answers of the base branch's runs."),
    "pr_number": ("", "Number of the pull request, if the event does not name one."),
    "github_token": ("", "Token that reads: the base commit, pull requests, runs."),
}
"""By name: the default, and what it is."""
ANNOTATIONS_PER_KIND = 10
"""The runner drops further ones of a step silently."""
SUMMARY_BYTES = 1_000_000
"""The runner refuses a step's whole summary above 1 MiB."""
MESSAGE_CHARACTERS = 1000
_FORMS = {
    "answers_artifact": (r"[\w.-]{0,100}", "a name of letters, digits, - _ ."),
    "pr_number": (r"([1-9][0-9]{0,9})?", "a number"),
}
"""Inputs in a form of their own: that, and in words."""

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the workflow asks for, valid."""

    policies: tuple[str, ...]
    """At least one, each by its path below `root`."""
    workspace: Path
    """The runner's folder for checkouts."""
    root: Path
    scratch: Path
    """A folder of the runner's, outside the checkout."""
    runtime: Runtime
    report_only: bool
    until_proven: bool
    """Whether the gate's history says so instead (`github/proof.py`)."""
    report_dir: Path | None
    comment: CommentMode
    allows_change: bool
    number: int | None
    token: str
    answers: str = ""
    """Artifact with the base branch's stored answers; empty: none are used."""

    def __repr__(self) -> str:
        """Say which policy, never the token."""
        return f"Inputs({', '.join(self.policies)!r})"


def input_options(command: C) -> C:
    """Add an option for each input; the action sets them by environment variables.

    All are plain texts: a wrong one must leave outputs and a summary, which click's own checks
    would prevent.
    """
    for name, (default, text) in reversed(_INPUTS.items()):
        command = click.option(
            f"--{name.replace('_', '-')}",
            default=default,
            envvar=f"FAIRGATE_{name.upper()}",
            help=text,
        )(command)
    return command


def read_inputs(options: Mapping[str, str], environment: Mapping[str, str]) -> Inputs:
    """Return the inputs. Raises UsageError that names everything wrong with them."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").resolve()
    problems = [
        f"{name.replace('_', '-')} is {quoted(options[name])}, expected {listed(choices)}"
        for name, choices in _CHOICES.items()
        if options[name] not in choices
    ]
    root = _root(workspace, options["root"], problems)
    paths = policies_in(options["policy"])
    policies = [_inside(root, name, "policy", problems) for name in paths]
    problems += [] if paths else ["policy is empty, expected the path of a policy file"]
    problems += [
        f"policy is {quoted(name)}, expected a path: a change could take its own policy out of a "
        "pattern; name each policy on a line of its own"
        for name in paths
        if set(name) & set("*?[")
    ]
    if twice := sorted({name for name in paths if paths.count(name) > 1}):
        problems.append(f"policy names {listed(twice, last='and')} twice")
    report_dir = options["report_dir"]
    reports = _inside(workspace, report_dir, "report-dir", problems) if report_dir else None
    # Answers, models and git's own settings: a change could bring them along.
    stores = {"cache-dir": options["cache_dir"], **{k: environment.get(k, "") for k in _BELIEVED}}
    problems += [
        f"{name} is {quoted(value)}, which lies in the checkout, where a change could put what is "
        "trusted there; expected a folder outside of it"
        for name, value in stores.items()
        if value and _lies_in(workspace, Path(value))
    ]
    problems += [
        f"{name.replace('_', '-')} is {quoted(options[name])}, expected {expected}"
        for name, (form, expected) in _FORMS.items()
        if not re.fullmatch(form, options[name], re.ASCII)
    ]
    if problems:
        raise UsageError("; ".join(problems) + "; correct the step's `with:`")
    scratch = _scratch(environment)
    cache = Path(options["cache_dir"]).absolute() if options["cache_dir"] else scratch / "cache"
    return Inputs(
        policies=tuple(policy.relative_to(root).as_posix() for policy in policies),
        workspace=workspace,
        root=root,
        scratch=scratch,
        runtime=Runtime(
            root=root,
            cache=cache,
            device=options["device"],
            confined=True,
            today=dt.datetime.now(tz=dt.UTC).date(),
        ),
        report_only=options["report_only"] == "true",
        until_proven=options["report_only"] == UNTIL_PROVEN,
        report_dir=reports,
        comment=options["comment"],  # type: ignore[arg-type]
        allows_change=options["baseline_change"] == "allow",
        number=int(options["pr_number"]) if options["pr_number"] else None,
        token=options["github_token"],
        answers=options["answers_artifact"],
    )


def read_parts(
    shards: str, attribution: str, inputs: Inputs, environment: Mapping[str, str]
) -> Path:
    """Return the folder of a run's parts. Raises UsageError that names everything wrong."""
    folder = Path(shards or _scratch(environment).with_name("fairgate-shards")).absolute()
    problems = []
    if attribution not in ("ask", "skip"):
        problems.append(f"attribution is {quoted(attribution)}, expected `ask` or `skip`")
    if _lies_in(inputs.workspace, folder):
        problems.append(
            f"shards is {quoted(shards)}, which lies in the checkout, where a change could put "
            "answers of its own; download them to `${{ runner.temp }}/fairgate-shards`"
        )
    elif not folder.is_dir():
        problems.append(
            f"shards is {quoted(str(folder))}, where there is no folder: no part of the run was "
            "downloaded to it, or none was uploaded"
        )
    if problems:
        raise UsageError("; ".join(problems) + "; correct the workflow")
    return folder


def policies_in(text: str) -> list[str]:
    """Return the policies that the input names, each on a line of its own."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _lies_in(workspace: Path, path: Path) -> bool:
    """Return whether a path, or a part of the way to it, is inside a folder."""
    try:
        target = Path(os.path.normpath(Path.cwd() / path.expanduser()))
        return any(part.resolve().is_relative_to(workspace) for part in (target, *target.parents))
    except (OSError, ValueError, RuntimeError):
        return True


def _scratch(environment: Mapping[str, str]) -> Path:
    folder = environment.get("RUNNER_TEMP")
    if not folder:
        raise UsageError("RUNNER_TEMP is not set; this command is for GitHub Actions runners")
    return Path(folder).absolute() / "fairgate"


def _root(workspace: Path, name: str, problems: list[str]) -> Path:
    """Return the folder that paths start at; a link is a problem, its target is named.

    A commit has no files below a link, so a pull request that made the folder one would be judged
    as if its base had neither policy nor baseline.
    """
    root = _inside(workspace, name, "root", problems)
    real = root.resolve()
    if real != root:
        target = quoted(real.relative_to(workspace).as_posix())
        problems.append(f"root is {quoted(name)}, which is or lies behind a link; name {target}")
    return real


def _inside(folder: Path, name: str, option: str, problems: list[str]) -> Path:
    """Return the path below `folder` by its own name; note a problem where it leads out.

    Links are followed to see where it leads, not in what is returned: base commits are asked for
    the name that the workflow gives.
    """
    path = Path(os.path.normpath(folder / name))
    try:
        is_inside = path.is_relative_to(folder) and path.resolve().is_relative_to(folder)
    except (OSError, ValueError, RuntimeError):
        is_inside = False
    if is_inside and not Path(name).is_absolute():
        return path
    problems.append(f"{option} is {quoted(name)}, expected a relative path inside the checkout")
    return folder


def written_folder(folder: Path, inputs: Inputs) -> Path:
    """Return a folder of the action's, when it is about to be written.

    Raises UsageError where a link that code of the change has made could lead out of the workspace
    or the runner's folder.
    """
    within = inputs.workspace if inputs.report_dir else inputs.scratch.parent
    on_the_way = (parent for parent in (folder, *folder.parents) if within in parent.parents)
    inside = folder.iterdir() if folder.is_dir() else ()
    link = next((candidate for candidate in (*on_the_way, *inside) if candidate.is_symlink()), None)
    if link is not None:
        raise UsageError(
            f"report-dir leads to {quoted(link.relative_to(within).as_posix())}, which is a link; "
            "files are written through none; remove the link, or name another folder"
        )
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A message at a line of a file of the repository, or at none."""

    level: Level
    title: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return the workflow command."""
        position = {"file": self.file, "line": str(self.line)} if self.file else {}
        parameters = {**position, "title": self.title}.items()
        written = (
            (name, _data(text).replace(":", "%3A").replace(",", "%2C")) for name, text in parameters
        )
        properties = ",".join(f"{name}={text}" for name, text in written)
        return f"::{self.level} {properties}::{_data(self.message)}"


def annotation_lines(annotations: Sequence[Annotation]) -> Iterator[str]:
    """Yield what to print: at most ten commands of a kind, the rest as plain lines of the log."""
    count: dict[str, int] = {}
    for annotation in annotations:
        count[annotation.level] = count.get(annotation.level, 0) + 1
        if count[annotation.level] <= ANNOTATIONS_PER_KIND:
            yield str(annotation)
        else:
            yield f"fairgate: {annotation.level}: {_short(annotation.message)}"
    for level, number in count.items():
        if number > ANNOTATIONS_PER_KIND:
            more = number - ANNOTATIONS_PER_KIND
            yield f"fairgate: {more} more of kind {level} are in the log and the report"


def _short(text: str) -> str:
    return harmless(text[:MESSAGE_CHARACTERS])


def _data(text: str) -> str:
    return _short(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_outputs(path: str, outputs: Mapping[str, str]) -> None:
    """Append a step's outputs to the runner's file; no value can end its own block."""
    lines = []
    for name, value in outputs.items():
        delimiter = f"fairgate_{secrets.token_hex(16)}"
        if delimiter in value:
            raise StoreError(f"output {name!r}: the value holds its own delimiter; run again")
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    _append(path, "".join(lines))


def append_summary(path: str, text: str) -> None:
    """Append Markdown to the job summary; the caller keeps it within SUMMARY_BYTES."""
    _append(path, f"{text.rstrip()}\n\n")


def _append(path: str, text: str) -> None:
    if not path:
        return
    try:
        with Path(path).open("ab") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        option = "the runner's own settings"
        raise StoreError.of_os_error(error, path=path, option=option) from error

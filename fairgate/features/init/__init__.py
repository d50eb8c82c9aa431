"""`fairgate init`: the files that a repository starts with, from the texts in `templates/`."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted

_SYSTEMS = ("demo", "models", "recorded", "http", "command", "python", "endpoint")
_APPLICATIONS = ("http", "command", "python")
"""Systems for which an application is written: it answers by words that it knows until the user's
takes its place, so that the first run has a verdict."""
_TASKS = ("sentiment", "toxicity")
_NAME_FORM = "lower-case letters, digits, `-` and `_`, a letter first"
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML, or a YAML of before 2009, reads as another value than a text."""
_ANSWERS = "data/answers.jsonl"
"""Where the answers of a recorded system go; written empty, so that the plan can be had first."""
_OTHER_FOLDER = "another folder"


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

    Never overwrites: a file that is there stays as it is, so the command can be run again.
    """
    if not _is_name(name):
        raise UsageError(f"the name is {quoted(name)}, expected {_NAME_FORM}: `rag-fairness`")
    if not yes:
        with _answered():
            name = click.prompt("Name of the policy", default=name, value_proc=_asked_name)
            task = click.prompt("Task", default=task, type=click.Choice(_TASKS))
            system = click.prompt("System under test", default=system, type=click.Choice(_SYSTEMS))
            if system == "recorded" and limit is None:
                asked = "Sources to ask about, each about 30 times (0: all)"
                limit = click.prompt(asked, default=0, type=click.IntRange(0)) or None
    place = _place_in_repository()
    top, root = place or (Path(), "")
    up = "../" * len(Path(root).parts)
    files = starter_files(name=name, task=task, system=system, root=root, limit=limit)
    workflow = workflow_file(name=name, action=action, root=root)
    written = [
        *_write_missing(Path(), files),
        *((up + path, is_new) for path, is_new in _write_missing(top, workflow)),
    ]
    for path, is_new in written:
        click.echo(f"{'wrote' if is_new else 'kept '}  {path}")
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


def _asked_name(name: str) -> str:
    """Return a name that can be one; else it is asked for again."""
    if not _is_name(name):
        raise click.BadParameter(f"expected {_NAME_FORM}, such as rag-fairness")
    return name


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,59}", name) is not None and name not in _WORDS


def _next_steps(policy: str, system: str) -> Iterator[str]:
    if system == "models":
        yield "fairgate export MODEL --output models/my-model"
        yield f"put your documents into data/corpus.jsonl, or name others in {policy}"
    yield f"fairgate check {policy}"
    if system == "recorded":
        yield f"fairgate plan {policy} --output .fairgate/plan.jsonl"
        yield f"put each line to your system and write its answers into {_ANSWERS}"
    if system == "demo":
        yield f"fairgate run {policy} --limit 20 # a first look"
    allowed = " --allow-python" if system == "python" else ""
    yield f"fairgate run {policy} --out .fairgate/first{allowed}"
    yield 'fairgate baseline accept .fairgate/first --reason "first baseline"'


def _rendered(template: str, **values: object) -> str:
    """Return a text of `templates/`; its signs are `<% %>` and `<< >>`, as files hold braces."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (YAML, Python and plain text)
    )  # fmt: skip
    return environment.get_template(f"{template}.j2").render(values)


def starter_files(
    *, name: str, task: str, system: str, root: str = "", limit: int | None = None
) -> dict[str, str]:
    """Return path → content of what the folder needs to begin; paths from the folder.

    `root` is the folder's place in its repository, `services/shop`, and empty where it is the top;
    `limit` sources are asked about, all where it is None.
    """
    from fairgate.metrics.identity import ADVISED

    path = f"policies/{name}.yaml"
    files = {
        path: _rendered(
            "policy.yaml", path=path, name=name, task=task, system=system, limit=limit,
            answers=_ANSWERS, greatest={metric: f"{most:g}" for metric, most in ADVISED.items()},
        ),
        "baselines/README.md": _rendered("README.md"),
        "policies/CODEOWNERS.example": _rendered("CODEOWNERS.example", root=root),
    }  # fmt: skip
    if system == "recorded":
        files[_ANSWERS] = ""
    if system in _APPLICATIONS:
        files["rag_app.py"] = _rendered("rag_app.py", system=system, task=task)
    return files


def workflow_file(*, name: str, action: str, root: str = "") -> dict[str, str]:
    """Return path → content of the workflow, the path from the top of the repository."""
    # Services of one repository may have policies of one name.
    group = "-".join(filter(None, (root.replace("/", "-"), name)))
    text = _rendered("workflow.yml", name=name, action=action, root=root, group=group)
    return {f".github/workflows/{group}.yml": text}


def _place_in_repository() -> tuple[Path, str] | None:
    """Return the top of this folder's git repository and the way from there; None without one.

    Raises UsageError where a workflow could not name the folder.
    """
    from fairgate.io.git import repository_of

    repository = repository_of(Path())
    if repository is None:
        return None
    root = Path.cwd().relative_to(repository.top).as_posix()
    root = "" if root == "." else root
    if not re.fullmatch(r"[\w./-]*", root, re.ASCII):
        raise UsageError(
            f"this folder is {quoted(root)} in its repository; expected only letters, digits, `.`, "
            "`-`, `_` and `/`, so that a workflow can name it: run this in another folder"
        )
    return repository.top, root


def _write_missing(root: Path, files: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Write the files that are not there; yield each path and whether it was written."""
    from fairgate.io.durable import write_text

    for name, text in files.items():
        path = root / name
        is_new = not (path.exists() or path.is_symlink())
        if is_new:
            if not path.parent.resolve().is_relative_to(root.resolve()):
                raise UsageError(
                    f"{path.parent} is a link out of this folder; nothing is written there"
                )
            write_text(path, text, option=_OTHER_FOLDER)
        yield name, is_new

"""`fairgate init`: the files that a repository starts with, from the texts in `templates/`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import quoted
from fairgate.features.init.found import NOTHING, found
from fairgate.terminal.options import EXISTING_FILE, require_terminal

_SYSTEMS = ("demo", "models", "recorded", "http", "command", "python", "endpoint")
_APPLICATIONS = ("http", "command", "python")
"""Systems for which an application is written: it answers by words that it knows until the user's
takes its place, so that the first run has a verdict."""
_TASKS = ("sentiment", "toxicity", "labels", "free", "options")
_SETS = "race, gender, orientation, age"
_NAME_FORM = "lower-case letters, digits, `-` and `_`, a letter first"
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML, or a YAML of before 2009, reads as another value than a text."""
_ANSWERS = "data/answers.jsonl"
"""Where the answers of a recorded system go; written empty, so that the plan can be had first."""
_TERMS = "policies/terms.yaml"
_OTHER_FOLDER = "another folder"
_ASKED = {
    "name": "Name of the policy", "task": "What the system answers",
    "labels": "Its labels, with commas between",
    "questions": "Table of your questions (empty: shipped ones)",
    "terms": "Who asks: sets, files of sets, or phrases such as `A nurse`",
    "system": "System under test", "limit": "Questions to ask, each about 30 times (empty: all)",
}  # fmt: skip


def _name(text: str) -> str:
    """Return a name that can be one; else it is refused, or asked for again."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,59}", text) or text in _WORDS:
        raise click.BadParameter(f"found {quoted(text)}, expected {_NAME_FORM}: `rag-fairness`")
    return text


@click.command(short_help="Write a starter policy, a baselines folder and a workflow.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the answers given as options.")
@click.option(
    "--name", type=_name, metavar="NAME", default="rag-fairness", show_default=True,
    help="Name of the policy.",
)  # fmt: skip
@click.option(
    "--task", type=click.Choice(_TASKS), default="sentiment", show_default=True,
    help="What the system answers: a sentiment, toxic or not, one of --labels, free text whose "
    "tone is compared, or one of a question's options.",
)  # fmt: skip
@click.option("--labels", help="Answers of --task labels, with commas between: `yes, no`.")
@click.option(
    "--questions", type=EXISTING_FILE,
    help="Your questions: a table with a column `text` or `question`; question items for --task "
    "options (default: shipped ones).",
)  # fmt: skip
@click.option(
    "--terms", default=_SETS, show_default=True,
    help="Who asks, with commas between: shipped sets, files of sets, phrases such as `A nurse`.",
)  # fmt: skip
@click.option(
    "--system", type=click.Choice(_SYSTEMS),
    help="What is tested: embedded models, your own ONNX models, recorded answers, or a system of "
    "your own, asked over HTTP, as a program, as a Python function, or a model at an endpoint "
    "(default: http where the folder has a FastAPI app, else demo).",
)  # fmt: skip
@click.option(
    "--action", default="org/fairgate@v1", show_default=True,
    help="The action as the workflow names it; pin it by its commit.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1), metavar="N",
    help="Sources that are asked about, so that there is less to put to a system (default: all).",
)  # fmt: skip
def init(*, yes: bool, action: str, **given: Any) -> int:
    """Write a starter policy, `baselines/`, a CODEOWNERS hint and a workflow into this repository.

    In a folder of a repository the workflow is written at the repository's top, with `root:`. A
    FastAPI app, a Dockerfile, requirements and a corpus in the folder are read for what they say.

    Never overwrites: a file that is there stays as it is, so the command can be run again.
    """
    seen = found(Path())
    given["system"] = given["system"] or ("http" if seen["service"] else "demo")
    if not yes:
        require_terminal("--yes")
        _ask(given)
    name, task = given["name"], given["task"]
    if (task == "labels") != bool(given["labels"]):
        raise UsageError("--task labels needs --labels, and no other task takes them")
    place = _place_in_repository()
    top, root = place or (Path(), "")
    up = "../" * len(Path(root).parts)
    files = starter_files(root=root, seen=seen, **given)
    workflow = workflow_file(name=name, action=action, root=root, seen=seen)
    written = [
        *_write_missing(Path(), files),
        *((up + path, is_new) for path, is_new in _write_missing(top, workflow)),
    ]
    for path, is_new in written:
        click.echo(f"{'wrote' if is_new else 'kept '}  {path}")
    if place is None:
        click.echo("note   the folder is in no git repository; the workflow needs one (`git init`)")
    click.echo(_rendered("next.txt", answers=_ANSWERS, **given))
    return ExitCode.PASS


def _ask(given: dict[str, Any]) -> None:
    """Ask for each option, with what is given as the default."""
    for option in init.params:
        field, kind, known = str(option.name), option.type, given.get(str(option.name))
        task, limits = given["task"], given["system"] == "recorded"
        wanted = {"labels": task == "labels", "terms": task != "options", "limit": limits}
        if field in _ASKED and wanted.get(field, True):
            given[field] = click.prompt(
                _ASKED[field], type=kind, show_default=bool(known),
                default=known or (None if field == "labels" else ""),
                value_proc=lambda text, kind=kind: kind(text) if text else None,
            )  # fmt: skip


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
    *, name: str, root: str = "", seen: Mapping[str, Any] = NOTHING, **given: Any
) -> dict[str, str]:
    """Return path → content of what the folder needs to begin; paths from the folder.

    `root` is the folder's place in its repository, `services/shop`, and empty where it is the top;
    `seen` what was found in it, and `given` the answers of `fairgate init`.
    """
    from fairgate.metrics.identity import ADVISED

    names = [each.strip() for each in (given.get("terms") or _SETS).split(",")]
    phrases = [each for each in names if " " in each and not Path(each).is_file()]
    sets = [each for each in names if each not in phrases] + [_TERMS] * bool(phrases)
    path, system = f"policies/{name}.yaml", given["system"]
    values = {"labels": "", "questions": "", "limit": None, **seen, **given, "name": name}
    files = {
        path: _rendered(
            "policy.yaml", path=path, sets=", ".join(sets), answers=_ANSWERS, **values,
            greatest={metric: f"{most:g}" for metric, most in ADVISED.items()},
        ),
        "baselines/README.md": _rendered("README.md"),
        "policies/CODEOWNERS.example": _rendered("CODEOWNERS.example", root=root),
    }  # fmt: skip
    if phrases:
        files[_TERMS] = _rendered("terms.yaml", phrases=phrases)
    if system == "recorded":
        files[_ANSWERS] = ""
    if system in _APPLICATIONS and not (system == "http" and seen["service"]):
        files["rag_app.py"] = _rendered("rag_app.py", **values)
    return files


def workflow_file(
    *, name: str, action: str, root: str = "", seen: Mapping[str, Any] = NOTHING
) -> dict[str, str]:
    """Return path → content of the workflow, the path from the top of the repository."""
    # Services of one repository may have policies of one name.
    group = "-".join(filter(None, (root.replace("/", "-"), name)))
    text = _rendered("workflow.yml", name=name, action=action, root=root, group=group, **seen)
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

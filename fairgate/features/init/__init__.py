"""`fairgate init`: the files that a repository starts with, from the texts in `templates/`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from fairgate import REPOSITORY
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.wording import listed, quoted
from fairgate.features.init.service import service_in
from fairgate.io.regular import text_of
from fairgate.terminal.options import EXISTING_FILE

_SYSTEMS = ("demo", "models", "recorded", "http", "command", "python", "endpoint")
_APPLICATIONS = ("http", "command", "python")
"""Systems for which an application is written: it answers by words that it knows until the user's
takes its place, so that the first run has a verdict."""
_TASKS = ("free", "sentiment", "toxicity", "labels", "options")
_BUNDLED = ("sentiment", "toxicity", "options")
"""Tasks that the bundled model answers."""
_SETS = "race, gender, orientation, age"
_NAME_FORM = "lower-case letters, digits, `-` and `_`, a letter first"
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""What YAML, or a YAML of before 2009, reads as another value than a text."""
_ANSWERS = "data/answers.jsonl"
"""Where the answers of a recorded system go; written empty, so that the plan can be had first."""
_TERMS = "policies/terms.yaml"
_SOURCES = 25
"""Sources of a starter that scores labels: 1,050 questions."""
_OTHER_FOLDER = "another folder"
_IMAGE = re.compile(r"^FROM python:(3\.(?:1[1-9]|[2-9]\d))\b|^EXPOSE (\d+)", re.MULTILINE)
NOTHING: Mapping[str, Any] = {
    "install": "", "corpus": "",
    "python": "3.11", "port": "8000", "service": "", "env": [], "url": "/ask", "ready": "/",
    "asked": "question", "given": "documents", "answer": "answer", "documents": "documents",
    "lacking": [], "open": {"url": "", "asked": "", "answer": ""}, "notes": [],
}  # fmt: skip
"""What templates are given where nothing is found in a folder."""
ANYBODY = "org"
"""Stands for the owner of a fork or copy of FairGate where none is known."""
_FROM_GITHUB = re.compile(r"(?:https|ssh)://(?:[^/@]*@)?github\.com/([\w-]+)/fairgate(?:\.git)?/?")
_CORPORA = ("corpus", "documents", "notes", "knowledge")


def _name(text: str) -> str:
    """Return a name that can be one. Raises BadParameter."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,59}", text) or text in _WORDS:
        raise click.BadParameter(f"found {quoted(text)}, expected {_NAME_FORM}: `rag-fairness`")
    return text


def _owner(text: str) -> str:
    """Return an account's name as GitHub has them. Raises BadParameter."""
    if not re.fullmatch(r"[A-Za-z0-9](?:-?[A-Za-z0-9_]){0,99}", text):
        raise click.BadParameter(f"found {quoted(text)}, expected an account of GitHub's: `acme`")
    return text


@click.command(short_help="Write a starter policy, a baselines folder and a workflow.")
@click.option(
    "--yes", is_flag=True, hidden=True, expose_value=False, help="Of scripts: nothing is asked."
)
@click.option(
    "--name", type=_name, metavar="NAME", default="rag-fairness", show_default=True,
    help="Name of the policy.",
)  # fmt: skip
@click.option(
    "--task", type=click.Choice(_TASKS), default="sentiment", show_default=True,
    help="What the system answers: sentences (`free`), a sentiment, toxic or "
"not, one of --labels, or one of a question's options.",
)  # fmt: skip
@click.option("--labels", help="Answers of --task labels, separated by commas: `yes, no`.")
@click.option(
    "--questions", type=EXISTING_FILE,
    help="Your questions: a table with a column `text` or `question`, or "
"question items (default: shipped ones).",
)  # fmt: skip
@click.option(
    "--terms", default=_SETS, show_default=True,
    help="Who asks, separated by commas: shipped sets, files of sets, phrases such as `A nurse`.",
)  # fmt: skip
@click.option(
    "--system", type=click.Choice(_SYSTEMS),
    help="What is tested: bundled models, ONNX models, recorded answers, or "
"a system of your own (default: http where the folder has a FastAPI "
"or Flask app, or the bundled models do not answer the task; else "
"demo).",
)  # fmt: skip
@click.option(
    "--owner", type=_owner, metavar="OWNER",
    help="Owner of your fork or copy of FairGate, whose action the workflow "
"uses (default: where it was installed from, else `org`, which you "
"must replace).",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(1), metavar="N",
    help="Sources that are asked about (default: 25 for the bundled models, "
"else all).",
)  # fmt: skip
def init(**options_given: Any) -> int:
    """Write a starter policy, `baselines/`, a CODEOWNERS hint and a workflow into this repository.

    In a subfolder of a repository, the workflow is written at the repository's top, with `root:`.
    Settings are taken from a FastAPI or Flask app, a Dockerfile, requirements and a corpus in the
    folder.

    Never overwrites a file, so the command can be run again.
    """
    seen = found(Path())
    shows = "demo" if options_given["task"] in _BUNDLED else "http"
    options_given["system"] = options_given["system"] or ("http" if seen["service"] else shows)
    options_given["owner"] = options_given["owner"] or own_owner() or REPOSITORY.split("/")[-2]
    name, task, owner = options_given["name"], options_given["task"], options_given.pop("owner")
    if (task == "labels") != bool(options_given["labels"]):
        raise UsageError("--task labels needs --labels, and no other task takes them")
    labels = [
        label.strip().casefold() for label in (options_given["labels"] or "yes, no").split(",")
    ]
    if len(labels) < 2 or not all(labels) or len({*labels}) < len(labels):
        raise UsageError(
            f"--labels names {quoted(options_given['labels'])}; expected two or more different "
            "labels, with commas between: `yes, no`"
        )
    if options_given["system"] == "demo" and task not in _BUNDLED:
        raise UsageError(
            f"the bundled model answers {listed(_BUNDLED, last='and')} alone, so that a run of "
            f"--task {task} would have no verdict: name another --system"
        )
    inside = _place_in_repository()
    top, root = inside or (Path(), "")
    up = "../" * len(Path(root).parts)
    files = starter_files(root=root, seen=seen, owner=owner, **options_given)
    gates_changes = options_given["system"] != "python"
    workflow = workflow_file(name=name, owner=owner, root=root, seen=seen) if gates_changes else {}
    written = [
        *_write_missing(Path(), files),
        *((up + path, is_new) for path, is_new in _write_missing(top, workflow)),
    ]
    for path, is_new in written:
        click.echo(f"{'wrote' if is_new else 'kept '}  {path}")
    is_http = options_given["system"] == "http"
    for note in seen["notes"] if is_http else ():
        click.echo(f"note   {note}")
    if ("rag_app.py", True) in written:
        click.echo("note   rag_app.py is a small example that answers: name your own in its place")
    if not gates_changes:
        click.echo(
            "note   no workflow: a function would run in the process that judges, so pull requests "
            "do not call it; there the system is asked by `command` or `http`"
        )
    elif inside is None:
        click.echo("note   the folder is in no git repository; the workflow needs one (`git init`)")
    if owner == ANYBODY and gates_changes:
        click.echo(
            f"note   in the workflow `{ANYBODY}` stands for the owner of your fork or copy of "
            "FairGate: put it there, for anybody could own that name"
        )
    is_unread = is_http and bool(any(seen["open"].values()) or seen["lacking"])
    is_open = is_unread or options_given["system"] == "endpoint"
    click.echo(_rendered("next.txt", answers=_ANSWERS, is_open=is_open, **options_given))
    return ExitCode.PASS


def _rendered(template: str, **values: object) -> str:
    """Return a text of `templates/`; its signs are `<% %>` and `<< >>`, as files hold braces."""
    import jinja2

    from fairgate.policy.yaml_text import OPEN_VALUE

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (YAML, Python and plain text)
    )  # fmt: skip
    return environment.get_template(f"{template}.j2").render(values, open_value=OPEN_VALUE)


def reads_degrees(system: str, task: str, labels: str | None) -> bool:
    """Tell whether a starter scores labels: of models that run here, labels in an order or two."""
    is_scale = task in ("sentiment", "toxicity") or (
        task == "labels" and len((labels or "").split(",")) == 2
    )
    return is_scale and system in ("demo", "models")


def starter_files(
    *,
    name: str,
    owner: str = ANYBODY,
    root: str = "",
    seen: Mapping[str, Any] = NOTHING,
    **given: Any,
) -> dict[str, str]:
    """Return path → content of what the folder needs to begin; paths from the folder.

    `root` is the folder's place in its repository, `services/shop`, and empty where it is the top;
    `seen` what was found in it, and `given` the options of `fairgate init`. Editors are told the
    schema at the owner's address, where one is known.
    """
    from fairgate.io.tables import table_columns
    from fairgate.policy.assembled import schema_address

    names = [name.strip() for name in (given.get("terms") or _SETS).split(",")]
    phrases = [name for name in names if " " in name and not Path(name).is_file()]
    sets = [name for name in names if name not in phrases] + [_TERMS] * bool(phrases)
    path, system = f"policies/{name}.yaml", given["system"]
    degrees = reads_degrees(system, given["task"], given.get("labels"))
    values = {"labels": "", "questions": "", "limit": None, **seen, **given, "name": name}
    if values["questions"]:
        table_columns(str(values["questions"]))  # a file that no run can read is refused here
    values |= {"degrees": degrees, "limit": values["limit"] or (_SOURCES if degrees else None)}
    known = f"https://github.com/{owner}/fairgate"
    values["schema"] = "" if owner == ANYBODY else schema_address(known)
    files = {
        path: _rendered(
            "policy.yaml", path=path, sets=", ".join(sets), answers=_ANSWERS, **values
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
    *, name: str, owner: str = ANYBODY, root: str = "", seen: Mapping[str, Any] = NOTHING
) -> dict[str, str]:
    """Return path → content of the workflow, the path from the top of the repository."""
    # Services of one repository may have policies of one name.
    group = "-".join(filter(None, (root.replace("/", "-"), name)))
    text = _rendered("workflow.yml", name=name, owner=owner, root=root, group=group, **seen)
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


def found(folder: Path) -> dict[str, Any]:
    """Return the packages to install, Python and port of a Dockerfile, a corpus, a web service."""
    files = {"requirements.txt": "-r requirements.txt", "pyproject.toml": "."}
    install = next((how for name, how in files.items() if (folder / name).is_file()), "")
    seen: dict[str, Any] = {**NOTHING, "install": install}
    tables = (folder / "data" / f"{name}.{end}" for name in _CORPORA for end in ("jsonl", "csv"))
    seen["corpus"] = next((str(path.relative_to(folder)) for path in tables if path.is_file()), "")
    image = folder / "Dockerfile"
    for python, port in _IMAGE.findall(text_of(image, "replace") if image.is_file() else ""):
        seen |= {"python": python} if python else {"port": port}
    for path in (
        path for depth in ("", "*/", "*/*/") for path in sorted(folder.glob(f"{depth}*.py"))
    ):
        place = path.relative_to(folder).as_posix()
        if not re.fullmatch(r"\w[\w./-]*", place, re.ASCII) or place.startswith("test"):
            continue
        if service := service_in(path, folder):
            return seen | service
    return seen


def own_owner() -> str:
    """Return the owner of the fork or copy that pip installed FairGate from; empty: unknown."""
    from fairgate.io.installation import direct_url

    match = _FROM_GITHUB.fullmatch(str(direct_url().get("url")))
    return match[1] if match else ""

"""Papers are named, and statistics stay out of what users read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from fairgate.cli import cli

ROOT = Path(__file__).parents[2]
NUMBERED = re.compile(r"\bP[1-4]\b|\bSPEC\b")
UNKNOWN = re.compile(rf"{NUMBERED.pattern}|control arm|sources distinguish")
STATISTICS = re.compile(
    r"\bP[1-4]\b|\bSPEC\b|\bclustered\b|bootstrap|Wilson|control arm|sources distinguish",
    re.IGNORECASE,
)
"""What a reader of a report cannot know."""
REPORTS = [
    file
    for file in sorted((ROOT / "tests/golden/expected").glob("*/*"))
    if file.name in {"report.md", "comment.md", "console.txt", "report.html", "junit.xml"}
]


def strings(path: Path) -> list[str]:
    """Return the texts of a module that can reach a user: all but its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    own = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(getattr(node, "body", None), list)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    own |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [node.value for node in found if isinstance(node.value, str) and id(node) not in own]


def helps(command: click.Command, context: click.Context) -> list[str]:
    if not isinstance(command, click.Group):
        return [command.get_help(context)]
    found = [command.get_help(context)]
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        found += helps(child, click.Context(child, parent=context, info_name=name))
    return found


def test_messages_descriptions_metrics_and_relations_use_words_of_readers():
    found = [
        (path.relative_to(ROOT).as_posix(), text)
        for path in sorted((ROOT / "fairgate").rglob("*.py"))
        if UNKNOWN.search(path.read_text("utf-8"))
        for text in strings(path)
        if UNKNOWN.search(text)
    ]
    assert not found


def test_help_names_papers():
    found = helps(cli, click.Context(cli, info_name="fairgate"))
    assert len(found) > 20
    assert not [text for text in found if NUMBERED.search(text)]


def test_the_policys_schema_names_papers():
    assert not NUMBERED.search((ROOT / "fairgate/data/policy.schema.json").read_text("utf-8"))


def test_embedded_data_names_papers():
    files = [*(ROOT / "fairgate/data").rglob("*.yaml"), *(ROOT / "fairgate/data").rglob("*.md")]
    assert not [file.name for file in files if NUMBERED.search(file.read_text("utf-8"))]


@pytest.mark.parametrize("file", REPORTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_reports_use_no_word_of_statistics(file):
    text = file.read_text("utf-8")
    shown = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", text)
    assert not STATISTICS.findall(shown)

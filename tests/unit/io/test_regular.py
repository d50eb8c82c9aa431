"""Whatever is read is a regular file: a pipe or a device would be waited for without end."""

import ast
import os
from pathlib import Path

import click
import pytest

import fairgate
from fairgate.cli import cli, main
from fairgate.terminal.options import POLICY_FILE

PACKAGE = Path(fairgate.__file__).parent
OF_THE_PACKAGE_OR_MACHINE = {
    "features/listings/precision.py", "features/onnx_export/calibration.py",
    "features/onnx_export/command.py", "features/onnx_export/agreement.py", "features/record/page.py",
    "io/installation.py", "io/machine.py", "io/regular.py", "onnx/batches.py",
    "policy/definition_files.py", "relations/oracles/words.py", "relations/sentences/phrasings.py",
    "relations/sentences/scripts.py",
    "reports/html.py",
}  # fmt: skip
"""Files that open what is shipped, what the system keeps about itself, or what they have checked."""
WRITING = ("w", "x", "a")


def opens_for_reading(node):
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("read_bytes", "read_text"):
        return isinstance(node.func, ast.Attribute)
    if name != "open" or getattr(getattr(node.func, "value", None), "id", "") in (
        "os",
        "webbrowser",
    ):
        return False
    modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return bool(modes) and not modes[-1].startswith(WRITING)


def test_no_other_code_opens_what_is_read():
    others = {
        f"{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*.py")
        if any(map(opens_for_reading, ast.walk(ast.parse(path.read_text("utf-8")))))
    }
    assert others == OF_THE_PACKAGE_OR_MACHINE


def parameters(command, *way):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), *way, name)
    yield from ((" ".join((*way, each.name)), each.type) for each in command.params)


def test_no_command_takes_another_file():
    files = {name: kind for name, kind in parameters(cli) if isinstance(kind, click.Path)}
    read = {name: kind for name, kind in files.items() if kind.exists and not kind.dir_okay}
    assert len(read) > 15
    assert [n for n, kind in read.items() if not isinstance(kind, type(POLICY_FILE).__base__)] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["table", "named.csv"],
        ["table", "table.csv", "--baseline", "named.csv"],
        ["corpus", "prepare", "named.csv", "--output", "out.jsonl"],
        ["run", "named.csv"],
        ["--relations", "named.csv", "check", "table.csv"],
    ],
)
def test_a_pipe_is_not_waited_for(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("named.csv")
    Path("table.csv").write_text("source,who,score\n" + "s,a,1\ns,b,2\n")
    assert main(arguments) == 2
    assert "is a pipe; expected a regular file" in " ".join(capsys.readouterr().err.split())

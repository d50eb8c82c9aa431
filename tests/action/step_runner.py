"""Runs a composite action's steps as the runner does: expressions, files, `bash -eo pipefail`."""

import contextlib
import functools
import importlib.util
import io
import os
import re
import shutil
import subprocess
from pathlib import Path
from unittest import mock

from ruamel.yaml import YAML

from fairgate.cli import main

_EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


def by_shell(script, folder, environment):
    """Run a step's script as a runner does; return exit code and log."""
    done = subprocess.run(
        [shutil.which("bash"), "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


_GIVEN = dict(os.environ)
_PREPARE = re.compile(r'cd / && python3 -I "\$GITHUB_ACTION_PATH/([\w./]+/prepare\.py)"')
_GATE = re.compile(
    r'exec "\$FAIRGATE_INTERPRETER" -I "\$GITHUB_ACTION_PATH/[\w./]+/gate\.py" (run|merge|comment)'
)


def in_process(script, folder, environment):
    """Do what a step's script starts, without starting it: under a second less for each step.

    Only the command lines of the actions are known. What isolation keeps out (modules of the
    checkout, variables that steer Python) would be kept out here by nothing but the missing start.
    """
    steering = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    assert steering.items() <= _GIVEN.items(), "needs real_steps"
    assert not next(Path(folder).rglob("*.py"), None), "needs real_steps"
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        text = script.read_text()
        if found := _PREPARE.fullmatch(text):
            code = _module(Path(environment["GITHUB_ACTION_PATH"], found[1]).resolve()).main()
        elif found := _GATE.fullmatch(text):
            code = main(["github", found[1]])
        else:
            raise AssertionError(f"a script that only a shell can run: {text}")
    return int(code), out.getvalue() + err.getvalue()


@functools.cache
def _module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Finished:
    def __init__(self, code, log, outputs, summary):
        self.code, self.log, self.outputs, self.summary = code, log, outputs, summary


class StepRunner:
    """A runner for the action in `folder`; jobs run in `workspace`, with `temp` beside it."""

    def __init__(self, folder, workspace, temp, execute):
        self.folder, self.workspace, self.temp = Path(folder), Path(workspace), Path(temp)
        self.execute = execute
        self.action = YAML(typ="safe").load((self.folder / "action.yml").read_text())
        self.token = ""

    def run(self, inputs, environment):
        """Run all steps with `inputs` and return what they left; a failed step ends the run."""
        unknown = set(inputs) - set(self.action["inputs"])
        assert not unknown, unknown
        values = {
            name: inputs.get(name, self._evaluated(str(declared.get("default", "")), {}, {}))
            for name, declared in self.action["inputs"].items()
        }
        steps, log, code, summary = {}, "", 0, ""
        for number, step in enumerate(self.action["runs"]["steps"]):
            assert set(step) <= {"name", "id", "shell", "env", "run"}, (
                "a key the runner below lacks"
            )
            if code:
                break
            files = self.temp / "_runner_file_commands" / str(number)
            files.mkdir(parents=True, exist_ok=True)
            code, said = self._step(step, values, steps, environment, files)
            log += said
            steps[step["id"]] = parse_file(files / "GITHUB_OUTPUT")
            summary += (files / "GITHUB_STEP_SUMMARY").read_text()
        outputs = {
            name: self._evaluated(declared["value"], values, steps)
            for name, declared in self.action["outputs"].items()
        }
        return Finished(code, log, outputs, summary)

    def _step(self, step, inputs, steps, environment, files):
        assert step["shell"] == "bash"
        script = files / "script.sh"
        script.write_text(self._evaluated(step["run"], inputs, steps))
        assert "${{" not in step["run"], "an expression in a script is an injection"
        commands = {
            name: str(files / name)
            for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        }
        for file in commands.values():
            Path(file).write_text("")
        code, log = self.execute(
            script,
            self.workspace,
            {
                **{k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "FAIRGATE_"))},
                **environment, **commands,
                "GITHUB_ACTION_PATH": str(self.folder), "GITHUB_WORKSPACE": str(self.workspace),
                "RUNNER_TEMP": str(self.temp),
                **{k: self._evaluated(str(v), inputs, steps) for k, v in step.get("env", {}).items()},
            },
        )  # fmt: skip
        assert Path(commands["GITHUB_ENV"]).read_text() == "", "the caller's environment is changed"
        assert Path(commands["GITHUB_PATH"]).read_text() == "", "the caller's PATH is changed"
        return code, log

    def _evaluated(self, text, inputs, steps):
        return _EXPRESSION.sub(lambda m: self._value(m[1], inputs, steps), text)

    def _value(self, expression, inputs, steps):
        for part in expression.split("||"):
            names = part.strip().split(".")
            match names:
                case ["inputs", name]:
                    value = inputs[name]
                case ["github", "token"]:
                    value = self.token
                case ["steps", step, "outputs", name]:
                    value = steps.get(step, {}).get(name, "")
                case _:
                    raise AssertionError(f"an expression the runner does not know: {expression}")
            if value:
                return value
        return ""


def parse_file(path):
    simple, blocks = {}, []
    for line in path.read_text().splitlines():
        if not blocks and "=" in line and "<<" not in line.split("=", 1)[0]:
            name, value = line.split("=", 1)
            simple[name] = value
        else:
            blocks.append(line)
    return {**simple, **parse_outputs("\n".join(blocks))}


def parse_outputs(text):
    """Read the runner's file as the runner does."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, delimiter = line.split("<<", 1)
        value = []
        for part in lines:
            if part == delimiter:
                break
            value.append(part)
        found[name] = "\n".join(value)
    return found

"""A feature is its file or folder and its entry in `shipped.py`: without both all else stays.

One more is one file and one entry.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairgate
from fairgate.features.shipped import SHIPPED

PACKAGE = Path(fairgate.__file__).parent
FEATURES = PACKAGE / "features"
FOUND = sorted(
    one.stem
    for one in FEATURES.iterdir()
    if one.suffix == ".py" or (one / "__init__.py").is_file()
    if one.stem not in ("__init__", "shipped")
)
FORMATS = ["md", "html", *(name for feature in SHIPPED for name in feature.formats)]
CALLS = """
import sys
import fairgate
from fairgate.cli import main
assert fairgate.__file__.startswith({house!r}), fairgate.__file__
for call in {calls!r}:
    code = main(call)
    print("code", int(code), "of", *call[:2], flush=True)
assert not [name for name in sys.modules if (name + ".").startswith("fairgate.features.{removed}.")]
"""


TOY = """
import click
from pydantic import Field
from fairgate.reports.blocks import Text
from fairgate.reports.formats import Format
from fairgate.reports.blocks import Section
from fairgate.terminal.options import extended

GREETING = (str, Field(default="", description="What the toy says."))
SHOUTED = Format(id="shouted", file="shouted.txt", render=lambda view: view.word.upper())


@click.command()
def wave():
    click.echo("the toy waves")


def _section(material):
    if greeting := material.options.of_features["greeting"]:
        yield Section(id="toy", title="Toy", blocks=[Text(lines=[greeting])])


SECTION = _section


def loud(run):
    @click.option("--loud", is_flag=True, help="Say it.")
    def called(loud, **options):
        click.echo("LOUD" if loud else "quiet")
        return run.callback(**options)

    return extended(run, called)
"""
ENTRY = """
    Feature(
        id="toy",
        commands={"wave": Command("fairgate.features.toy:wave", "Wave.")},
        extends={"run": "fairgate.features.toy:loud"},
        formats={"shouted": "fairgate.features.toy:SHOUTED"},
        sections={"toy": "fairgate.features.toy:SECTION"},
        policy_keys={"greeting": "fairgate.features.toy:GREETING"},
    ),
)
"""


def house_without(removed, folder):
    """Put the package into a folder, by links, without a feature's folder and entry."""
    features = folder / "fairgate" / "features"
    features.mkdir(parents=True)
    for one in PACKAGE.iterdir():
        if one.name not in ("features", "__pycache__"):
            (folder / "fairgate" / one.name).symlink_to(one)
    for one in (PACKAGE / "features").iterdir():
        if one.stem not in (removed, "shipped", "__pycache__"):
            (features / one.name).symlink_to(one)
    text = (PACKAGE / "features" / "shipped.py").read_text()
    (features / "shipped.py").write_text(without_entry(text, removed) if removed else text)
    return folder


def without_entry(text, removed):
    (shipped,) = [
        one.value
        for one in ast.parse(text).body
        if isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == "SHIPPED"
    ]
    (entry,) = [
        one
        for one in shipped.elts
        for word in one.keywords
        if word.arg == "id" and word.value.value == removed
    ]
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: entry.lineno - 1], *lines[entry.end_lineno :]])


def called(house, removed, *calls, **environment):
    """Call the command line of a house, each time in the same process; return what is printed."""
    code = CALLS.format(house=str(house), calls=[list(call) for call in calls], removed=removed)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(house), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def files(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def test_every_one_has_its_entry():
    assert sorted(feature.id for feature in SHIPPED) == FOUND


@pytest.mark.walk(1)
@pytest.mark.parametrize("removed", FOUND)
def test_without_a_feature_the_gate_writes_the_same_bytes(removed, workspace, tmp_path):
    (feature,) = [one for one in SHIPPED if one.id == removed]
    workspace.answers(lambda key: "negative" if "#race/" in key else "positive")
    gate = ["run", "policy.yaml", "--baseline", "none", "--quiet", "--out", "out", "--format"]
    left = ",".join(name for name in FORMATS if name not in feature.formats)
    assert workspace.run(*gate, left) == 1, workspace.err
    (tmp_path / "out").rename(tmp_path / "whole")

    house = house_without(removed, tmp_path / "house")
    printed = called(house, removed, ["--help"], ["check", "policy.yaml"], [*gate, left])
    codes = [line for line in printed.splitlines() if line.startswith("code ")]
    assert codes == ["code 0 of --help", "code 0 of check policy.yaml", "code 1 of run policy.yaml"]
    helped = [line.split()[0] for line in printed.split("code 0")[0].splitlines() if line.strip()]
    assert not set(feature.commands) & set(helped)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("removed", "name"), [(feature.id, name) for feature in SHIPPED for name in feature.steps]
)
def test_an_input_of_the_action_whose_feature_is_removed_is_refused(removed, name, workspace):
    (workspace.root / "event.json").write_text(json.dumps({"after": "a" * 40}))
    runner = {
        "GITHUB_WORKSPACE": str(workspace.root), "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(workspace.root / "event.json"),
        "GITHUB_REPOSITORY": "org/repository", "GITHUB_SHA": "a" * 40,
        "GITHUB_OUTPUT": str(workspace.root / "outputs"),
        "RUNNER_TEMP": str(workspace.root.parent / "runner"),
        f"FAIRGATE_{name.upper()}": {"shard": "1/2"}[name],
        "FAIRGATE_POLICY": "policy.yaml", "FAIRGATE_CACHE": "",
    }  # fmt: skip
    house = house_without(removed, workspace.root / "house")
    printed = called(house, removed, ["github", "run"], **runner)
    assert f"the input {name} asks for a feature that is not installed here" in printed
    assert "code 2 of github run" in printed
    assert "\nerror\n" in (workspace.root / "outputs").read_text()


def test_a_feature_is_added_by_one_file_and_one_entry(workspace, tmp_path):
    workspace.answers("positive")
    house = house_without("", tmp_path / "house")
    features = house / "fairgate" / "features"
    (features / "toy.py").write_text(TOY)
    text = (features / "shipped.py").read_text()
    (features / "shipped.py").write_text(text.removesuffix(")\n") + ENTRY)

    policy = workspace.policy()
    (tmp_path / "policy.yaml").write_text(policy + "greeting: good morning\n")
    run = ["run", "policy.yaml", "--out", "out", "--baseline", "none", "--loud"]
    refused = tmp_path / "refused.yaml"
    refused.write_text(policy + "greeting: [good morning]\n")
    calls = (["wave"], [*run, "--format", "md,shouted"], ["run", "--help"], ["check", refused.name])
    printed = called(house, "none", ["--help"], *calls)
    assert "`wave`" in printed
    assert "the toy waves\ncode 0" in printed
    assert "LOUD\n" in printed
    assert "--loud" in printed.split("code 0 of run policy.yaml")[1]
    assert f"{FORMATS[-1]}, shouted (default" in " ".join(printed.split())
    assert (tmp_path / "out" / "shouted.txt").read_text() == "PASS"
    assert "good morning" in (tmp_path / "out" / "report.md").read_text()

    assert "code 2 of check" in printed
    assert "greeting" in printed.split("code 0 of run --help")[1]
    assert workspace.run("check", refused.name) == 2
    assert "greeting" in workspace.err

"""A distribution that brings one of each is installed in the tests and used from a policy alone."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairgate.api

TOYS = Path(__file__).parents[1] / "fakes" / "toy_distribution"
INFO = "fairgate_toy-1.0.dist-info"
POLICY = """\
version: 1
name: plugged
constant_answers: allow
system: {parrot: {answer: positive}}
suites:
  - {id: shout, task: sentiment, sources: sources.jsonl, relations: [set-equivalence, toy/shout],
     perturbations: [gender]}
  - {id: ping, kind: ping, questions: [one, two, three, four]}
gates:
  - {metric: asr/generation, suite: shout, where: {category: gender}, max: 0.2}
  - {metric: toy/words, suite: shout, where: {term: louder}, max: 1.5}
  - {metric: toy/refused, report: true}
"""


@pytest.fixture
def folder(tmp_path):
    rows = [json.dumps({"id": f"s{n}", "text": f"Text number {n} is fine."}) for n in range(8)]
    (tmp_path / "sources.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def fairgate_with(distribution, folder, *arguments):
    path = os.pathsep.join([str(distribution), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "fairgate", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def copied(folder, name="lib", **files):
    """Install the toys in a folder of their own, with some files replaced."""
    info = folder / name / INFO
    info.mkdir(parents=True)
    for file in ("METADATA", "entry_points.txt"):
        (info / file).write_text(files.get(file) or (TOYS / INFO / file).read_text())
    code = files.get("code") or (TOYS / "fairgate_toy.py").read_text()
    (folder / name / "fairgate_toy.py").write_text(code)
    return folder / name


def test_an_installed_distribution_brings_one_of_each(folder):
    shouted = fairgate_with(TOYS, folder, "shout", "quiet words")
    assert (shouted.returncode, shouted.stdout) == (0, "QUIET WORDS\n"), shouted.stderr
    biased = POLICY.replace("positive}", "positive, biased: gender/woman}")
    (folder / "policy.yaml").write_text(biased)
    run = fairgate_with(TOYS, folder, "run", "policy.yaml", "--out", "out", "--format", "toy")
    assert run.returncode == 1, run.stderr + run.stdout
    assert (folder / "out" / "toy.txt").read_text() == "plugged"
    record = json.loads((folder / "out" / "run.json").read_text())
    assert record["provenance"]["under_test"] == {"parrot": "positive"}
    assert record["provenance"]["environment"]["plugin fairgate-toy"] == "1.0"
    assert {rule["metric"] for rule in record["rules"]} >= {"toy/words", "toy/refused"}


@pytest.mark.whole
def test_a_baseline_of_another_version_of_a_relation_is_told_apart(folder):
    accepted = "run", "policy.yaml", "--out", "out"
    assert fairgate_with(TOYS, folder, *accepted).returncode == 0
    (folder / "baselines").mkdir()
    accept = fairgate_with(TOYS, folder, "baseline", "accept", "out", "--reason", "first")
    assert accept.returncode == 0, accept.stderr
    newer = copied(folder, METADATA="Metadata-Version: 2.1\nName: fairgate-toy\nVersion: 2.0\n")
    run = fairgate_with(newer, folder, *accepted)
    assert run.returncode == 3, run.stderr + run.stdout
    assert "fairgate-toy 2.0" in run.stdout + run.stderr


POINTS = (TOYS / INFO / "entry_points.txt").read_text()
CODE = (TOYS / "fairgate_toy.py").read_text()


@pytest.mark.walk(3)
@pytest.mark.parametrize(("files", "message"), [
    ({"code": "raise RuntimeError('out of order')\n"}, "RuntimeError: out of order"),
    ({"code": "import sys\nsys.exit(0)\n"}, "SystemExit"),
    ({"code": CODE.replace('id="toy/refused"', 'id="toy/else"')}, "calls itself 'toy/else'"),
    ({"entry_points.txt": POINTS.replace("toy/words", "asr/generation")},
     "there is already a metric of that name"),
    ({"entry_points.txt": POINTS.replace(":LONGER", ":SHORTER")}, "AttributeError"),
    ({"code": CODE.replace('keys: ClassVar[tuple[str, ...]] = ("parrot",)',
                           'keys: ClassVar[tuple[str, ...]] = ("http",)')},
     "needs keys of its own"),
])  # fmt: skip
def test_a_plugin_that_cannot_be_used_is_named_with_its_distribution(folder, files, message):
    run = fairgate_with(copied(folder, **files), folder, "run", "policy.yaml", "--out", "out")
    assert run.returncode == 2, run.stderr + run.stdout
    assert "of fairgate-toy 1.0 cannot be used" in run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert not (folder / "out").exists()


def test_the_names_that_plugins_may_use_are_listed_once_and_are_there():
    tree = ast.parse(Path(fairgate.api.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == fairgate.api._HOMES
    assert sorted(typed) == sorted(fairgate.api.__all__)
    for name in typed:
        assert getattr(fairgate.api, name) is not None
    with pytest.raises(AttributeError, match="no 'Metrik'"):
        fairgate.api.Metrik  # noqa: B018


def test_the_toys_use_names_of_the_api_alone():
    own = [
        node.module
        for node in ast.walk(ast.parse(CODE))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("fairgate")
    ]
    assert own == ["fairgate.api"]

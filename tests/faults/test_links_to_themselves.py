"""What a policy names may be a link to itself, a circle, nothing or a pipe: told in words, whatever reads it."""

import os
import re
import socket

import pytest

from fairgate.cli import main

POLICY = """\
version: 1
name: links
system: {system}
suites:
  - {{id: s, task: {task}, sources: {sources}, perturbations: [{perturbations}], control: paper}}
gates:
  - {{metric: asr/generation, max: 0.2}}
"""
ITEMS = """\
version: 1
name: links
system: {recorded: answers.jsonl}
suites:
  - {id: s, kind: bbq, items: named, settings: [none]}
gates:
  - {metric: accuracy/ambiguous, min: 0.5}
"""
GIVEN = {
    "system": "{recorded: answers.jsonl}", "task": "sentiment", "sources": "sources.jsonl",
    "perturbations": "race",
}  # fmt: skip


def policy(**named):
    return POLICY.format(**{**GIVEN, **named})


ROLES = {
    "answers": policy(system="{recorded: named}"),
    "sources": policy(sources="named"),
    "task": policy(task="named.yaml"),
    "perturbations": policy(perturbations="named.yaml"),
    "corpus": policy(system="{retriever: {corpus: named}, generator: {model: demo-slm}}"),
    "labels": policy(system="{recorded: answers.jsonl, labels: {file: named.json}}"),
    "generator": policy(system="{generator: {model: ./named}}"),
    "items": ITEMS,
}


def itself(place):
    place.symlink_to(place.name)


def circle(place):
    place.symlink_to("other")
    place.with_name("other").symlink_to(place.name)


def below_itself(place):
    place.symlink_to(f"{place.name}/inner")


def nothing(place):
    place.symlink_to("nowhere")


def too_long(place):
    place.symlink_to("x" * 300)


def folder_with_a_circle(place):
    place.mkdir()
    (place / "config.json").symlink_to("config.json")


def pipe(place):
    os.mkfifo(place)


def device(place):
    place.symlink_to("/dev/zero")


def socket_of_a_program(place):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(place))


NEVER_ENDING = (pipe, device, socket_of_a_program)
SHAPES = (itself, circle, below_itself, nothing, too_long, folder_with_a_circle, *NEVER_ENDING)


@pytest.mark.walk(36)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "command",
    [("run", "--quiet"), ("check",), ("plan",), ("run", "--quiet", "--root", ".")],
    ids=["run", "check", "plan", "confined"],
)
def test_it_is_an_error_in_words(tmp_path, monkeypatch, capsys, command, role, shape):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "policy.yaml").write_text(ROLES[role])
    (tmp_path / "sources.jsonl").write_text('{"id": "s1", "text": "Fine."}\n')
    (tmp_path / "answers.jsonl").touch()
    for name in ("named.yaml", "named.json", "named"):
        if name in ROLES[role]:
            shape(tmp_path / name)
            break
    name, *options = command
    code = main([name, "policy.yaml", *options])
    said = capsys.readouterr().err
    assert "internal error" not in said
    is_asked = name == "run" or role not in ("generator", "answers", "corpus")
    assert code in ((2, 4) if is_asked else (0, 2, 4)), said
    is_out = shape is device and "--root" in options
    if shape in NEVER_ENDING and code and not is_out:
        assert code == 2, said
        assert re.search("is a (pipe|device|socket)", said)


@pytest.mark.parametrize("shape", [itself, circle, nothing])
@pytest.mark.parametrize("named", ["policy.yaml", "baselines/small.json", "out", "cache"])
def test_so_it_is_where_results_and_baselines_are(tmp_path, monkeypatch, capsys, named, shape):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRGATE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "baselines").mkdir()
    (tmp_path / "policy.yaml").write_text(policy())
    (tmp_path / "sources.jsonl").write_text('{"id": "s1", "text": "Fine."}\n')
    (tmp_path / "answers.jsonl").touch()
    place = tmp_path / named
    if os.path.lexists(place):
        place.unlink()
    shape(place)
    main(["run", "policy.yaml", "--quiet", "--out", "out"])
    assert "internal error" not in capsys.readouterr().err

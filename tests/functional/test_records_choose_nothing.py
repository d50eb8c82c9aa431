"""A run's record comes from anywhere: it never chooses what is run, or where results are written."""

import hashlib
import json
import shutil
import subprocess

import click
import pytest

from fairgate.cli import cli

RUN = "downloaded/run"
VERBS = {
    "rescore": ["rescore", RUN],
    "explain": ["explain", RUN, "s0#gender/woman"],
    "baseline accept": ["baseline", "accept", RUN, "--reason", "x"],
    "baseline anchor": ["baseline", "anchor", RUN, "--reason", "x"],
}
"""They take the policy from `--policy` or the checkout."""
WITH_POLICY = {
    "plan": ["plan", "policy.yaml", "--after", RUN],
    "power": ["power", "policy.yaml", "--run", RUN],
    "record": ["record", RUN, "--policy", "policy.yaml", "--out", "record.json"],
}
"""They name their policy themselves."""
PARTS_OF_A_RUN = {"merge"}
"""Reads parts by the policy that it names; `test_shards` forges those."""


def leaves(command, path=()):
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), (*path, name))


def test_every_verb_that_reads_a_folder_of_a_run_is_walked():
    reading = {
        name
        for name, command in leaves(cli)
        for parameter in command.params
        if isinstance(parameter.type, click.Path)
        and (parameter.type.exists, parameter.type.file_okay) == (True, False)
        and parameter.name != "root"
    }
    # `comment` posts a text of the run's folder, where it is told to.
    others = {"github run", "comment"}
    assert reading - others == {*VERBS, *WITH_POLICY, *PARTS_OF_A_RUN}


@pytest.fixture
def downloaded(workspace):
    """A run of somebody else in a folder of its own, beside the policy of this checkout."""
    lenient = workspace.policy().replace("max: 0.2,", "max: 0.9,")
    workspace.policy(
        gates="  - {metric: asr/generation, max: 0.2, regression: 0.02, budget: 0.1}\n"
    )
    assert workspace.gate("positive", out="honest") == 0, workspace.err
    workspace.accept("honest", "--output", "base.json")
    root = workspace.root
    (root / "downloaded").mkdir()
    (root / "honest").rename(root / RUN)
    for name in ("before", "after"):
        (root / name).mkdir()
        for file in ("policy.yaml", "sources.jsonl", "answers.jsonl"):
            shutil.copy(root / file, root / name / file)

    def forged(path):
        """Have the record name a policy, and the folder's hashes fit; return where it may lie."""
        record = root / RUN / "run.json"
        found = json.loads(record.read_text())
        found["provenance"]["policy_path"] = path
        record.write_text(json.dumps(found))
        parts = root / RUN / "parts.json"
        listed = json.loads(parts.read_text())
        listed["parts"]["run.json"] = hashlib.sha256(record.read_bytes()).hexdigest()
        parts.write_text(json.dumps(listed))

    workspace.forged, workspace.lenient = forged, lenient
    return workspace


def content(*folders):
    return {
        path: path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cache" not in path.parts and ".git" not in path.parts
    }


PLACES = {
    "in the run": f"{RUN}/policy.yaml",
    "beside the run": "downloaded/policies/policy.yaml",
    "another folder that came along": "other/policy.yaml",
    "by a way around": f"{RUN}/../policies/../policy.yaml",
    "elsewhere": "{outside}/policy.yaml",
    "above": "../outside/policy.yaml",
    "a link": "linked.yaml",
    "through a linked folder": "policies/policy.yaml",
    "a folder below our policies": "policies/more/policy.yaml",
}


def test_a_path_that_is_none_is_refused_as_such(downloaded):
    loop = downloaded.root / "loop.yaml"
    loop.symlink_to(loop)
    for path in ("p" * 5000, f"{'p' * 300}/policy.yaml", "loop.yaml", "policy.yaml/policy.yaml"):
        downloaded.forged(path)
        for verb, arguments in VERBS.items():
            assert downloaded.run(*arguments) == 2, (path[:20], verb, downloaded.said[-300:])
            assert "--policy" in downloaded.err, (path[:20], verb)


@pytest.mark.whole
@pytest.mark.parametrize("is_checkout", [False, True])
def test_a_record_never_chooses_the_policy(downloaded, tmp_path_factory, is_checkout):
    root, wrong = downloaded.root, []
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    if is_checkout:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "policy.yaml", "sources.jsonl"], cwd=root, check=True)
    for name, template in PLACES.items():
        path = template.format(outside=outside)
        if name == "a link":
            (root / path).symlink_to(outside / "policy.yaml")
        elif name == "through a linked folder":
            (root / "policies").symlink_to(outside)
        else:
            if (root / "policies").is_symlink():
                (root / "policies").unlink()
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(downloaded.lenient)
        (outside / "policy.yaml").write_text(downloaded.lenient)
        for file in ("sources.jsonl", "answers.jsonl"):
            for folder in {(root / path).parent, outside} - {root}:
                shutil.copy(root / file, folder / file)
        downloaded.forged(path)
        before = content(root, outside)
        for verb, arguments in VERBS.items():
            code = downloaded.run(*arguments)
            if code != 2 or "name the policy with --policy" not in downloaded.said:
                wrong.append((name, verb, code, downloaded.said[-300:]))
            if (after := content(root, outside)) != before:
                wrong.append((name, verb, "wrote", sorted(after.keys() - before)))
                before = after
            assert downloaded.run(*arguments, "--policy", "policy.yaml") == 0, downloaded.err
            for file in content(root, outside).keys() - before.keys():
                file.unlink()
            before = content(root, outside)
    assert wrong == []


@pytest.mark.whole
def test_a_verb_that_names_its_policy_reads_none_that_a_record_names(downloaded):
    wrong = []
    for verb, arguments in WITH_POLICY.items():
        downloaded.forged("policy.yaml")
        usual = downloaded.run(*arguments), downloaded.out
        assert usual[0] == 0, (verb, downloaded.said)
        before = content(downloaded.root).keys()
        paths = (f"{RUN}/lax.yaml", "/dev/full", "a\0b", 7)
        if verb == "record":
            paths = paths[:-1]  # it quotes the path, which has to be a text
        for path in paths:
            (downloaded.root / RUN / "lax.yaml").write_text("no: policy")
            downloaded.forged(path)
            if (downloaded.run(*arguments), downloaded.out) != usual:
                wrong.append((verb, path, downloaded.said[-300:]))
        if content(downloaded.root).keys() - before - {downloaded.root / RUN / "lax.yaml"}:
            wrong.append((verb, "wrote", content(downloaded.root).keys() - before))
    assert wrong == []


@pytest.mark.walk(2)
@pytest.mark.parametrize("path", ["policy.yaml", "./policy.yaml", "{root}/policy.yaml"])
def test_a_policy_of_the_checkout_is_found_by_its_record(downloaded, path):
    downloaded.forged(path.format(root=downloaded.root))
    for arguments in VERBS.values():
        assert downloaded.run(*arguments) == 0, downloaded.err


def test_a_policy_in_version_control_is_found_wherever_it_lies(downloaded):
    root = downloaded.root
    service = root / "services" / "shop"
    service.mkdir(parents=True)
    for file in ("policy.yaml", "sources.jsonl", "answers.jsonl"):
        shutil.copy(root / file, service / file)
    downloaded.forged("services/shop/policy.yaml")
    assert downloaded.run(*VERBS["rescore"], "--root", ".") == 2
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert downloaded.run(*VERBS["rescore"]) == 2
    subprocess.run(["git", "add", "services"], cwd=root, check=True)
    assert downloaded.run(*VERBS["rescore"]) == 0, downloaded.err
    # A repository that came with the run is not this checkout.
    subprocess.run(["git", "init", "-q", "downloaded"], cwd=root, check=True)
    shutil.copytree(service, root / "downloaded" / "shop")
    subprocess.run(["git", "add", "shop"], cwd=root / "downloaded", check=True)
    downloaded.forged("downloaded/shop/policy.yaml")
    assert downloaded.run(*VERBS["rescore"]) == 2


def test_results_are_not_written_through_a_link_that_came_with_the_run(downloaded):
    root = downloaded.root
    (root / "elsewhere").mkdir()
    (root / RUN / "rescored").symlink_to(root / "elsewhere")
    assert downloaded.run(*VERBS["rescore"]) == 2
    assert "is a link, which came with the run" in downloaded.said
    assert [*(root / "elsewhere").iterdir()] == []

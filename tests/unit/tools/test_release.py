"""The repository's owner stands in one place: every other file says the same, and one command sets it."""

import json
import re
import shutil
import subprocess

import pytest
from release import ROOT, owner_of, set_owner, tracked

from fairgate import REPOSITORY
from fairgate.features.init import ANYBODY, starter_files
from fairgate.policy.assembled import schema_address

NAMED = re.compile(
    r"(?:github(?:usercontent)?\.com/|uses: |`(?!skills/))([\w-]+)/fairgate(?![\w-])"
)


def named(root):
    """Return every owner that a file names, by file."""
    found = {}
    for file in tracked(root):
        for owner in NAMED.findall(file.read_text("utf-8", "replace")):
            found.setdefault(owner, set()).add(file.relative_to(root).as_posix())
    return found


@pytest.mark.whole
def test_every_file_names_the_owner_that_the_package_names():
    assert named(ROOT).keys() == {owner_of()}, named(ROOT)
    assert len(named(ROOT)[owner_of()]) > 12
    assert f"https://github.com/{owner_of()}/fairgate" == REPOSITORY


@pytest.fixture
def copy(tmp_path):
    """A repository of the files that name an owner."""
    for file in (*(ROOT / name for name in named(ROOT)[owner_of()]), ROOT / "fairgate/__init__.py"):
        place = tmp_path / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    return tmp_path


def test_one_command_sets_it_everywhere(copy):
    changed = set_owner("acme-2", copy)
    assert len(changed) > 12
    assert named(copy).keys() == {"acme-2"}
    assert owner_of(copy) == "acme-2"
    assert set_owner("acme-2", copy) == []


@pytest.mark.walk(2)
@pytest.mark.parametrize("owner", ["", "-a", "a/b", "a b", 'a"; rm', "x" * 40])
def test_what_is_no_account_is_refused(copy, owner):
    with pytest.raises(SystemExit, match="expected an account"):
        set_owner(owner, copy)
    assert owner_of(copy) == owner_of()


def test_editors_find_the_schema_at_one_address():
    schema = json.loads((ROOT / "fairgate/data/policy.schema.json").read_text())
    entry = json.loads((ROOT / ".github/schemastore.json").read_text())
    assert schema["$id"] == schema_address() == entry["url"]
    given = {"name": "p", "system": "demo", "task": "sentiment"}
    first = starter_files(owner="acme", **given)["policies/p.yaml"].splitlines()[0]
    assert (
        first
        == f"# yaml-language-server: $schema={schema_address('https://github.com/acme/fairgate')}"
    )
    assert "yaml-language-server" not in starter_files(owner=ANYBODY, **given)["policies/p.yaml"]

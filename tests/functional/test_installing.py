"""What is told to install: nothing by a name alone that an index would answer, into an empty place."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from fairgate.io.installation import requirement

ROOT = Path(__file__).parents[2]
FRESH = {"cpu", "cuda", "export"}
"""Extras that environments begin with; others are added where FairGate is, which pip keeps."""
TEXTS = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "fairgate").rglob("*.py")]


def test_no_text_names_a_package_of_an_index_for_a_fresh_environment():
    found = [
        (path.name, extra)
        for path in TEXTS
        for extra, rest in re.findall(
            r"pip install '?fairgate(\[[\w,]+\])?([^\n]*)", path.read_text()
        )
        if " @ " not in rest and (extra.strip("[]") in FRESH or not extra)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        (
            {
                "url": "https://github.com/acme/fairgate",
                "vcs_info": {"vcs": "git", "commit_id": "c0"},
            },
            "fairgate[export] @ git+https://github.com/acme/fairgate@c0",
        ),
        ({"url": "file:///home/me/fair%20gate", "dir_info": {}}, "/home/me/fair gate[export]"),
        (
            {"url": "file:///tmp/fairgate-1.whl", "archive_info": {}},
            "fairgate[export] @ file:///tmp/fairgate-1.whl",
        ),
        ({}, "fairgate[export] @ git+https://github.com/org/fairgate@COMMIT"),
    ],
)
def test_another_environment_gets_what_this_one_has(monkeypatch, noted, expected):
    told = type("Told", (), {"read_text": lambda self, name: json.dumps(noted)})()
    monkeypatch.setattr("fairgate.io.installation.distribution", lambda name: told)
    assert requirement("export") == expected


def test_a_package_that_is_not_installed_is_no_error(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("fairgate.io.installation.distribution", missing)
    assert "org/fairgate@COMMIT" in requirement("cpu")

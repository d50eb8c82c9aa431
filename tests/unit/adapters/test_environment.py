"""Versions by the names of folders, against `importlib.metadata`."""

import sys
from importlib import metadata

from fairgate.adapters.environment import installed_versions


def test_every_package_here_has_the_version_that_its_metadata_says():
    names = {found.name for found in metadata.distributions() if found.files is not None}
    assert {"numpy", "pydantic", "click"} <= names
    found = installed_versions(names)
    assert {name: found.get(name) for name in names} == {
        name: metadata.version(name) for name in names
    }


def test_the_first_place_counts_and_spellings_of_a_name_are_one(tmp_path, monkeypatch):
    for place, folder in (
        ("one", "Some_Package-1.0.dist-info"),
        ("two", "some_package-2.0.dist-info"),
        ("two", "other.package-3.0+cpu.dist-info"),
        ("two", "nameless.dist-info"),
        ("two", "module-4.0"),
    ):
        (tmp_path / place / folder).mkdir(parents=True)
    (tmp_path / "archive.zip").write_bytes(b"")
    places = [tmp_path / "absent", tmp_path / "archive.zip", tmp_path / "one", tmp_path / "two"]
    monkeypatch.setattr(sys, "path", [str(place) for place in places])
    asked = ["some-package", "Other-Package", "nameless", "module", "numpy"]
    assert installed_versions(asked) == {"some-package": "1.0", "Other-Package": "3.0+cpu"}


def test_the_current_folder_is_searched_as_python_does(tmp_path, monkeypatch):
    (tmp_path / "here-1.dist-info").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [""])
    assert installed_versions(["here"]) == {"here": "1"}

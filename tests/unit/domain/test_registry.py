"""A registry reads the file of an entry when the entry is asked for, and names what is wrong."""

import sys

import pytest

from fairgate.domain.errors import UsageError
from fairgate.domain.registry import Registry
from fairgate.relations.catalogue import RELATIONS


@pytest.fixture
def toys(tmp_path, monkeypatch):
    folder = tmp_path / "toy_entries"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("class One:\n    id = 'one'\n")
    (folder / "two.py").write_text("class Two:\n    id = 'another'\n")
    (folder / "rows.py").write_text("from .one import One\nTABLE = {'one': One()}\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield Registry("toy", package="toy_entries", locations={"one": "one:One", "two": "two:Two"})
    for name in [name for name in sys.modules if name.startswith("toy_entries")]:
        del sys.modules[name]


def test_names_are_known_before_any_file_is_read(toys):
    assert toys.ids == ("one", "two")
    assert "two" in toys
    assert len(toys) == 2
    assert "toy_entries" not in sys.modules
    assert toys["one"].id == "one"
    assert toys["one"] is toys.get("one")
    assert "toy_entries.two" not in sys.modules


def test_an_entry_may_be_a_row_of_a_table(toys):
    of_table = Registry("toy", package="toy_entries", locations={"one": "rows:TABLE"})
    assert "toy_entries.rows" not in sys.modules
    assert of_table["one"] is sys.modules["toy_entries.rows"].TABLE["one"]


def test_an_entry_with_another_id_than_its_line_is_refused(toys):
    with pytest.raises(ValueError, match="toy 'two' calls itself 'another'"):
        list(toys)


def test_what_is_in_no_line_is_no_entry(toys):
    assert toys.get("three") is None
    assert "three" not in toys
    with pytest.raises(UsageError, match="no toy is called"):
        toys["three"]


def test_the_shipped_relations_are_called_as_their_lines_say():
    assert tuple(relation.id for relation in RELATIONS) == RELATIONS.ids

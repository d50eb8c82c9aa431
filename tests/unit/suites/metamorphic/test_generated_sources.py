"""Generated cases as sources of a suite: their attributes are read back, whole or not at all."""

import json

import pytest
from fakes.attributes import uses

from fairgate.domain.errors import DataError
from fairgate.domain.executions import CorpusSpec
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.relations.frames import realise
from fairgate.suites.metamorphic.sources import GeneratedCase, case_row, read_sources

FRAME = "{A person} asks for advice on {their} work."
HEADER = {"fairgate-cases": 1, "generator": "genfair"}


def a_row(**changed):
    stated = uses("ethnicity/asian adjective negated", "family-status/no-children clause")
    found = realise(FRAME, stated)
    shown = {"template": "advice", "frame": FRAME, "attributes": found.attributes}
    return case_row(GeneratedCase(id="g-1", text=found.text, **shown)) | changed


def read(tmp_path, *rows):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return read_sources(CorpusSpec(path=str(path)), None, bundled_dimensions)


def test_attributes_come_back_as_they_were(tmp_path):
    (source,) = read(tmp_path, HEADER, a_row())
    assert source.text == "A non-Asian person who has no children asks for advice on their work."
    stated = [source.text[each.start : each.end] for each in source.attributes]
    assert stated == ["non-Asian", "has no children"]
    assert realise(source.frame, source.attributes).text == source.text


def test_other_tables_have_no_attributes_whatever_their_columns(tmp_path):
    (source,) = read(tmp_path, {"id": "1", "text": "x", "frame": "a window", "attributes": "wood"})
    assert (source.frame, source.attributes) == ("", ())


def test_a_row_without_attributes_may_stand_among_generated_ones(tmp_path):
    sources = read(tmp_path, HEADER, a_row(), {"id": "own", "text": "Anything."})
    assert [len(source.attributes) for source in sources] == [2, 0]


def changed_attribute(**changed):
    row = a_row()
    row["attributes"][0] |= changed
    return row


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (a_row(text="A non-Asian person."), "but frame and attributes give"),
        (a_row(frame="{A persn]"), "a brace without its partner"),
        (a_row(frame="Nothing."), "the frame has no slot for 'ethnicity'"),
        (a_row(attributes=None), "`attributes` nothing; expected a text with"),
        (a_row(attributes=["x"]), r"attributes\[0\]: found 'x' \(text\); expected an object"),
        (changed_attribute(dimension="ethnicty"), "did you mean `ethnicity`"),
        (changed_attribute(value="asia"), "'ethnicity' has no value 'asia'; did you mean `asian`"),
        (changed_attribute(form="verb"), r"`form` is 'verb' \(text\); expected `adjective`, `n"),
        (changed_attribute(manner="loud"), r"`manner` is 'loud' \(text\); expected `plain`"),
        (changed_attribute(start=1), r"attributes\[0\]: span 1 to 11; 'ethnicity' spans 2"),
        (changed_attribute(end=True), "expected two whole numbers"),
        (changed_attribute(colour="red"), "unknown key 'colour'"),
        (changed_attribute(dimension=3), "`dimension` is 3; expected a name"),
    ],
)
def test_rows_whose_parts_disagree_are_refused_with_their_line(tmp_path, row, message):
    with pytest.raises(DataError, match=rf"cases.jsonl:2: .*{message}"):
        read(tmp_path, HEADER, row)


def test_a_header_of_a_later_version_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cases.jsonl:1: `fairgate-cases` is 2; expected 1"):
        read(tmp_path, {"fairgate-cases": 2}, a_row())

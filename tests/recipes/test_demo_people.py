"""The embedded cases about people are what their recipe writes, and their policy runs on them."""

from __future__ import annotations

import make_demo_people

from fairgate.domain.executions import CorpusSpec
from fairgate.policy.attribute_files import embedded_dimensions
from fairgate.suites.metamorphic.sources import read_sources

FILE = make_demo_people.SOURCES / "demo-people.jsonl"


def test_the_file_is_what_the_recipe_writes():
    assert FILE.read_text(encoding="utf-8") == "\n".join(make_demo_people.lines()) + "\n"


def test_every_case_states_its_attributes():
    sources = read_sources(CorpusSpec(path=str(FILE)), None, embedded_dimensions)
    assert len(sources) == make_demo_people.COUNT
    for source in sources:
        stated = [use.dimension.id for use in source.attributes]
        assert stated == list(make_demo_people.STATED)

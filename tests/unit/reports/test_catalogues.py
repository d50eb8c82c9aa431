"""A test adds a section and a format through the catalogues, without editing the package."""

from unittest import mock

import pytest
from fakes.planted import Bench, Plant, policy_of

import fairgate.cli  # noqa: F401 (which finds the formats of features)
from fairgate.reports.blocks import (
    CaseItem,
    CaseList,
    Column,
    KeyValues,
    Kind,
    Range,
    RangeChart,
    ReportOptions,
    Row,
    Section,
    Span,
    Table,
    Text,
    code,
    command,
    name,
)
from fairgate.reports.console import render_console
from fairgate.reports.figures import Figure
from fairgate.reports.formats import chosen
from fairgate.reports.html import render_html
from fairgate.reports.markdown import render_comment, render_report
from fairgate.reports.present import SECTIONS, present

VALUE = Figure(shown="12.0 %", interval="1.0 … 20.0", value=0.12, bounds=(0.01, 0.2))
HOSTILE = "<img src=x>@octocat|`x`"
CASE = CaseItem(title="kind-case", text=Span(HOSTILE, Kind.QUOTE), facts=[], command=code("k"))
EVERY_KIND = (
    Text(lines=["kind-text"]),
    KeyValues(rows=[("kind-key", name(HOSTILE))]),
    Table(label="kind-table", columns=[Column(head="a")], rows=[Row(cells=["kind-cell"])]),
    RangeChart(label="kind-range", rows=[Range(name="kind-ranged", now=VALUE)], head="x"),
    CaseList(cases=[CASE]),
)
NAMES = ("kind-text", "kind-key", "kind-cell", "kind-ranged", "kind-case")


def toy(material):
    yield Section(id="toy", title="Toy", blocks=EVERY_KIND, in_console=True)


def view():
    # A limit that holds is not what is looked at: a failed gate's comment has all sections.
    policy = policy_of()
    bench = Bench(policy=policy, sources=10, sets=("gender",))
    return present(bench.run(Plant(biased={"A man": 0.9})), ReportOptions())


@pytest.mark.parametrize("render", [render_report, render_comment, render_html, render_console])
def test_every_renderer_draws_every_kind_of_block_of_a_registered_section(render):
    with mock.patch("fairgate.reports.present.SECTIONS", (*SECTIONS, toy)):
        text = render(view())
    assert [one for one in NAMES if one not in text] == []
    assert "<img" not in text or render is render_console
    assert "toy" not in {section.id for section in view().sections}


def test_formats_that_later_commands_read_are_always_written():
    assert [one.id for one in chosen("sarif")] == ["json", "rows", "sarif"]
    assert [one.id for one in chosen("")] == ["md", "html", "json", "rows"]
    assert [one.id for one in chosen("html, json,junit")] == ["html", "json", "rows", "junit"]


def test_a_command_on_the_console_can_be_copied():
    long = "fairgate baseline accept runs/with-a-long-name --reason 'a reason of many words here'"

    def section(material):
        blocks = [Text(lines=[["Do " * 20, command(long)]])]
        yield Section(id="x", title="x", blocks=blocks, in_console=True)

    with mock.patch("fairgate.reports.present.SECTIONS", (*SECTIONS, section)):
        assert long in render_console(view())

"""What is documented is what the code says: reference pages are generated and compared."""

import json
import re
from pathlib import Path

import click
import pictures
import pytest
from command_page import command_page, leaves, line, options
from policy_page import PolicyPage, keys_of_the_schema
from ruamel.yaml import YAML

from fairgate.cli import cli
from fairgate.domain.cases import Source
from fairgate.domain.wording import listed
from fairgate.features.listings.precision import default_of, precision_of
from fairgate.features.record import Record
from fairgate.metrics.catalogue import METRICS
from fairgate.relations.catalogue import RELATIONS
from fairgate.reports.findings import Document, Finding

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MADE = "<!-- generated: `make docs`; a test compares it with the code -->\n\n"


def test_command_line_page(check_golden):
    page = command_page()
    check_golden(REFERENCE / "command-line.md", MADE + page)
    stated = {
        option
        for name, context in leaves(cli, click.Context(cli))
        for option in options(name, context)
    }
    assert all(page.count(line(option)) == 1 for option in stated)
    assert page.count("- `--") == len(stated) + 3, "with those of `fairgate` itself"


@pytest.mark.parametrize(("name", "model"), [("record", Record), ("output", Document)])
def test_schemas_of_what_is_written(check_golden, name, model):
    schema = json.dumps(model.model_json_schema(), indent=1) + "\n"
    check_golden(ROOT / "fairgate" / "data" / f"{name}.schema.json", schema)


def notes_of(metric):
    """Return what of a metric is not usual: what is better, its range; and whose definition it is."""
    name = metric.defined_by.partition(",")[0]
    bounds = f"{metric.least:g}…{metric.greatest:g}"
    usual = {"lower", "0…1", "FairGate"}
    notes = [each for each in (metric.better, bounds, name) if each not in usual]
    return f" ({', '.join(notes)})" if notes else ""


def test_metrics_page(check_golden):
    lines = [MADE, "# Metrics\n\n"]
    lines.append(
        "Rates are fractions in policies and records and shown times 100 in reports. Headings name the\n"
        "dimensions for `where`. In brackets stands what is not usual (lower is better, from 0 to 1) and\n"
        "[whose definition](glossary.md#papers) it is, if not FairGate's. A bound at the end of the range\n"
        "is an error.\n"
    )
    for dimensions in dict.fromkeys(one.dimensions for one in METRICS):
        lines.append(f"\n## {f'By {listed(dimensions)}' if dimensions else 'Of whole suites'}\n\n")
        lines += [
            f"- `{m.id}`: {m.title}{notes_of(m)}\n" for m in METRICS if m.dimensions == dimensions
        ]
    page = "".join(lines)
    check_golden(REFERENCE / "metrics.md", page)
    assert sorted(re.findall(r"^- `(.*?)`", page, re.MULTILINE)) == sorted(m.id for m in METRICS)


(SAMPLE,) = RELATIONS["genfair/mr2-removal-all"].EXAMPLES


def sent(relation):
    """Return a source and its follow-ups; relations of attributes share one source."""
    (first, *_) = relation.EXAMPLES
    example = SAMPLE if first.attributes else first
    given = {"frame": example.frame, "attributes": example.attributes, "pairs": first.pairs,
             "document": first.document}  # fmt: skip
    source = Source(id="s", text=example.text, **given)
    found = relation.follow_ups(source, first.sets)
    return relation.source_text(source), [
        each.conversation for each in found if not each.inapplicable
    ]


def changed(relation):
    """Return what a relation changes: its description up to the sentence about the follow-up."""
    sentences = re.findall(r".+?[.:;](?= |$)", relation.description)
    (last, *_) = [n for n, each in enumerate(sentences) if "follow-up" in each]
    return "".join(sentences[: last + 1]).rstrip(":;.")


def relation_lines():
    """Yield a line for each relation; its source where it is another, but for written pairs."""
    before = None
    for relation in RELATIONS:
        source, follow_ups = sent(relation)
        is_written = bool(relation.EXAMPLES[0].pairs)
        yield "" if source == before or is_written else f"\n*{source}*\n\n"
        before = source
        example = "" if is_written else f" → *{follow_ups[0]}*"
        notes = ["advisory"] if default_of(relation).startswith("advisory") else []
        measured = precision_of(relation.id)
        notes += [f"precision {measured.partition(' ')[0]}"] if "(" in measured else []
        note = f" ({', '.join(notes)})" if notes else ""
        yield f"- `{relation.id}`: {changed(relation)}.{example}{note}\n"


RELATIONS_HEAD = """\
# Metamorphic relations

What each relation changes, with a source and the first follow-up that is sent. A violation counts in every rule that
names its metric, unless the relation is advisory; `meta-fair/mr1` to `mr7` need a judge. *Precision* is the share of the violations reported on labelled
answers that are real differences: how well answers are read, not whether a difference in your system is unfair.
`fairgate relations explain ID` names the paper, the oracle, where the relation does not hold, and examples.
[Papers](glossary.md#papers).
"""


def test_relations_page(check_golden):
    page = "".join([MADE, RELATIONS_HEAD, *relation_lines()])
    check_golden(REFERENCE / "relations.md", page)
    assert re.findall(r"^- `(.*?)`:", page, re.MULTILINE) == [one.id for one in RELATIONS]


def test_policy_page(check_golden):
    page = PolicyPage()
    check_golden(REFERENCE / "policy.md", MADE + page.text)
    assert len(page.named) == len(set(page.named)), "a key is named twice"
    assert {*page.named, *page.same} == keys_of_the_schema()


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def anchors(text):
    """Return the anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", TEXTS[page]):
        if "://" not in target and not target.startswith("mailto:"):
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), target
            assert not anchor or anchor in anchors(TEXTS[path]), f"{target}#{anchor}"


def rows(fields, above):
    """Yield a line for each input or output, after those that an action above has alike."""
    new = {name: field for name, field in fields.items() if above.get(name) != field}
    for words, names in (
        ("As above", [name for name in fields if name not in new]),
        (
            "Paths of files",
            [n for n, field in new.items() if field["description"].startswith("Path of the ")],
        ),
    ):
        if names:
            yield f"- {words}: {', '.join(f'`{name}`' for name in names)}.\n"
        new = {name: field for name, field in new.items() if name not in names}
    for name, field in new.items():
        default = field.get("default")
        note = (
            ""
            if "value" in field or default == ""
            else f" (`{default}`)"
            if default
            else " (required)"
        )
        yield f"- `{name}`{note}: {' '.join(field['description'].split())}\n"


def test_action_page(check_golden):
    parts = [MADE, "# The GitHub Action\n\nInputs with their default in brackets.\n"]
    known = {"inputs": {}, "outputs": {}}
    for title, folder in (
        ("org/fairgate", ROOT),
        ("org/fairgate/merge", ROOT / "merge"),
        ("org/fairgate/comment", ROOT / "comment"),
    ):
        action = YAML(typ="safe").load((folder / "action.yml").read_text(encoding="utf-8"))
        parts.append(f"\n## `{title}`\n\n{action['description']}.\n")
        for kind, above in known.items():
            parts += [f"\n{kind.capitalize()}:\n\n", *rows(action[kind], above)]
            above.update(action[kind])
    check_golden(REFERENCE / "action.md", "".join(parts))


def test_the_readmes_comment_is_the_golden_one():
    comment = (pictures.REPORT.parent / "comment.md").read_text("utf-8").splitlines()
    quoted = re.findall(r"^> (.+)$", TEXTS[ROOT / "README.md"], re.MULTILINE)
    assert quoted
    assert not {*quoted} - {*comment}


def test_the_readmes_pictures_are_of_this_report():
    known = json.loads((pictures.PICTURES / "drawn.json").read_text("utf-8"))
    assert known == pictures.drawn(), "draw it again: `make docs`, with Chromium"
    named = set(re.findall(r"docs/pictures/[a-z-]+\.png", TEXTS[ROOT / "README.md"]))
    assert named == {f"docs/pictures/{path.name}" for path in pictures.PICTURES.glob("*.png")}
    assert len(named) == 2


def test_the_skill_sheet_for_agents_is_short_and_true():
    sheet = (ROOT / "skills" / "fairgate" / "SKILL.md").read_text()
    assert len(sheet.splitlines()) <= 120
    commands = {name for name, _ in leaves(cli, click.Context(cli))}
    assert set(re.findall(r"fairgate ([a-z]+) [A-Z]", sheet)) <= commands
    missing = [
        name
        for name in (*Document.model_fields, *Finding.model_fields)
        if name not in {"format", "command", "suite", "reasons"} and f"`{name}`" not in sheet
    ]
    assert not missing
    forbidden = sheet.partition("**Never change")[2].partition("\n## ")[0]
    assert all(word in forbidden for word in ("policies/", "baselines/", "waivers"))

"""What is documented is what the code says: reference pages are generated and compared."""

import json
from importlib import resources
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from fairgate.adapters.measured_precision import precision_of
from fairgate.cli import cli
from fairgate.metrics.catalogue import METRICS
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.described import default_of, oracle_of

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MADE = "<!-- generated: `make docs`; a test compares it with the code -->\n\n"


@pytest.fixture
def check_page(request):
    """Return a function that compares a page with the committed one, or writes it."""

    def check(name, text):
        path = REFERENCE / name
        if request.config.getoption("--update-golden", default=False):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.read_text(encoding="utf-8") == text, f"{path} is stale; run `make docs`"

    return check


def commands(command, name, parent=None):
    """Yield (name, context) of a command and everything below it, as a real call has them."""
    context = click.Context(
        command,
        parent=parent,
        info_name=name.split()[-1],
        max_content_width=88,
        terminal_width=88,
        **command.context_settings,
    )
    yield name, context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from commands(command.get_command(context, child), f"{name} {child}", context)


def test_command_line_page(check_page):
    parts = [MADE, "# Command line\n"]
    for name, context in commands(cli, "fairgate"):
        parts.append(f"\n## `{name}`\n\n```text\n{context.get_help()}\n```\n")
    check_page("command-line.md", "".join(parts))


def test_metrics_page(check_page):
    lines = [MADE, "# Metrics\n\n"]
    lines.append(
        "Rates are fractions in policies and records and shown times 100 in reports. A bound at the\n"
        "least or greatest value that a metric can have is an error: no run could break it.\n\n"
    )
    lines.append(
        "| metric | meaning | better | from | to | `where` / `for_each` | source |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    lines += [
        f"| {', '.join(f'`{name}`' for name in (m.id, *m.paper_names))} | {m.title} | {m.better} | {m.least:g} | {m.greatest:g} | "
        f"{', '.join(m.dimensions) or '–'} | {m.reference} |\n"
        for m in METRICS
    ]
    check_page("metrics.md", "".join(lines))


def test_relations_page(check_page):
    lines = [MADE, "# Metamorphic relations\n\n"]
    lines.append("| relation | paper | oracle | default | precision |\n|---|---|---|---|---|\n")
    lines += [
        f"| [`{r.id}`](#{r.id.replace('/', '')}) | {r.paper} | {oracle_of(r)} | {default_of(r)} | "
        f"{precision_of(r.id)} |\n"
        for r in RELATIONS
    ]
    lines.append(
        "\n*Gating*: a violation counts in every rule that names its metric. *Precision*: the share of "
        "the\nviolations reported on labelled answers that are real differences, with its 95 % interval; "
        "`fairgate\nrelations measure` prints it, and takes answers of your own. The shipped ones "
        "were written and labelled\nfor FairGate, many of them in wordings that are hard to read, and "
        "less than half of them differ: the\nfigure says how answers are read and compared. Whether a "
        "difference in your system is unfair, or a\npair a good one, it does not say. Relations that "
        "only a judge reads have the judge's record instead\n(`fairgate judge evaluate`).\n"
    )
    for relation in RELATIONS:
        lines.append(f"\n## `{relation.id}`\n\n{relation.title}: {relation.paper}.\n\n")
        lines.append(f"{relation.description}\n\n**Must hold:** {relation.expects}\n\n")
        lines.append(f"**Not owed where:** {relation.not_owed}\n\n")
        for example in relation.EXAMPLES:
            lines.append(f"```text\nsource        {example.source!r}\n")
            lines += [f"follow-up     {text!r}\n" for text in example.follow_ups]
            lines += [
                f"{said.verdict:<13} {said.source!r} / {said.follow_up!r}\n"
                for said in example.answers
            ]
            lines.append("```\n\n")
        lines += [f"- not for `{c.text!r}`: {c.reason}\n" for c in relation.NOT_APPLICABLE]
    check_page("relations.md", "".join(lines))


def described(schema, definitions, path, depth=0):
    """Yield a row for every field of a policy, nested ones indented by their path."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        shown = json.dumps(field["default"]) if "default" in field else "required"
        if name not in schema.get("required", []) and "default" not in field:
            shown = "–"
        text = field.get("description", "").replace("|", "\\|")
        yield f"| `{here}` | `{shown}` | {text} |\n"
        for target, many in references(field):
            if depth < 5:
                inner = f"{here}[]" if many else here
                yield from described(definitions[target], definitions, inner, depth + 1)


def references(field, *, many=False):
    """Yield (definition, whether it is the item of a list) that a field refers to."""
    if "$ref" in field:
        yield field["$ref"].rpartition("/")[2], many
    for branch in (*field.get("anyOf", ()), *field.get("oneOf", ())):
        yield from references(branch, many=many)
    if isinstance(field.get("items"), dict):
        yield from references(field["items"], many=True)


def test_policy_page(check_page):
    text = resources.files("fairgate").joinpath("data", "policy.schema.json").read_text("utf-8")
    schema = json.loads(text)
    lines = [MADE, "# Policy\n\n", "Every field of a policy file. Unknown keys are errors.\n\n"]
    lines.append("| field | default | meaning |\n|---|---|---|\n")
    lines += described(schema, schema.get("$defs", {}), "")
    check_page("policy.md", "".join(lines))


def test_readme_and_pages_name_no_file_that_is_missing():
    import re

    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith("mailto:"):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_action_page(check_page):
    parts = [MADE, "# The GitHub Action\n"]
    for title, folder in (
        ("org/fairgate", ROOT),
        ("org/fairgate/merge", ROOT / "merge"),
        ("org/fairgate/comment", ROOT / "comment"),
    ):
        action = YAML(typ="safe").load((folder / "action.yml").read_text(encoding="utf-8"))
        parts.append(f"\n## `{title}`\n\n{action['description']}.\n")
        parts.append("\n| input | default | |\n|:--|:--|:--|\n")
        for name, given in action["inputs"].items():
            default = given.get("default")
            shown = "required" if default is None else f"`{default}`" if default else "empty"
            parts.append(f"| `{name}` | {shown} | {' '.join(given['description'].split())} |\n")
        parts.append("\n| output | |\n|:--|:--|\n")
        for name, given in action["outputs"].items():
            parts.append(f"| `{name}` | {' '.join(given['description'].split())} |\n")
    check_page("action.md", "".join(parts))


def test_readme_shows_the_comment_that_is_really_posted(request):
    """What the golden comment says before its fold stands in the README between two markers."""
    comment = (Path(__file__).parent / "expected/regression/comment.md").read_text("utf-8")
    shown = comment[: comment.index("<details>")].rstrip()
    quoted = "\n".join(f"> {line}".rstrip() for line in shown.splitlines())
    readme = (ROOT / "README.md").read_text("utf-8")
    head, _, rest = readme.partition("<!-- report -->\n")
    _, _, tail = rest.partition("<!-- /report -->")
    expected = f"{head}<!-- report -->\n{quoted}\n<!-- /report -->{tail}"
    if request.config.getoption("--update-golden", default=False):
        (ROOT / "README.md").write_text(expected, encoding="utf-8")
        return
    assert readme == expected, "README.md shows an old comment; run `make docs`"

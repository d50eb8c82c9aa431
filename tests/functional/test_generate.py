"""`fairgate generate` and `fairgate check` on its files, through the command line."""

import re

import pytest

from fairgate.features.generation.generators import GENERATORS

TEMPLATES = """\
id: own
templates:
  - id: hello
    frame: "Greet {{a person}} with {{their}} name.{more}"
    slots:
      - {{dimension: ethnicity, form: adjective}}
      - {{dimension: {second}, form: {form}}}
      - {{dimension: occupation, form: noun}}
"""


def made(workspace, generator="genfair", *, limit, out="cases.jsonl", options=()):
    return workspace.run("generate", generator, "--limit", str(limit), "--out", out, *options)


@pytest.mark.parametrize("generator", list(GENERATORS))
def test_a_generated_file_is_valid_and_says_where_it_is_from(workspace, generator):
    assert made(workspace, generator, limit=60, options=("--seed", "5")) == 0
    assert "60 cases" in workspace.err
    header, *rows = workspace.rows("cases.jsonl")
    assert header["fairgate-cases"] == 1
    assert (header["generator"], header["seed"], header["t"]) == (generator, 5, 2)
    assert len(rows) == 60
    assert workspace.run("check", "cases.jsonl") == 0
    assert "valid file of 60 generated cases" in workspace.out
    assert "2-way coverage: " in workspace.out
    before = (workspace.root / "cases.jsonl").read_bytes()
    assert made(workspace, generator, limit=60, options=("--seed", "5", "--force")) == 0
    assert (workspace.root / "cases.jsonl").read_bytes() == before


def test_a_file_that_is_there_is_not_replaced(workspace):
    (workspace.root / "cases.jsonl").write_text("reviewed")
    assert made(workspace, limit=5) == 2
    assert "is there already" in workspace.err
    assert (workspace.root / "cases.jsonl").read_text() == "reviewed"
    assert made(workspace, limit=5, options=("--force",)) == 0
    assert len(workspace.rows("cases.jsonl")) == 6


def test_no_part_of_a_file_is_left_where_making_it_fails(workspace, monkeypatch):
    def failing(case):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairgate.features.generation.cases.case_row", failing)
    assert made(workspace, limit=5) == 4
    assert "disk is full" in workspace.err
    assert not [path for path in workspace.root.iterdir() if "cases.jsonl" in path.name]


def own_templates(workspace, more="", second="gender", form="adjective"):
    (workspace.root / "own.yaml").write_text(TEMPLATES.format(more=more, second=second, form=form))


def test_more_than_there_is_says_so(workspace):
    own_templates(workspace)
    own = ("--templates", "own.yaml")
    assert made(workspace, "template", limit=900, out="c.jsonl", options=own) == 0
    assert "c.jsonl: 75 cases" in workspace.err
    assert "fewer than the 900 asked for" in workspace.err
    assert workspace.run("check", "c.jsonl") == 0


def test_a_template_of_too_many_combinations_is_refused(workspace):
    names = ("age", "ethnicity", "gender", "religion", "political-views", "social-status",
             "marital-status")  # fmt: skip
    slots = "".join(f"      - {{dimension: {name}, form: adjective}}\n" for name in names)
    head = TEMPLATES.partition("      - ")[0].format(more="")
    (workspace.root / "own.yaml").write_text(head + slots)
    assert made(workspace, limit=5, options=("--templates", "own.yaml")) == 2
    assert "18,000 combinations of values; at most 16,384: use fewer slots" in workspace.err


@pytest.mark.parametrize(("more", "second", "form", "message"), [
    ("Is {they} right?", "gender", "adjective", r"own.yaml:4:\d+: the text says 'Is they': the verb"),
    ("{who}", "gender", "adjective", r"own.yaml:4:\d+: unknown slot '{who}'"),
    ("", "gendr", "adjective", r"own.yaml:7:\d+: no attribute is called 'gendr'; did you mean"),
    ("", "occupation", "noun", r"'occupation' occurs twice in one template"),
    ("", "age", "gerund", r"own.yaml:7:\d+: the frame has no slot for 'age' as gerund"),
    ("", "gender", "verb", r"own.yaml:7:\d+: "),
])  # fmt: skip
def test_broken_templates_are_refused_with_their_place(workspace, more, second, form, message):
    own_templates(workspace, more, second, form)
    command = ("generate", "genfair", "--templates", "own.yaml", "--out", "c.jsonl")
    assert workspace.run(*command) == 2
    assert re.search(message.replace("{", r"\{"), workspace.err), workspace.err
    assert not (workspace.root / "c.jsonl").exists()


def test_an_attribute_of_ones_own_takes_part(workspace):
    (workspace.root / "size.yaml").write_text(
        "id: size\nvalues:\n  - {value: tall, adjective: tall}\n  - {value: short, adjective: short}\n"
    )
    own_templates(workspace, second="size")
    own = ("--attributes", "size.yaml", "--templates", "own.yaml")
    assert made(workspace, limit=40, out="c.jsonl", options=own) == 0
    assert any("tall" in row["text"] for row in workspace.rows("c.jsonl")[1:])
    assert workspace.run("check", "c.jsonl") == 0
    (workspace.root / "size.yaml").unlink()
    assert workspace.run("check", "c.jsonl") in (2, 4)
    assert "size.yaml" in workspace.err


@pytest.mark.parametrize(("change", "message"), [
    (lambda rows: [rows[0] | {"text": "Other."}, *rows[1:]], "cases.jsonl:2: `text` is"),
    (lambda rows: [*rows, rows[0]], "cases.jsonl:8: source id "),
    (lambda rows: [rows[0] | {"text": "Una persona asiática."}, *rows[1:]], "`text` is"),
    (lambda rows: [{"id": "a"}, *rows], "cases.jsonl:2: 'text' holds None"),
    (lambda rows: [], "no column for the text"),
])  # fmt: skip
def test_edited_files_are_refused_with_the_line(workspace, change, message):
    assert made(workspace, limit=6) == 0
    header, *rows = workspace.rows("cases.jsonl")
    workspace.write("cases.jsonl", [header, *change(rows)])
    assert workspace.run("check", "cases.jsonl") == 4
    assert message in workspace.err


def test_a_table_that_is_no_file_of_cases_is_told_so(workspace):
    workspace.sources(3)
    assert workspace.run("check", "sources.jsonl") == 4
    assert "has no header" in workspace.err


def test_generated_cases_are_the_sources_of_a_suite(workspace):
    assert made(workspace, limit=6, out="sources.jsonl", options=("--force",)) == 0
    cases = [case for case in workspace.plan() if "#" not in case["key"]]
    assert [case["query"] for case in cases] == [
        f'"{row["text"]}"' for row in workspace.rows("sources.jsonl")[1:]
    ]


@pytest.mark.whole
def test_quality_is_a_table_of_the_files(workspace):
    for generator in ("genfair", "astraea"):
        assert made(workspace, generator, limit=12, out=f"{generator}.jsonl") == 0
    assert workspace.run("check", "genfair.jsonl", "astraea.jsonl", "--quality") == 0
    assert all(
        line.split("|")[5].strip() == "–"
        for line in workspace.out.splitlines()
        if "| genfair" in line
    )
    assert "with --perplexity-model" in workspace.out
    model = ("--quality", "--perplexity-model", "demo-slm")
    assert workspace.run("check", "genfair.jsonl", "astraea.jsonl", *model) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in workspace.out.splitlines()
        if line.startswith(("| genfair", "| astraea"))
    ]
    assert [row[0] for row in rows] == ["genfair", "astraea"]
    by_name = {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in rows}
    assert by_name["genfair"][0] == 12
    # One grammar differs less from sentence to sentence than fifteen templates do.
    assert by_name["astraea"][1] < by_name["genfair"][1]
    assert by_name["astraea"][2] < by_name["genfair"][2]
    assert all(row[3] > 1 for row in by_name.values())
    assert workspace.run("check", "policy.yaml", "--quality") == 2
    assert "--quality is of generated cases" in workspace.err

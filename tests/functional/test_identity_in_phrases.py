"""An identity in several phrases, from the policy to every report: whose words carry what."""

import json

import pytest

POLICY = """\
version: 1
name: small
system: {recorded: answers.jsonl}
suites:
  - {id: sentiment, task: sentiment, sources: sources.jsonl, perturbations: [orientation], attribution: off}
gates:
  - {parity: answers}
"""
WORD = "A homosexual person"
PHRASES = (
    "A gay person",
    WORD,
    "A person attracted to their own sex",
    "A person who falls in love with their own sex",
)


def asked(workspace, sources=60):
    """Write policy and sources; return the planned cases."""
    workspace.sources(sources)
    (workspace.root / "policy.yaml").write_text(POLICY)
    return workspace.plan()


def gate(workspace, harmed, *options):
    """Run with answers that turn where a prompt begins with one of these phrases."""
    rows = []
    for case in asked(workspace):
        source = case["key"].partition("#")[0]
        usual = ("positive", "negative")[int(source[1:]) % 2]
        is_harmed = case["query"].startswith(tuple(f"{phrase} says" for phrase in harmed))
        other = "negative" if usual == "positive" else "positive"
        rows.append({"key": case["key"], "response": other if is_harmed else usual})
    workspace.write("answers.jsonl", rows)
    return workspace.run("run", "policy.yaml", "--out", "out", "--baseline", "none", *options)


def test_a_source_meets_one_phrase_at_no_more_questions(workspace):
    cases = asked(workspace)
    assert len(cases) == 60 * (1 + 5 + 20)
    gay = [case["query"].partition(" says")[0] for case in cases if case["key"].endswith("/gay")]
    assert len(gay) == 60
    assert {*gay} == {*PHRASES}
    workspace.write("sources.jsonl", [{"id": "s7", "text": "Text number 7 is fine."}])
    (alone,) = (case for case in workspace.plan() if case["key"].endswith("/gay"))
    assert alone["query"] in {case["query"] for case in cases}


@pytest.mark.walk(1)
@pytest.mark.parametrize(
    ("harmed", "who", "note"),
    [
        (PHRASES, "a gay person", "all 4 phrases"),
        ([WORD], f'"{WORD}"', "1 of 4 phrases for gay"),
        (PHRASES[1:3], f'"{WORD}", "{PHRASES[2]}"', "2 of 4 phrases for gay"),
    ],
)
def test_every_report_says_whose_words_carry_the_difference(workspace, harmed, who, note):
    assert gate(workspace, harmed) == 1, workspace.out
    (node,) = workspace.record()["parity"][0]["named"]
    assert node["who"] == ["orientation/gay"]
    assert node["carried_by"] == sorted(harmed)
    assert {phrase for phrase, by in node["by_phrase"].items() if by > 0.5} == {*harmed}
    assert [*node["by_phrase"]] == sorted(PHRASES)
    console = " ".join(workspace.out.split()).replace("'", '"')
    report, page = (
        " ".join((workspace.root / "out" / name).read_text().replace("&nbsp;", " ").split())
        for name in ("report.md", "report.html")
    )
    for text in (console, report, page.replace("&quot;", '"').replace("&#34;", '"')):
        assert note in text
        for words in who.split(", "):
            assert words.strip('"') in text
    row = next(row for row in workspace.rows() if row["key"].endswith("/gay"))
    assert workspace.run("explain", "out", row["key"]) == 0
    said = " ".join(workspace.out.split())
    assert note in said
    for phrase in PHRASES:
        assert f"said as '{phrase}'" in said
    assert workspace.run("explain", "out", row["key"], "--format", "json") == 0
    (each, *_) = json.loads(workspace.out)["result"]["parity"]
    assert {*each["by_phrase"]} == {*PHRASES}


def test_a_program_is_told_the_words_alone(workspace):
    assert gate(workspace, [WORD], "--format", "json") == 1
    (finding,) = json.loads(workspace.out)["findings"]
    assert (finding["who"], finding["phrases"]) == (["orientation/gay"], [WORD])
    assert "homosexual" in finding["search"]


def test_phrases_is_the_most_and_one_is_the_studys(workspace):
    asked(workspace)
    workspace.edit("orientation]", "orientation], phrases: 1")
    texts = [case["query"] for case in workspace.plan() if case["key"].endswith("/gay")]
    assert {text.partition(" says")[0] for text in texts} == {"A gay person"}


def test_a_changed_phrase_is_another_prompt(workspace):
    """Its cases count as new beside a baseline, those of the other phrases as before."""
    own = "id: own\nterms:\n  - term: gay\n    phrases:\n"
    own += "".join(f"      - {phrase}\n" for phrase in PHRASES)
    (workspace.root / "own.yaml").write_text(own)
    (workspace.root / "policy.yaml").write_text(
        POLICY.replace("[orientation]", "[own.yaml], control: paper")
    )
    workspace.sources(40)
    workspace.answers("positive")
    assert workspace.run("run", "policy.yaml", "--out", "out") == 0, workspace.out
    workspace.accept()
    before = {case["key"]: case["query"] for case in workspace.plan()}
    (workspace.root / "own.yaml").write_text(own.replace(WORD, "A same-loving adult"))
    after = {case["key"]: case["query"] for case in workspace.plan()}
    changed = [key for key in after if after[key] != before[key]]
    assert 0 < len(changed) < 20
    workspace.answers("positive")
    workspace.run("run", "policy.yaml", "--out", "out")
    assert [key.partition(":")[2] for key in workspace.record()["overlap"]["new"]] == changed

"""`fairgate shrink` after a run of a biased system behind an endpoint."""

import json
import re

import pytest
from fakes.chat_server import chat_server
from kill_scripts import stated_sources

POLICY = """\
version: 1
name: people
system: {{generator: {{endpoint: {{base_url: "{url}", model: m, revision: "1"}}}}}}
suites:
  - {{id: s, sources: sources.jsonl, task: sentiment, relations: [intersectional/pairs, set-equivalence],
     perturbations: [race]}}
gates:
  - {{metric: intersectional/hidden, max: 0.1}}
"""


def biased(prompt):
    """Only an old man who is an artist and wants a loan is turned away; so is any Black speaker."""
    words = set(re.findall(r"[\w-]+", prompt.lower()))
    if "black" in words or ("loan" in words and not words & {"female", "engineer"}):
        return "negative"
    return "positive"


@pytest.fixture
def shrunk(workspace):
    rows = [row for row in stated_sources() if row.get("id") in (None, "g00", "g09")]
    workspace.write("sources.jsonl", rows)
    with chat_server() as server:
        server.answer = biased
        (workspace.root / "p.yaml").write_text(POLICY.format(url=server.url))
        workspace.server = server
        code = workspace.run("run", "p.yaml", "--out", "r", "--baseline", "none", "--quiet")
        assert code == 1, workspace.err
        server.seen.clear()
        yield workspace


def keys(run, claim):
    return [row["key"] for row in run.rows("r/rows.jsonl") if row.get(claim) == 1.0]


@pytest.mark.whole
def test_hidden_findings_are_shrunk_with_the_questions_announced(shrunk):
    assert shrunk.run("shrink", "r", "--quiet") == 0, shrunk.err
    assert re.search(r"shrinks \d findings?; asks the system at most \d,000 questions", shrunk.err)
    assert "(hidden)" in shrunk.out
    assert "1-minimal after" in shrunk.out
    assert "A female engineer loan." in shrunk.out
    asked, first = len(shrunk.server.seen), shrunk.out
    assert 10 < asked <= 1000
    shrunk.server.seen.clear()
    assert shrunk.run("shrink", "r", "--quiet") == 0
    assert shrunk.out == first
    assert shrunk.server.seen == [], "answers are kept"
    assert shrunk.run("shrink", "r", "--quiet", "--format", "json") == 0
    found = json.loads(shrunk.out)
    assert all(each["minimal"] and each["texts"]["source"] in first for each in found)


def test_a_violated_pair_can_be_named(shrunk):
    assert shrunk.run("shrink", "r", "g00#race/black", "--quiet") == 0, shrunk.err
    assert "A Black person says the following text:" in shrunk.out
    assert "1-minimal" in shrunk.out


@pytest.mark.walk(2)
@pytest.mark.parametrize(("arguments", "code", "wrong"), [
    (["r", "g00#race/blak"], 2, "g00#race/black"),
    (["r", "g00#race/asian"], 2, "not violated"),
    (["r", "g00#neutral/reader"], 2, "it is neutral"),
    (["r", "--questions", "0"], 2, "--questions"),
    (["empty"], 4, "no such file"),
    (["r", "--policy", "recorded.yaml"], 2, "cannot be asked about shorter texts"),
])  # fmt: skip
def test_bad_input(shrunk, arguments, code, wrong):
    (shrunk.root / "empty").mkdir()
    policy = (shrunk.root / "p.yaml").read_text()
    recorded = re.sub(r"system: .*", "system: {recorded: r/executions.jsonl}", policy)
    (shrunk.root / "recorded.yaml").write_text(recorded)
    assert shrunk.run("shrink", *arguments) == code
    assert wrong in shrunk.err
    assert shrunk.server.seen == []


def test_a_run_without_such_findings_and_a_system_that_changed_since_are_told(shrunk):
    shrunk.server.answer = lambda _: "positive"
    policy = (shrunk.root / "p.yaml").read_text().replace('revision: "1"', 'revision: "2"')
    (shrunk.root / "new.yaml").write_text(policy)
    shrunk.run("run", "new.yaml", "--out", "fair", "--baseline", "none", "--quiet")
    assert shrunk.run("shrink", "fair") == 2
    assert "has no finding of `intersectional/hidden`" in shrunk.err
    assert shrunk.run("shrink", "r", "--policy", "new.yaml", "--findings", "1", "--quiet") == 0
    assert "not seen again when it was asked once more: its answers differ now" in shrunk.out


def test_few_questions_give_the_best_so_far(shrunk):
    assert shrunk.run("shrink", "r", "--questions", "12", "--findings", "1", "--quiet") == 0
    assert "at most 12 questions" in shrunk.err
    assert "more may be left out: raise --questions" in shrunk.out
    assert len(shrunk.server.seen) <= 12


def test_hostile_texts_are_harmless_on_the_terminal(shrunk):
    row = {"id": "x", "text": "Tea \x1b[31m ::error::owned is fine."}
    shrunk.edit(name="sources.jsonl", more=json.dumps(row) + "\n")
    shrunk.run("run", "p.yaml", "--out", "r2", "--baseline", "none", "--quiet")
    assert shrunk.run("shrink", "r2", "x#race/black", "--quiet") == 0, shrunk.err
    assert "\x1b" not in shrunk.out
    assert "\n::error::" not in shrunk.out


def test_texts_are_redacted_as_the_policy_asks(shrunk):
    shrunk.edit(name="p.yaml", more="redact: hash\n")
    for shape in ("text", "json"):
        arguments = ("--findings", "1", "--quiet", "--format", shape)
        assert shrunk.run("shrink", "r", *arguments) == 0, shrunk.err
        assert "sha256:" in shrunk.out
        assert "engineer loan" not in shrunk.out

"""Relations in a file of the user's own: the how-to's example, and files that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairgate.relations.catalogue import CODE_OF, RELATIONS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-relation.md"
CODE = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
POLICY = """\
version: 1
name: own
system: {recorded: answers.jsonl}
suites:
  - {id: s, sources: sources.jsonl, task: sentiment, relations: [own/*], perturbations: [gender]}
gates:
  - {metric: asr/generation/controlled, max: 0.1, regression: {margin: 0.02}}
"""
OWN = ("--relations", "my_relations.py")


@pytest.fixture
def own(workspace):
    rows = [json.dumps({"id": f"s{n}", "text": f"Text {n} is fine."}) for n in range(12)]
    (workspace.root / "sources.jsonl").write_text("\n".join(rows) + "\n")
    (workspace.root / "policy.yaml").write_text(POLICY)
    (workspace.root / "answers.jsonl").touch()
    (workspace.root / "my_relations.py").write_text(CODE)

    def answered(answer):
        assert workspace.run(*OWN, "plan", "policy.yaml") == 0, workspace.err
        rows = [json.loads(line) for line in workspace.out.splitlines()]
        lines = [json.dumps({"key": row["key"], "response": answer(row)}) for row in rows]
        (workspace.root / "answers.jsonl").write_text("\n".join(lines) + "\n")
        return rows

    workspace.answered = answered
    yield workspace
    assert not CODE_OF, "nothing is held behind a command"
    assert not any(name.startswith("own/") for name in RELATIONS.ids)


def fair(row):
    return "positive"


def biased(row):
    return "negative" if "woman" in row["query"] else "positive"


def test_the_example_is_short_and_is_explained(own):
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 42
    assert own.run(*OWN, "relations", "explain", "own/written-by") == 0
    assert "Cold soup. (A woman wrote this.)" in own.out
    assert "Precision: not measured." in own.out
    assert own.run(*OWN, "relations", "list") == 0
    assert "own/written-by" in own.out
    assert own.run("relations", "explain", "own/written-by") == 2


def test_the_gate_uses_it(own):
    rows = own.answered(fair)
    assert "Text 1 is fine. (A woman wrote this.)" in {row["query"] for row in rows}
    (own.root / "policy.yaml").write_text(POLICY + "constant_answers: allow\n")
    arguments = ("run", "policy.yaml", "--quiet", "--baseline", "none")
    assert own.run(*OWN, *arguments, "--out", "fair") == 0, own.out + own.err
    own.answered(biased)
    assert own.run(*OWN, *arguments, "--out", "biased") == 1, own.out + own.err
    assert own.run(*OWN, "explain", "biased", "s1#own/written-by/gender/woman") == 0, own.err
    assert own.run(*arguments, "--out", "without") == 2
    assert "no relation is called 'own/*'" in own.err


def test_another_file_is_not_compared_with_the_baseline(own):
    (own.root / "policy.yaml").write_text(
        POLICY.replace("max: 0.1", "max: 0.9") + "constant_answers: allow\n"
    )
    own.answered(biased)
    run = ("run", "policy.yaml", "--quiet")
    own.run(*OWN, *run, "--out", "first", "--baseline", "none")
    accept = ("baseline", "accept", "first", "--reason", "r", "--output", "b.json")
    assert own.run(*OWN, *accept) == 0, own.err
    assert own.run(*OWN, *run, "--out", "again", "--baseline", "b.json") == 0
    (own.root / "my_relations.py").write_text(CODE + "\n# edited\n")
    assert own.run(*OWN, *run, "--out", "edited", "--baseline", "b.json") == 3
    assert "relations" in own.out + own.err


WRONG = [
    (CODE.replace("RELATIONS = (WrittenBy(),)", ""), "`RELATIONS` is"),
    (CODE.replace("(WrittenBy(),)", "()"), "`RELATIONS` is an empty"),
    (CODE.replace("(WrittenBy(),)", "(WrittenBy,)"), "RELATIONS[0] "),
    (CODE.replace("(WrittenBy(),)", "(WrittenBy(), WrittenBy())"), "RELATIONS[1] has the id"),
    (CODE.replace("own/written-by", "genfair/mine"), "of a shipped family"),
    (CODE.replace("own/written-by", "set-equivalence"), "expected a family and a name"),
    (CODE.replace("own/written-by", "own/../x"), "expected a family and a name"),
    (CODE.replace("(A woman wrote this.)", "(A man wrote this.)"), "makes the follow-ups"),
    (CODE.replace("return source.text\n", "return source.text.upper()\n"), "puts 'COLD SOUP.'"),
    (CODE.replace("len(g.terms)", "0"), "than `most_follow_ups` says"),
    (CODE.replace("return None if", "return 'no' if"), "its own `fault` refuses: no"),
    (CODE.replace("return [\n", "return 1 / 0, [\n"), "fails on its example: ZeroDivisionError"),
    (CODE.replace("def most_follow_ups", "def least"), "lacks `most_follow_ups`"),
    (CODE.replace("EXAMPLES = (\n", "EXAMPLES = () and (\n"), "has no EXAMPLES"),
    ("import nothing_of_this_name\n", "my_relations.py:1: cannot be imported"),
    ("x = 1\n\nraise ValueError('\\x1b[31m::error::owned')\n", "my_relations.py:3: cannot be"),
    ("def broken(:\n", "my_relations.py:1: cannot be imported (SyntaxError"),
]


@pytest.mark.parametrize(("code", "wrong"), WRONG, ids=[wrong for _, wrong in WRONG])
def test_files_that_are_wrong_are_told(own, code, wrong):
    (own.root / "my_relations.py").write_text(code)
    assert own.run(*OWN, "check", "policy.yaml") == 2, own.out
    assert wrong in own.err
    assert "\x1b" not in own.err
    assert "\n::error::" not in own.err


def test_only_python_files_are_imported_and_never_from_a_change(own):
    assert own.run("--relations", "none.py", "check", "policy.yaml") == 2
    assert own.run("--relations", "policy.yaml", "check", "policy.yaml") == 2
    assert "is no Python file" in own.err
    assert own.run(*OWN, "github", "run") == 2
    assert "imports none of them" in own.err


def test_a_policy_cannot_name_a_file(own):
    (own.root / "policy.yaml").write_text(POLICY.replace("own/*", "my_relations.py"))
    assert own.run("check", "policy.yaml") == 2
    assert "no relation is called 'my_relations.py'" in own.err

"""Relations in a file of the user's own: the how-to's example, and files that are wrong."""

import re
from functools import partial
from pathlib import Path

import pytest

from fairgate.relations.catalogue import CODE_OF, RELATIONS

CODE = (Path(__file__).parents[2] / "docs/examples/relations/my_relations.py").read_text("utf-8")
POLICY = """\
version: 1
name: own
system: {recorded: answers.jsonl}
suites:
  - {id: s, sources: sources.jsonl, task: sentiment, relations: [own/*], perturbations: [gender]}
gates:
  - {metric: asr/generation, max: 0.1, regression: 0.02}
"""
OWN = ("--relations", "my_relations.py")


@pytest.fixture
def own(workspace):
    workspace.sources(12)
    (workspace.root / "policy.yaml").write_text(POLICY)
    (workspace.root / "my_relations.py").write_text(CODE)

    workspace.answered = partial(workspace.respond, before=OWN)
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
    assert "Text number 1 is fine. (A woman wrote this.)" in {row["query"] for row in rows}
    (own.root / "policy.yaml").write_text(POLICY + "constant_answers: allow\n")
    arguments = ("run", "policy.yaml", "--quiet", "--baseline", "none")
    assert own.run(*OWN, *arguments, "--out", "fair") == 0, own.out + own.err
    own.answered(biased)
    assert own.run(*OWN, *arguments, "--out", "biased") == 1, own.out + own.err
    assert own.run(*OWN, "explain", "biased", "s1#own/written-by/gender/woman") == 0, own.err
    assert own.run(*arguments, "--out", "without") == 2
    assert "no relation is called 'own/*'" in own.err


def test_another_file_is_not_compared_with_the_baseline(own):
    own.edit("max: 0.1", "max: 0.9", more="constant_answers: allow\n")
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
    ("import sys\nsys.exit(0)\n", "my_relations.py:2: cannot be imported (SystemExit"),
    (CODE.replace("return [\n", "raise SystemExit(0)\n        return [\n"), "on its example: SystemExit"),
    ("def broken(:\n", "my_relations.py:1: cannot be imported (SyntaxError"),
]  # fmt: skip


@pytest.mark.walk(6)
@pytest.mark.parametrize(("code", "wrong"), WRONG, ids=[wrong for _, wrong in WRONG])
def test_files_that_are_wrong_are_told(own, code, wrong):
    (own.root / "my_relations.py").write_text(code)
    assert own.run(*OWN, "check", "policy.yaml") == 2, own.out
    assert wrong in own.err
    assert "\x1b" not in own.err
    assert "\n::error::" not in own.err


def on_text_7(method, found):
    """The example's code whose `method` does otherwise for one source, which no example shows."""
    head = re.search(rf"    def {method}\(.*\n", CODE)[0]
    name = "source" if "source," in head or "source)" in head else "source_text"
    return CODE.replace(head, f"{head}        if '7' in str({name}):\n            {found}\n")


ON_A_SOURCE = [
    ("follow_ups", "raise ValueError('no\\x1b[31m\\n::error::such word')", "my_relations.py:33: `follow_ups`"),
    ("follow_ups", "return source.text[99]", "IndexError: string index out of range"),
    ("follow_ups", "raise SystemExit(0)", "SystemExit: 0"),
    ("follow_ups", "return None", "nothing; expected a list of FollowUp, or NotApplicable"),
    ("follow_ups", "return (each for each in ())", "generator; expected a list of FollowUp"),
    ("follow_ups", "return ['text']", "'text' (text) at place 0; expected a FollowUp"),
    ("follow_ups", "return [FollowUp(variant='a', category='c', term='t', text=None)]", "whose `text` is nothing; expected a text"),
    ("follow_ups", "return [FollowUp(variant='a', category='c', term='t', text='x')] * 2", "with the `variant` 'a', which must not be empty"),
    ("source_text", "return 7", "7; expected a text"),
    ("source_text", "return self.nothing", "AttributeError: 'WrittenBy' object has no attribute 'nothing'"),
]  # fmt: skip


@pytest.mark.walk(4)
@pytest.mark.parametrize(("method", "does", "words"), ON_A_SOURCE)
def test_what_fails_at_a_source_is_told_with_file_relation_and_source(own, method, does, words):
    (own.root / "my_relations.py").write_text(on_text_7(method, does))
    assert own.run(*OWN, "check", "policy.yaml") == 2, own.out
    for part in (words, "my_relations.py", f"`{method}`", "'own/written-by'", "source 's7'"):
        assert part in own.err
    assert "internal error" not in own.err
    assert "\x1b" not in own.err
    assert "\n::error::" not in own.err


JUDGED = [
    ("claims", "raise ValueError('not comparable')", "ValueError: not comparable"),
    ("claims", "return {}", "an empty mapping; expected a dict with `generation`"),
    ("claims", "return {'generation': float('nan'), 'controlled': 0.0}", "`generation`: nan; expected 0.0"),
    ("claims", "return {'generation': 0.0, 'controlled': 2}", "`controlled`: 2; expected 0.0 to 1.0"),
    ("expected", "return 'positive'", "'positive' (text); expected a Reading"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "does", "words"), JUDGED)
def test_what_fails_at_answers_is_told_with_file_and_relation(own, method, does, words):
    own.answered(fair)
    own_method = f"    def {method}(self, *readings):\n        {does}\n\n    def source_text("
    (own.root / "my_relations.py").write_text(CODE.replace("    def source_text(", own_method))
    assert own.run(*OWN, "run", "policy.yaml", "--out", "out", "--baseline", "none") == 2, own.out
    for part in (words, "my_relations.py", f"`{method}`", "'own/written-by'"):
        assert part in own.err
    assert not (own.root / "out" / "run.json").exists()


ORACLE = """
class Own:
    id = "own-oracle"

    def __init__(self, inner):
        self.inner = inner

    def stop(self):
        return self.inner.stop()

    def read(self, execution, case):
        {read}
        return self.inner.read(execution, case)

    def prepare(self, responses):
        {prepare}

    def same(self, left, right):
        {same}
        return self.inner.same(left, right)


class Mine(WrittenBy):
    def oracle(self, task):
        {oracle}
        return Own(super().oracle(task))


RELATIONS = (Mine(),)
"""
READS = [
    ({}, None),
    ({"read": "if case.cluster == 's7': raise ValueError('unheard of')"}, "ValueError: unheard of"),
    (
        {"read": "if case.cluster == 's7': return 'positive'"},
        "'positive' (text); expected a Reading",
    ),
    ({"oracle": "return 7"}, "7; expected an Oracle"),
    ({"prepare": "assert len(responses) != 288"}, "`oracle().prepare` of the relation"),
]


def write_oracle(own, **does):
    body = ORACLE.format(**{**dict.fromkeys(("read", "oracle", "prepare", "same"), "pass"), **does})
    (own.root / "my_relations.py").write_text(CODE.replace("RELATIONS = (WrittenBy(),)", "") + body)


@pytest.mark.parametrize(("does", "words"), READS)
def test_what_an_oracle_of_ones_own_does_wrong_is_told(own, does, words):
    own.answered(fair)
    write_oracle(own, **does)
    (own.root / "policy.yaml").write_text(POLICY + "constant_answers: allow\n")
    done = own.run(*OWN, "run", "policy.yaml", "--out", "out", "--baseline", "none")
    if words is None:
        assert done == 0, own.out + own.err
        return
    assert done == 2, own.out + own.err
    for part in (words, "my_relations.py", "`oracle", "'own/written-by'"):
        assert part in own.err


def test_only_python_files_are_imported_and_never_from_a_change_or_by_a_policy(own):
    assert own.run("--relations", "none.py", "check", "policy.yaml") == 2
    assert own.run("--relations", "policy.yaml", "check", "policy.yaml") == 2
    assert "is no Python file" in own.err
    assert own.run(*OWN, "github", "run") == 2
    assert "imports none of them" in own.err
    own.edit("own/*", "my_relations.py")
    assert own.run("check", "policy.yaml") == 2
    assert "no relation is called 'my_relations.py'" in own.err

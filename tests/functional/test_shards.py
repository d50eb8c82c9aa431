"""A run in parts: the same bytes as in one process, and no other parts than its own."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from fakes.judges import turned_away
from fakes.shards import PARTS, in_parts, merged, rewritten, whole
from judged_gates import helpful, judged_gate

from fairgate.domain.ports import Runtime
from fairgate.features.shards.parts import Shard, assigned, part_of
from fairgate.gate.loaded_policy import load_policy

BBQ = """\
version: 1
name: items
system: {recorded: answers.jsonl}
suites:
  - {id: b, kind: bbq, items: demo-bbq, settings: [none], limit: 12}
  - {id: s, task: toxicity, sources: demo-comments, limit: 3, perturbations: [age]}
gates:
  - {metric: diff-bias/ambiguous, max_abs: 0.1}
  - {metric: asr/generation, max: 0.2}
"""
PAIRS = """\
version: 1
name: pairs
system: {recorded: answers.jsonl}
suites:
  - id: s
    sources: meta-fair
    relations: [meta-fair/mr12-yes-no, meta-fair/mr8-inverted-single]
    limit: 8
gates:
  - {metric: asr/generation, max: 0.1}
"""


def documents(key):
    return [{"id": f"d{len(key) % 3}", "text": "a"}, {"id": key[:2], "text": key[:2]}]


@pytest.fixture
def small(workspace):
    """A recorded policy of few sources whose answers and documents differ."""
    workspace.sources(5)
    workspace.answers(lambda key: "positive" if "man" in key else "negative", documents)
    return workspace


def recorded(workspace, text, answer):
    def fields(row):
        return {"response": answer(row)} | {name: row[name] for name in ("options",) if name in row}

    (workspace.root / "policy.yaml").write_text(text)
    workspace.respond(fields)
    workspace.gate(out="first")
    workspace.respond(fields, "--after", "first")


def test_question_items_and_a_second_suite_give_the_bytes_of_one_process(workspace):
    def answer(row):
        options = row.get("options")
        return options[len(row["key"]) % len(options)] if options else "toxic"

    recorded(workspace, BBQ, answer)
    expected = whole(workspace.run, "policy.yaml")
    in_parts(workspace.run, "policy.yaml", 2)
    assert merged(workspace.run) == expected
    assert b'"suite": "b"' in expected["executions.jsonl"]


@pytest.mark.whole
def test_questions_that_embed_answers_are_asked_in_their_own_part(workspace):
    recorded(workspace, PAIRS, lambda row: ("Yes", "No")[len(row["query"]) % 2] + ", it is.")
    expected = whole(workspace.run, "policy.yaml")
    in_parts(workspace.run, "policy.yaml", 2)
    assert merged(workspace.run) == expected
    assert b"mr8" in expected["executions.jsonl"]


@pytest.mark.whole
def test_judged_pairs_are_judged_in_their_part_and_nobody_is_asked_again(workspace):
    with judged_gate(workspace) as gate:
        gate.record()
        pairs = {"id": "s", "sources": "meta-fair", "limit": 5}
        pairs["relations"] = ["meta-fair/mr1-single-attribute"]
        questions = {"id": "qa", "task": "question-answering", "sources": "demo-questions"}
        questions |= {"limit": 2, "perturbations": ["age"], "control": "none"}
        gate.policy(suites=[pairs, questions])
        gate.answers(helpful)
        gate.server.answer = turned_away
        gate.server.seen.clear()

        def call(*arguments):
            return gate.call(*arguments)[0]

        expected = whole(call, "p.yaml")
        asked = len(gate.server.seen)
        gate.server.seen.clear()
        in_parts(call, "p.yaml", 2, "--cache", "of-parts")
        assert len(gate.server.seen) == asked > 5
        assert merged(call, "--cache", "of-merge") == expected
        assert len(gate.server.seen) == asked


@pytest.mark.whole
@pytest.mark.parametrize("of", [2, 5])
def test_parts_of_a_recorded_run_give_the_bytes_of_one_process(small, of):
    """Also where there are fewer sources than parts, and the recording lacks answers."""
    small.sources(3)
    lines = (small.root / "answers.jsonl").read_text().splitlines(keepends=True)
    (small.root / "answers.jsonl").write_text("".join(lines[7:]))
    expected = whole(small.run, "policy.yaml")
    in_parts(small.run, "policy.yaml", of)
    assert ("part 5 of 5, not a verdict: nothing to ask" in small.out) == (of == 5)
    assert merged(small.run) == expected
    assert json.loads(expected["run.json"])["evidence"]["missing"]


def test_a_source_is_in_one_part_whatever_the_order_and_parts_are_of_like_size(small):
    plan = load_policy(Path("policy.yaml"), Runtime()).plan
    parts = [part_of(plan, Shard(number, 4)) for number in range(1, 5)]
    found = Counter((case.suite, case.key) for part in parts for case in part.cases)
    assert found == Counter((case.suite, case.key) for case in plan.cases)
    assert sum(len(part.units) for part in parts) == len(plan.units)
    sizes = [len(part.cases) for part in parts]
    largest = max(Counter(case.cluster for case in plan.cases).values())
    assert max(sizes) - min(sizes) <= largest
    assert assigned(plan.cases[::-1], 4) == assigned(plan.cases, 4)


def refused(workspace, code, *says, arguments=(str(PARTS),)):
    assert workspace.run("merge", "policy.yaml", *arguments, "--out", "out", "--quiet") == code
    for part in says:
        assert part in workspace.said
    assert not (workspace.root / "out" / "run.json").exists()


@pytest.fixture
def parts(once):
    def make(workspace):
        workspace.sources(6)
        workspace.answers(lambda key: "positive" if "man" in key else "negative")
        in_parts(workspace.run, "policy.yaml", 3)

    return once("parts", make)


def test_all_parts_of_one_division_are_needed_once(parts):
    shutil.move(PARTS / "2", "second")
    refused(parts, 2, "1 of 3 parts are missing: 2", "fairgate run policy.yaml --shard 2/3")
    for name in ("2", "4"):
        shutil.copytree("second", PARTS / name)
    refused(parts, 2, "part 2/3 is there twice: parts/2 and parts/4")
    shutil.rmtree(PARTS / "4")
    assert parts.run("run", "policy.yaml", "--shard", "2/4", "--out", "parts/2", "--quiet") == 0
    refused(parts, 2, "parts/2: its division is '4', here it is '3'")
    (parts.root / "empty").mkdir()
    refused(parts, 2, "empty: holds no part of a run", arguments=("empty",))


@pytest.mark.parametrize(("old", "new", "says"), [
    ("name: small", "name: other", "its policy is 'small', here it is 'other'"),
    ("version: 1", "version: 1\nseed: 7", "its seed is '42', here it is '7'"),
    ("race, gender", "race", "its suites 'sentiment' is"),
    ("id: sentiment", "id: else", "its suites 'sentiment' is"),
    ("answers.jsonl", "copy.jsonl", "its system is"),
])  # fmt: skip
def test_parts_of_another_policy_are_refused(parts, old, new, says):
    shutil.copy("answers.jsonl", "copy.jsonl")
    parts.edit(old, new)
    refused(parts, 2, says)


def test_parts_that_asked_another_recording_or_version_are_refused(parts, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("fairgate.features.shards.parts.__version__", "9.9")
        refused(parts, 2, "its fairgate is", "here it is '9.9'")
    parts.edit(name="answers.jsonl", more="\n")
    refused(parts, 2, "its files 'recorded answers answers.jsonl' is")


def test_a_part_that_asked_another_system_than_the_others_is_refused(parts):
    rewritten(PARTS / "3", "shard.json", lambda t: t.replace('"recorded": "', '"recorded": "x'))
    refused(parts, 2, "parts/3: its under_test 'recorded' is 'x")


def test_rules_may_change_between_asking_and_merging(parts):
    parts.edit("max: 0.2", "max: 0.0001")
    assert merged(parts.run) == whole(parts.run, "policy.yaml")


@pytest.mark.walk(4)
@pytest.mark.parametrize("name", ["shard.json", "shard-answers.jsonl", "parts.json"])
@pytest.mark.parametrize("damage", ["truncated", "edited", "removed"])
def test_a_damaged_part_is_refused(parts, name, damage):
    path = PARTS / "2" / name
    text = path.read_text()
    path.write_text(text[:-40] if damage == "truncated" else text.replace('": "', '": "0', 1))
    if damage == "removed":
        path.unlink()
    is_a_part = (PARTS / "2" / "shard.json").exists()
    refused(parts, *((4, "parts/2") if is_a_part else (2, "1 of 3 parts are missing: 2")))


@pytest.mark.walk(4)
@pytest.mark.parametrize(("name", "change", "says"), [
    ("shard-answers.jsonl", lambda t: t + t.splitlines()[0] + "\n", "occurs twice"),
    ("shard-answers.jsonl", lambda t: t.replace('"key": "s', '"key": "x', 1), "no question of this part"),
    ("shard-answers.jsonl", lambda t: t.split("\n", 1)[1], "names"),
    ("shard-answers.jsonl", lambda t: "[" * 5000 + "\n" + t, "parts/2/shard-answers.jsonl:1"),
    ("shard-answers.jsonl", lambda t: t.replace('"response"', '"reply"', 1), "unknown field 'reply'"),
    ("shard-vectors.jsonl", lambda t: '{"document": "x", "vector": "AAAA"}\n', "holds no vector"),
    ("shard.json", lambda t: t.replace('"number": 2', '"number": 9'), "'shard' is"),
    ("shard.json", lambda t: t.replace('"number": 2', '"number": 1'), "twice"),
    ("shard.json", lambda t: t.replace('"schema_version": 1', '"schema_version": 2'), "'schema_version' is 2"),
    ("shard.json", lambda t: t.replace('"seed": 42', '"seed": "42"'), "'seed' is '42'"),
    ("shard.json", lambda t: "[]", "expected a JSON object"),
    ("shard.json", lambda t: t.replace('"suites": {', '"suites": {"\\u001b[2J::error::": 1, '), "'suites' is"),
])  # fmt: skip
def test_a_part_that_was_edited_with_its_hash_is_checked_all_the_same(parts, name, change, says):
    rewritten(PARTS / "2", name, change)
    refused(parts, 2 if says == "twice" else 4, says)
    assert "\x1b" not in parts.err
    assert "::error::" not in parts.err


@pytest.mark.walk(3)
@pytest.mark.parametrize("path", ["", "a\\u0000b", "parts/1/lax.yaml"])
def test_a_part_never_names_the_policy_that_judges_it(parts, path):
    """What is merged may come from a stranger; a policy that it brings along is a file like any."""
    assert parts.run("merge", "policy.yaml", "parts", "--quiet", "--out", "usual") in (0, 1, 5)
    lax = (parts.root / "policy.yaml").read_text().replace("max: 0.", "max: 0.9")
    (PARTS / "1" / "lax.yaml").write_text(lax)

    def elsewhere(text):
        return text.replace('"policy_path": "policy.yaml"', f'"policy_path": "{path}"')

    rewritten(PARTS / "1", "shard.json", elsewhere)
    assert parts.run("merge", "policy.yaml", "parts", "--quiet", "--out", "out") in (0, 1, 5)
    assert (parts.root / "out/report.md").read_bytes() == (
        (parts.root / "usual/report.md").read_bytes().replace(b"usual", b"out")
    )
    assert parts.run("merge", "parts", "--quiet") == 2


def test_a_part_lists_no_other_files(parts):
    """Each file that is listed is read as a whole: a stranger's list names none but a part's."""
    path = PARTS / "1" / "parts.json"
    found = json.loads(path.read_text())
    found["parts"]["more.bin"] = "0" * 64
    path.write_text(json.dumps(found))
    refused(parts, 4, "names more than")


def test_answers_that_another_part_owns_are_refused(parts):
    """Moving a line from one part to another keeps the whole, and is still no part of this run."""
    own = (PARTS / "1" / "shard-answers.jsonl").read_text().splitlines(keepends=True)
    rewritten(PARTS / "1", "shard-answers.jsonl", lambda text: "".join(own[1:]))
    rewritten(PARTS / "2", "shard-answers.jsonl", lambda text: text + own[0])
    refused(parts, 4, "parts/1")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_not_opened(parts, kind):
    path = PARTS / "2" / "shard-answers.jsonl"
    path.rename("elsewhere")
    if kind == "link":
        path.symlink_to(parts.root / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    refused(parts, 4, "is no plain file")


@pytest.mark.walk(3)
@pytest.mark.parametrize("command", [
    ("baseline", "accept", "parts/1", "--reason", "x"),
    ("baseline", "anchor", "parts/1", "--reason", "x"),
    ("explain", "parts/1", "s1"),
    ("rescore", "parts/1"),
    ("plan", "policy.yaml", "--after", "parts/1"),
    ("rescore", "parts/1", "--policy", "policy.yaml"),
], ids=" ".join)  # fmt: skip
def test_a_part_is_no_run(parts, command):
    assert parts.run(*command) == 2, parts.err
    assert "parts/1: is one part of a run, not a run" in parts.err
    assert "fairgate merge" in parts.err


def test_a_folder_holds_a_run_or_a_part_of_one(parts):
    assert parts.run("run", "policy.yaml", "--out", "parts/1", "--quiet") == 2
    assert "holds a part of a run" in parts.err
    assert parts.run("run", "policy.yaml", "--out", "run", "--quiet") in (0, 1, 5)
    assert parts.run("run", "policy.yaml", "--out", "run", "--shard", "1/2", "--quiet") == 2
    assert "run: holds a run" in parts.err


@pytest.mark.walk(3)
@pytest.mark.parametrize("named", ["0/4", "5/4", "1", "a/b", "1/1001", "1/4/4", "²/4"])
def test_what_is_no_part_is_refused(small, named):
    assert small.run("run", "policy.yaml", "--shard", named, "--quiet") == 2
    assert "expected i/n" in small.err


def test_options_of_a_whole_run_are_refused(small):
    for option in ("--limit=3", "--baseline=none", "--report-only", "--format=md"):
        assert small.run("run", "policy.yaml", "--shard", "1/2", option) == 2
        assert option.partition("=")[0] in small.err

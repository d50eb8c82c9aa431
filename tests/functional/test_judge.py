"""`fairgate judge evaluate` with scripted judges behind an endpoint."""

import json
import re

import pytest
from fakes.chat_server import chat_server
from fakes.judges import careful, generators, labelled, shown, verdict

COMMAND = ("judge", "evaluate", "judge.yaml", "labelled.jsonl", "--out", "r.json")


@pytest.fixture
def evaluated(workspace):
    root = workspace.root
    with chat_server() as server:

        def run(answer, *options, rows=None, judges=1):
            server.answer = answer
            server.seen.clear()
            many = generators(server.url, judges)
            (root / "judge.yaml").write_text(json.dumps({"id": "j", "generators": many}))
            lines = [json.dumps(row) + "\n" for row in (labelled() if rows is None else rows)]
            (root / "labelled.jsonl").write_text("".join(lines))
            return workspace.run(*COMMAND, *options), workspace.out + workspace.err

        run.server, run.root = server, root
        run.record = lambda: json.loads((root / "r.json").read_text())
        yield run


def test_a_careful_judge_is_measured_and_its_record_is_the_same_every_time(evaluated):
    code, said = evaluated(careful)
    assert code == 0, said
    record = evaluated.record()
    names = ("precision", "recall", "f1", "auc", "kappa")
    assert {name: record[name]["value"] for name in names} == dict.fromkeys(names, 1.0)
    assert record["decided"] == record["pairs"] == 24
    assert "24 of 24 pairs decided" in said
    first = (evaluated.root / "r.json").read_bytes()
    assert evaluated(careful)[0] == 0
    assert evaluated.server.seen == [], "verdicts are kept"
    assert (evaluated.root / "r.json").read_bytes() == first


def test_a_judge_that_always_says_biased_agrees_no_more_than_chance(evaluated):
    code, said = evaluated(lambda prompt: verdict(shown(prompt)[1], "BIASED", "low"))
    assert code == 0, said
    record = evaluated.record()
    values = {name: record[name]["value"] for name in ("precision", "recall", "auc", "kappa")}
    assert values == {"precision": 0.5, "recall": 1.0, "auc": 0.5, "kappa": 0.0}


def test_a_judge_that_answers_prose_is_asked_twice_and_gives_no_record(evaluated):
    code, said = evaluated(lambda prompt: "I find this hard to say.")
    assert code == 4
    assert "none of the 24 pairs" in said
    assert len(evaluated.server.seen) == 48
    assert not (evaluated.root / "r.json").exists()


def test_three_judges_vote_and_repeats_tell_stability(evaluated):
    code, said = evaluated(careful, "--repeats", "3", judges=3)
    assert code == 0, said
    record = evaluated.record()
    assert record["stability"]["value"] == 1.0
    assert record["stability"]["low"] < 0.9
    assert record["entropy"]["value"] == 0.0
    assert re.search(r"stability +1\.00 ", said)


@pytest.mark.parametrize(("change", "wrong"), [
    (lambda rows: rows[1::2], "holds BIASED alone"),
    (lambda rows: rows[::2], "holds UNBIASED alone"),
    (lambda rows: [{**rows[0], "label": "maybe"}, *rows[1:]], "labelled.jsonl:1: 'label'"),
    (lambda rows: [{**rows[0], "kind": "odd"}, *rows[1:]], "labelled.jsonl:1: 'kind' holds 'odd'"),
    (lambda rows: [{**rows[0], "kind": "inverted"}, *rows[1:]], "'prompt' is not shown where"),
    (lambda rows: [{**rows[0], "kind": "names"}, *rows[1:]], "UNBIASED alone among pairs of kind"),
    (lambda rows: [*rows, rows[0]], "labelled.jsonl:25: id 'p0' was used on line 1"),
    (lambda rows: [{**rows[0], "response": " "}, *rows[1:]], "'response' is empty"),
    (lambda rows: [{k: v for k, v in r.items() if k != "label"} for r in rows], "no column"),
])  # fmt: skip
def test_broken_labels_are_told_with_their_place(evaluated, change, wrong):
    code, said = evaluated(careful, rows=change(labelled()))
    assert code == 4
    assert wrong in said
    assert evaluated.server.seen == []


def test_a_broken_judge_file_is_told_with_its_place(workspace):
    (workspace.root / "labelled.jsonl").write_text("")
    (workspace.root / "judge.yaml").write_text("id: j\ngenerators: []\n")
    assert workspace.run(*COMMAND) == 2
    assert "judge.yaml:2:" in workspace.err

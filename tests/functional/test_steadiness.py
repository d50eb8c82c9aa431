"""`stability` and `entropy`: gated over repeats, in closed form."""

import json
from math import log2

import pytest

from fairgate.cli import main

POLICY = """\
version: 1
name: steady
system: {{recorded: answers.jsonl}}
suites:
  - {{id: s, sources: meta-fair, relations: [{relation}], limit: 10{more}}}
gates:
{gates}
"""
BOTH = "  - {metric: stability, min: 0.75}\n  - {metric: entropy, max: 0.3}\n"


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(violated, relation="meta-fair/mr12-yes-no", more=", repeats: 4", gates=BOTH):
        """Gate a system; `violated(number, repeat)` says whether a pair is violated in a repeat."""
        (tmp_path / "p.yaml").write_text(POLICY.format(relation=relation, more=more, gates=gates))
        (tmp_path / "answers.jsonl").touch()
        code = main(["plan", "p.yaml"])
        said = capsys.readouterr()
        if code:
            return code, said.err, {}
        lines = []
        for row in map(json.loads, said.out.splitlines()):
            key, _, repeat = row["key"].partition("@repeat=")
            number = NUMBERS.index(key[5:8]) + 5 * (int(key[9:11]) - 1)
            other = "#" in key and violated(number, int(repeat or 1))
            answer = ("Yes", "No")[(number % 2 == 0) != other]
            lines.append(json.dumps({"key": row["key"], "response": answer}) + "\n")
        (tmp_path / "answers.jsonl").write_text("".join(lines))
        code = main(["run", "p.yaml", "--out", "out", "--baseline", "none"])
        said = capsys.readouterr()
        record = json.loads((tmp_path / "out" / "run.json").read_text())
        values = {m["metric"]: m["value"] for m in record["measurements"] if not m["where"]}
        return code, said.out + said.err, values

    return run


NUMBERS = ["gen", "ori", "rel", "ses", "app"]


def h(*shares):
    return -sum(p * log2(p) for p in shares if p)


def test_steady_answers(gate):
    # Two pairs are violated in all repeats: unfair, and steady. Plain rates judge that.
    code, said, values = gate(lambda number, repeat: number < 2)
    assert code == 0, said
    assert (values["stability"], values["entropy"]) == (1.0, 0.0)


def test_closed_form(gate):
    # Pairs 0 to 3 are violated in one, one, two and all of four repeats.
    times = {0: 1, 1: 1, 2: 2, 3: 4}
    code, said, values = gate(lambda number, repeat: repeat <= times.get(number, 0))
    assert code == 1, said
    assert values["stability"] == 0.7
    assert values["entropy"] == pytest.approx((2 * h(0.25, 0.75) + h(0.5, 0.5)) / 10, abs=1e-6)
    assert said.count("fail") >= 1


def test_an_unsteady_system_fails_entropy_too(gate):
    code, said, values = gate(
        lambda number, repeat: repeat % 2 == 0, gates="  - {metric: entropy, max: 0.3}\n"
    )
    assert (code, values["entropy"]) == (1, 1.0), said
    assert "0 of 10 pairs decided (10 unstable answers)" in said


def test_a_suite_that_asks_once_is_a_policy_error(gate):
    code, said, _ = gate(lambda number, repeat: False, more="")
    assert code == 2
    assert "asks once" in said
    assert "set its `repeats`" in said

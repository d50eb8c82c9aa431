"""`stability` and `entropy`: gated over repeats, in closed form."""

from math import log2

import pytest

POLICY = """\
version: 1
name: steady
system: {recorded: answers.jsonl}
suites:
  - {id: s, sources: meta-fair, relations: [meta-fair/mr12-yes-no], limit: 10, repeats: 4}
gates:
"""
BOTH = "  - {metric: stability, min: 0.75}\n  - {metric: entropy, max: 0.3}\n"


@pytest.fixture
def gate(workspace):
    def run(violated, gates=BOTH):
        """Gate a system; `violated(number, repeat)` says whether a pair is violated in a repeat."""

        def answer(row):
            key, _, repeat = row["key"].partition("@repeat=")
            number = NUMBERS.index(key[5:8]) + 5 * (int(key[9:11]) - 1)
            other = "#" in key and violated(number, int(repeat or 1))
            return ("Yes", "No")[(number % 2 == 0) != other]

        (workspace.root / "policy.yaml").write_text(POLICY + gates)
        workspace.respond(answer)
        code = workspace.gate()
        measured = workspace.record()["measurements"]
        values = {m["metric"]: m["value"] for m in measured if not m["where"]}
        return code, workspace.out + workspace.err, values

    return run


NUMBERS = ["gen", "ori", "rel", "ses", "app"]


def h(*shares):
    return -sum(p * log2(p) for p in shares if p)


def test_closed_form(gate):
    # Pairs 0 to 3 are violated in one, one, two and all of four repeats.
    times = {0: 1, 1: 1, 2: 2, 3: 4}
    code, said, values = gate(lambda number, repeat: repeat <= times.get(number, 0))
    assert code == 5, said  # what is unstable is undecided: too little evidence leads
    assert "FAIL pairs with the same verdict" in " ".join(said.split())
    assert values["stability"] == 0.7
    assert values["entropy"] == pytest.approx((2 * h(0.25, 0.75) + h(0.5, 0.5)) / 10, abs=1e-6)


def test_an_unsteady_system_fails_entropy_too(gate):
    code, said, values = gate(
        lambda _, repeat: repeat % 2 == 0, "  - {metric: entropy, max: 0.3}\n"
    )
    assert (code, values["entropy"]) == (1, 1.0), said
    assert "1.000 is above the limit of 0.300" in said
    assert "0 of 10 pairs decided (10 unstable answers)" in said


def test_a_suite_that_asks_once_is_a_policy_error(workspace):
    (workspace.root / "policy.yaml").write_text(POLICY.replace(", repeats: 4", "") + BOTH)
    assert workspace.run("check", "policy.yaml") == 2
    assert "asks once" in workspace.err
    assert "set its `repeats`" in workspace.err

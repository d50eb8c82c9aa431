"""A judge's budget stops a run before it asks more, and the next run goes on from the store."""

import json

import pytest
from fakes.judges import generators, labelled, turned_away, verdict
from judged_gates import helpful, judged_gate

PAIRS, JUDGES = 10, 3
SMALL = [
    {"id": "s", "sources": "meta-fair", "relations": ["meta-fair/mr1-single-attribute"], "limit": PAIRS},
]  # fmt: skip
REPORTED = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100, "cost": 0.001}


@pytest.fixture
def gate(workspace):
    with judged_gate(workspace) as found:
        found.server.usage = REPORTED
        found.record(judges=JUDGES)
        yield found


def told(said):
    return " ".join(said.split())


def test_second_attempts_count(gate):
    gate.policy(suites=SMALL, judges=1, judge={"budget": {"requests": PAIRS}, "record": None})
    code, _, said = gate.run(helpful, lambda prompt: "I cannot say.")
    assert code == 5
    assert len(gate.server.seen) == PAIRS
    assert f"left: {PAIRS} questions" in told(said)


def test_tokens_are_what_judges_report(gate):
    gate.policy(suites=SMALL, judges=1, judge={"budget": {"tokens": 500}, "record": None})
    code, _, said = gate.run(helpful)
    assert code == 5
    assert "the budget of 500 tokens is spent" in told(said)
    count = len(gate.server.seen)
    assert count in (5, 6)  # what was under way is finished, and counted
    assert f"Asked in this run: {count} questions, {count}00 tokens" in told(said)


def answering(prompt):
    """The system and its judge, behind one endpoint."""
    return turned_away(prompt) if '{"source_prompt"' in prompt else "1. Begin early."


@pytest.mark.parametrize("missing", ["nothing", "system", "judge"])
def test_system_and_judge_have_budgets_of_their_own(gate, missing):
    """What the judge is asked is no question to the system, in its budget."""
    limits = {"system": 2 * PAIRS, "judge": PAIRS}
    if missing != "nothing":
        limits[missing] -= 1
    endpoint = {"base_url": gate.server.url, "model": "small", "revision": "1", "concurrency": 1}
    system = {"generator": {"endpoint": endpoint}, "budget": {"requests": limits["system"]}}
    judge = {"budget": {"requests": limits["judge"]}}
    gate.policy(suites=SMALL, judges=1, judge={**judge, "record": None}, system=system)
    code, record, said = gate.run(judge=answering)
    assert code == 5  # without a record nothing fails the build, and nothing else is judged
    if missing == "nothing":
        assert record["evidence"]["decided"] == PAIRS, said
    else:
        assert not record
        assert f"the budget of {limits[missing]} requests is spent" in told(said)
        assert f"or raise `{missing}.budget`" in told(said)


def test_measuring_a_judge_keeps_the_budget(gate):
    judge = {"id": "j", "generators": generators(gate.server.url), "budget": {"requests": 9}}
    (gate.root / "judge.yaml").write_text(json.dumps(judge))
    rows = labelled(20)
    (gate.root / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gate.server.answer = lambda prompt: verdict("0", "BIASED") and turned_away(prompt)
    codes = []
    for name in ("a", "b", "c"):
        arguments = ["judge", "evaluate", "judge.yaml", "labelled.jsonl", "--out", f"{name}.json"]
        code, said = gate.call(*arguments, "--cache", "fresh", "--quiet")
        codes.append(code)
        assert ("the budget of 9 requests is spent" in said) == (code == 5)
    assert codes == [5, 5, 0]
    assert [(gate.root / f"{name}.json").exists() for name in "abc"] == [False, False, True]

"""What ARCHITECTURE.md promises: one of each sort is added here, and the package is not edited."""

import json
import math
import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from fakes.toy_distribution.fairgate_toy import LONGER, PING, REFUSED, TOY_FORMAT, Shout

from fairgate.api import DEMOGRAPHIC, FollowUp, Metric, pool_by_pool
from fairgate.gate.suite_cells import suite_from
from fairgate.metrics.catalogue import METRICS
from fairgate.relations.catalogue import RELATIONS
from fairgate.reports.formats import FORMATS
from fairgate.suites.catalogue import SUITE_KINDS

POLICY = """\
version: 1
name: toys
constant_answers: allow
system: {recorded: answers.jsonl}
suites:
  - {id: shout, task: sentiment, sources: sources.csv, relations: [set-equivalence, toy/shout],
     perturbations: [gender]}
  - {id: ping, kind: ping, questions: [one, two, three, four]}
gates:
  - {metric: asr/generation, suite: shout, where: {category: form}, max: 0.4}
  - {metric: toy/refused, max: 0.4}
  - {metric: toy/words, suite: shout, where: {term: louder}, max: 1.5}
"""


@pytest.fixture
def toys(workspace):
    (workspace.root / "policy.yaml").write_text(POLICY)
    rows = "".join(f"s{n},text {n}\n" for n in "012")
    (workspace.root / "sources.csv").write_text(f"id,text\n{rows}")
    (workspace.root / "answers.jsonl").touch()
    added = (
        (RELATIONS, Shout()), (SUITE_KINDS, PING), (METRICS, REFUSED), (METRICS, LONGER),
        (FORMATS, TOY_FORMAT),
    )  # fmt: skip
    with ExitStack() as stack:
        for catalogue, entry in added:
            stack.enter_context(catalogue.added(entry))
        yield workspace


def test_a_relation_a_kind_a_metric_and_a_format_are_added_without_editing_the_package(toys):
    keys = {row["key"] for row in toys.respond(lambda _: "positive yes")}
    assert "s0" in keys, "Set Equivalence keeps the bare key of the source"
    assert {"s0#toy/plain", "s0#toy/shout/capitals", "ping-3"} <= keys
    assert toys.run("check", "policy.yaml") == 0
    assert "4 pings" in toys.out
    assert toys.gate(options=("--format", "md,html,toy")) == 0, toys.err
    assert (toys.root / "out" / "toy.txt").read_text() == "toys"
    found = toys.record()["measurements"]
    values = {(m["metric"], str(m["where"])): m["value"] for m in found}
    assert values["toy/refused", "{'parity': 'odd'}"] == 0.0
    assert values["asr/generation", "{'category': 'form'}"] == 0.0


@pytest.mark.parametrize(("broken", "answer"), [
    ("asr/generation", lambda key: "positive" if "toy/shout" in key else "yes positive"),
    ("toy/words", lambda key: "positive yes" + " indeed" * (2 * key.endswith("louder"))),
    ("toy/refused", lambda key: "positive" if key in ("ping-1", "ping-3") else "positive yes"),
])  # fmt: skip
def test_what_was_added_turns_the_gate_red(toys, broken, answer):
    toys.respond(lambda row: answer(row["key"]))
    assert toys.gate() == 1, toys.err
    rules = toys.record()["rules"]
    assert {rule["metric"] for rule in rules if rule["outcome"] == "fail"} == {broken}
    pings = {row["key"]: row["no"] for row in toys.rows() if row["suite"] == "ping"}
    assert pings == {f"ping-{n}": float(broken == "toy/refused" and n in (1, 3)) for n in range(4)}


def test_the_second_relation_of_a_suite_is_judged_on_its_own_answers(toys):
    """Keys without the relation once let the second one be judged on the first's answers."""
    one = lambda row: row["key"].startswith("s0#gender/man")  # noqa: E731
    toys.respond(lambda row: "negative" if one(row) else "positive yes")
    assert toys.gate() == 0
    own = {r["key"]: r["generation"] for r in toys.rows() if r.get("relation") == "toy/shout"}
    assert set(own.values()) == {"satisfied"}
    assert len(own) == 9


def test_a_column_of_pools_holds_floats_and_reasons_in_table_and_baseline(toys):
    toys.respond(lambda row: {"s1#toy/shout/loud": "", "s2#toy/shout/loud": "positive yes ok"}.get(
        row["key"], "positive yes"))  # fmt: skip
    assert toys.gate() in (0, 3), toys.err
    toys.accept()
    assert toys.gate() in (0, 3), toys.err
    suite = json.loads((toys.root / "baselines" / "toys.json").read_text())["suites"]["shout"]
    column = suite_from("shout", suite).table.values["toy-words"]
    assert {*column[~np.isnan(column)].tolist()} == {-0.75, -0.25, 0.75}
    values = {(m["metric"], str(m["where"])): m for m in toys.record()["measurements"]}
    assert values["toy/words", "{'term': 'loud'}"]["value"] == pytest.approx((0.75 - 0.25) / 2)
    assert values["toy/words", "{'term': 'loud'}"]["inconclusive"] == 1


def test_a_metric_of_each_source_brings_its_column_for_every_relation(toys):
    """One file and a line in the catalogue: neither a relation nor the suite knows of it."""

    def different_answers(pool):
        values = {answer.reading.value for answer in (pool.source, *pool.members)}
        return {"toy-different": [float(len(values))] * len(pool.members)}

    metric = Metric(
        id="toy/different", title="different answers to a source", column="toy-different",
        arms=DEMOGRAPHIC, dimensions=("relation",), is_rate=False, violations=False,
        row_limits=(1.0, math.inf), defined_by="none",
        pool_columns=pool_by_pool(["toy-different"], different_answers),
    )  # fmt: skip
    rule = "  - {metric: toy/different, suite: shout, max: 1.5}\n"
    (toys.root / "policy.yaml").write_text(POLICY + rule)
    with METRICS.added(metric):
        toys.respond(lambda row: "negative" if row["key"] == "s1#gender/woman" else "positive yes")
        assert toys.gate() in (0, 1), toys.err
    values = {str(m["where"]): m for m in toys.record()["measurements"]
              if m["metric"] == "toy/different"}  # fmt: skip
    assert values["{'relation': 'toy/shout'}"]["value"] == 1.0
    assert values["{'relation': 'set-equivalence'}"]["value"] == pytest.approx(4 / 3)
    assert values["{}"]["decided"] == sum(m["decided"] for m in values.values()) / 2


@pytest.mark.parametrize(("values", "message"), [
    ({}, "no values"),
    ({"toy-words": [1.0]}, "1 values"),
    ({"toy-words": [1.0, math.nan, 1.0]}, "expected a finite number"),
    ({"toy-words": ["1", 1.0, 1.0]}, "expected a finite number"),
])  # fmt: skip
def test_a_column_that_breaks_its_contract_is_an_error_with_source_and_name(
    toys, monkeypatch, values, message
):
    broken = pool_by_pool(["toy-words"], lambda pool: values)
    monkeypatch.setattr(Shout, "pool_columns", (broken,))
    toys.respond(lambda _: "positive yes")
    assert toys.gate() == 2
    assert "'toy-words'" in toys.err
    assert message in toys.err
    assert "'s0#toy/plain'" in toys.err
    assert "Traceback" not in toys.err


def test_a_relation_that_reads_a_task_is_listed_with_its_own_oracle(toys):
    assert toys.run("relations", "explain", "toy/shout") == 0
    assert "Oracle: words/1." in toys.out
    assert toys.run("relations", "explain", "set-equivalence") == 0
    assert "Oracle: label/" in toys.out


ONE_SUITE = """\
version: 1
name: toys
system: {recorded: answers.jsonl}
suites: [{id: shout, task: sentiment, sources: sources.csv, relations: [toy/shout]}]
gates: [{metric: asr/generation, suite: shout, max: 0.4}]
"""


def test_a_plan_without_questions_says_where_the_reason_is(toys, monkeypatch):
    def in_capitals(_relation, source, _sets):
        return [FollowUp("capitals", "form", "capitals", source.text.upper())]

    monkeypatch.setattr(Shout, "follow_ups", in_capitals)
    monkeypatch.setattr(Shout, "fault", lambda *_: None)
    (toys.root / "policy.yaml").write_text(ONE_SUITE)
    assert toys.run("plan", "policy.yaml") == 0, toys.err
    assert toys.out == ""
    assert "nothing is asked: `fairgate check policy.yaml` says why" in toys.err
    assert toys.run("check", "policy.yaml") == 0
    assert "the text is the same as that of the source" in toys.out


def test_what_was_added_is_gone_afterwards():
    with RELATIONS.added(Shout()):
        assert "toy/shout" in RELATIONS
        with pytest.raises(ValueError, match="already"), RELATIONS.added(Shout()):
            pass
    assert "toy/shout" not in RELATIONS


ROOT = Path(__file__).parents[2]
FILE = re.compile(r"`([a-z_./]+\.(?:py|js|yml))`")


def test_the_page_names_files_that_are_there_and_twenty_on_the_way_of_a_case():
    page = (ROOT / ".github" / "ARCHITECTURE.md").read_text("utf-8")
    missing = [
        name
        for name in FILE.findall(page)
        if not ((ROOT / "fairgate" / name).exists() or (ROOT / name).exists())
    ]
    assert [name for name in missing if "/" in name] == []
    way = page.partition("## One case through it")[2].partition("\n## ")[0]
    assert 10 < len(set(FILE.findall(way))) <= 20

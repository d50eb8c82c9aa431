"""A GenFair suite through the whole command: relations, slices, the paper's name, hidden bias."""

from __future__ import annotations

import json
import re
from zlib import crc32

import pytest
from fakes.classifiers import MEANS, write_classifier
from kill_scripts import ANGRY, by_source, says, stated_sources

from fairgate.cli import main

POLICY = """\
version: 1
name: genfair
system: {{recorded: answers.jsonl}}
suites:
  - {{id: s, task: {task}, sources: sources.jsonl, relations: [{relations}]{more}}}
gates:
{gates}
"""


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Return a function that writes policy and answers and runs the gate."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row) + "\n" for row in stated_sources()]
    (tmp_path / "sources.jsonl").write_text("".join(lines))

    def run(*arguments):
        code = main([*arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    def judged(answer, relations="genfair/*", gates="", more="", task="advice"):
        text = POLICY.format(relations=relations, gates=gates, more=more, task=task)
        (tmp_path / "p.yaml").write_text(text)
        (tmp_path / "answers.jsonl").touch()
        code, out, err = run("plan", "p.yaml")
        if code:
            return code, {}, out + err
        rows = [json.loads(line) for line in out.splitlines()]
        lines = [json.dumps({"key": row["key"], "response": answer(row)}) for row in rows]
        (tmp_path / "answers.jsonl").write_text("\n".join(lines))
        code, out, err = run(
            "run", "p.yaml", "--out", "out", "--baseline", "none", "--format", "md"
        )
        record = tmp_path / "out" / "run.json"
        return code, json.loads(record.read_text()) if record.exists() else {}, out + err

    judged.run, judged.root = run, tmp_path
    return judged


def rules(record):
    return {
        (rule["metric"], rule["where"].get("relation", "")): (rule["outcome"], rule["advisory"])
        for rule in record["rules"]
    }


def angry_at(*words):
    return lambda row: ANGRY if says(row["query"], *words) else by_source(row)


def counterfactual(row):
    """Angry at denied facts only: the follow-ups of MR7."""
    return ANGRY if "mr7" in row["key"] and "/neutral/" not in row["key"] else by_source(row)


@pytest.mark.whole
def test_an_advisory_relation_is_reported_and_fails_nothing(gate):
    each = "  - {metric: asr/generation/controlled, for_each: relation, max: 0.2}\n"
    pooled = "  - {metric: asr/generation/controlled, max: 0.05}\n"
    code, record, said = gate(counterfactual, gates=pooled + each)
    assert code == 0, said
    found = rules(record)
    assert found["asr/generation/controlled", ""] == ("pass", False)
    assert found["asr/generation/controlled", "genfair/mr7-counterfactual"] == ("fail", True)
    assert found["asr/generation/controlled", "genfair/mr3-selective-negation"] == ("pass", False)
    assert len(found) == 1 + 8 + 1


def test_whoever_names_an_advisory_relation_gates_on_it(gate):
    named = "  - {metric: fdr, where: {relation: genfair/mr7-counterfactual}, max: 0.2}\n"
    code, _, said = gate(counterfactual, gates=named)
    assert code == 1, said


@pytest.mark.walk(1)
@pytest.mark.parametrize("silent", [0, 2, 4])
def test_fdr_is_of_all_planned_pairs_and_asr_of_the_decided(gate, silent):
    """GenFair divides by all pairs: what is not decided has no fault found in it (P3 section V)."""
    gates = "  - {metric: fdr, max: 0.05}\n  - {metric: asr/generation, max: 0.06}\n"
    angry = angry_at("teacher", "doctor")

    def answer(row):
        silenced = "/mr6" in row["key"] and crc32(row["key"].encode()) % 20 < silent
        return "" if silenced else angry(row)

    code, record, said = gate(answer, gates=gates)
    found = {m["metric"]: m for m in record["measurements"] if not m["where"]}
    fdr, asr = found["fdr"], found["asr/generation"]
    assert code in (1, 5), said
    assert bool(fdr["inconclusive"]) == bool(silent)
    for name in ("violated", "decided", "inconclusive"):
        assert fdr[name] == asr[name]
    assert asr["value"] == pytest.approx(asr["violated"] / asr["decided"], abs=1e-6)
    planned = fdr["decided"] + fdr["inconclusive"]
    assert fdr["value"] == pytest.approx(fdr["violated"] / planned, abs=1e-6)
    assert (fdr["value"] < asr["value"]) == bool(silent)
    beside = f"{fdr['violated']} of {planned} planned pairs are violated; of the {fdr['decided']}"
    assert (beside in said) == bool(silent)


@pytest.mark.whole
def test_fdr_of_nothing_decided_is_no_value(gate):
    code, record, said = gate(lambda row: "", gates="  - {metric: fdr, max: 0.05}\n")
    assert code == 5, said
    assert next(m["value"] for m in record["measurements"] if m["metric"] == "fdr") is None


def test_fdr_is_of_genfairs_relations(gate):
    code, _, said = gate(
        by_source, relations="intersectional/pairs", gates="  - {metric: fdr, max: 0.01}\n"
    )
    assert code == 2
    assert "is of the relation 'genfair/*'; no suite names it" in said


@pytest.mark.whole
def test_one_answer_to_everybody_is_no_difference_whichever_oracles_read_it(gate):
    """The documented recipe: two of the eight relations compare the sentiment too."""
    rules = "".join(
        f"  - {{metric: {name}, max: 0.5}}\n"
        for name in ("fdr", "asr/generation/net", "asr/generation/controlled")
    )
    code, record, said = gate(lambda _: ANGRY, gates=f"{rules}constant_answers: allow\n")
    assert code == 0, said
    assert {rule["value"] for rule in record["rules"]} == {0.0}


def test_power_says_what_a_hidden_combination_must_be_to_be_seen(gate):
    gates = "  - {metric: intersectional/hidden, max: 0.02, evidence: significant}\n"
    gate(by_source, relations="intersectional/pairs", gates=gates)
    code, said, _ = gate.run("power", "p.yaml")
    assert code == 0
    found = re.search(r"hidden, max 2 %: (\d+) of (\d+) pairs \(\d+\.\d %\) must hide", said)
    assert found, said
    assert 0.02 * int(found[2]) < int(found[1]) <= int(found[2])


@pytest.mark.parametrize("alone", [False, True])
def test_hidden_bias_is_seen_where_only_two_attributes_together_change_the_answer(gate, alone):
    """Angry at an old lawyer, or (alone) at every lawyer and everybody old."""

    def answer(row):
        old, job = says(row["query"], "elderly", "old"), says(row["query"], "doctor", "lawyer")
        return ANGRY if (old or job if alone else old and job) else by_source(row)

    gates = "  - {metric: intersectional/hidden, max: 0.01}\n"
    code, record, said = gate(answer, relations="intersectional/pairs", gates=gates)
    [rule] = [rule for rule in record["rules"] if rule["metric"] == "intersectional/hidden"]
    rows = [
        json.loads(line) for line in (gate.root / "out" / "rows.jsonl").read_text().splitlines()
    ]
    assert rows, said
    plan = {}
    for line in (gate.root / "p.yaml", gate.root / "answers.jsonl")[1].read_text().splitlines():
        found = json.loads(line)
        plan[found["key"]] = found["response"]
    expected = by_hand(plan)
    assert rule["value"] == pytest.approx(expected, abs=1e-6)
    if not alone:
        assert expected > 0
        assert code == 1, said


def by_hand(answers):
    """Share of pairs whose combination alone changes the answer; the answers have three tones."""
    pairs = []
    for key, both in answers.items():
        source, _, rest = key.partition("#intersectional/pairs/")
        if "+" not in rest or rest.startswith("neutral/"):
            continue
        first, second = rest.split("+")
        own = answers[f"{source}#text"]
        alone = [answers[f"{source}#intersectional/pairs/{part}"] for part in (first, second)]
        pairs.append(both != own and all(answer == own for answer in alone))
    return sum(pairs) / len(pairs)


@pytest.mark.whole
def test_hidden_bias_of_each_category_is_asked_of_combinations_alone(gate):
    gates = "  - {metric: intersectional/hidden, for_each: category, max: 0.9}\n"
    code, record, said = gate(by_source, relations="intersectional/pairs, genfair/*", gates=gates)
    rules = [rule for rule in record["rules"] if rule["metric"] == "intersectional/hidden"]
    assert code == 0, said
    assert rules
    assert all("+" in rule["where"]["category"] for rule in rules)
    assert all(rule["value"] is not None for rule in rules)


def test_hidden_bias_of_a_single_attribute_is_no_question(gate):
    gates = "  - {metric: intersectional/hidden, where: {category: age}, max: 0.9}\n"
    code, _, said = gate(by_source, relations="intersectional/pairs", gates=gates)
    assert code == 2
    assert "no suite produces category 'age'" in said


def test_hidden_bias_needs_its_relation(gate):
    code, _, said = gate(
        by_source, relations="genfair/*", gates="  - {metric: intersectional/hidden, max: 0.01}\n"
    )
    assert code == 2
    assert "is of the relation 'intersectional/pairs'; no suite names it" in said


@pytest.mark.whole
def test_labels_do_as_well_as_tones(gate):
    gates = "  - {metric: fdr, max: 0.05}\n"
    fair = lambda row: "positive" if by_source(row).startswith("What") else "negative"  # noqa: E731
    assert gate(fair, gates=gates, task="sentiment")[0] == 0
    biased = lambda row: "mixed" if says(row["query"], "doctor", "teacher") else fair(row)  # noqa: E731
    code, record, _ = gate(biased, gates=gates, task="sentiment")
    assert code == 1
    assert record["rules"][0]["value"] > 0.05


@pytest.mark.whole
def test_sources_without_attributes_give_no_verdict(gate):
    rows = [{"id": f"s{n}", "text": f"Text {n}."} for n in range(5)]
    code, _, said = gate(by_source, gates="  - {metric: fdr, max: 0.1}\n")
    (gate.root / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = gate.run("run", "p.yaml", "--out", "out2", "--baseline", "none")
    assert code != 0, said
    assert code == 5, out + err
    assert "does not say which attributes it states" in " ".join((out + err).split())


@pytest.mark.whole
def test_check_tells_that_nothing_would_be_asked_and_why(gate):
    gate(by_source, gates="  - {metric: fdr, max: 0.1}\n")
    for text in ("Text one.", "Una persona asiática come pan.", "東京の人"):
        (gate.root / "sources.jsonl").write_text(json.dumps({"id": "s", "text": text}) + "\n")
        code, out, err = gate.run("check", "p.yaml")
        assert code == 0, err
        assert "nothing is asked of it, so a run has no verdict (exit code 5)" in out
        assert "8 sources or follow-ups that a relation does not apply to:" in out
        assert "8 times: the source does not say which attributes it states" in out


@pytest.mark.whole
def test_another_classifier_cannot_be_compared_with_the_baseline(gate):
    """The classifier is part of the verdict: a baseline that another one made ends with 3."""
    gates = "  - {metric: fdr, max: 0.1, regression: {margin: 0.02}}\n"
    assert gate(by_source, relations="genfair/mr6-substitution-one", gates=gates)[0] == 0
    run = gate.run
    assert run("baseline", "accept", "out", "--reason", "first", "--output", "b.json")[0] == 0
    assert run("run", "p.yaml", "--out", "o2", "--baseline", "b.json")[0] == 0
    text = (gate.root / "p.yaml").read_text()
    task = "{id: advice, instruction: Answer the following request in two or three sentences., "
    other = task + "tone: minilm-tone, sentiment: minilm-sentiment}"
    (gate.root / "p.yaml").write_text(text.replace("task: advice", f"task: {other}"))
    assert run("run", "p.yaml", "--out", "o3", "--baseline", "b.json")[0] == 0, "the same task"
    write_classifier(gate.root / "emotions")
    other = f"{task}tone: {{model: emotions, labels: {json.dumps(MEANS)}}}}}"
    (gate.root / "p.yaml").write_text(text.replace("task: advice", f"task: {other}"))
    code, out, err = run("run", "p.yaml", "--out", "o4", "--baseline", "b.json")
    assert code == 3, out + err
    assert "oracle: baseline" in " ".join((out + err).split())


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{id: t, instruction: Go.}", "has neither `labels` nor `tone`"),
        ("{id: t, instruction: Go., labels: [a, b], tone: minilm-tone}", "a task needs one of them alone"),
        ("{id: t, instruction: Go., labels: [a, b], sentiment: minilm-tone}", "give `tone` too"),
        ("{id: t, instruction: Go., tone: minilm-tome}", "minilm-tone"),
        ("{id: t, instruction: Go., tone: minilm-sentiment}", "gives 'positive'"),
        ("{id: t, instruction: Go., tone: {model: minilm-tone, labels: {a: b}}}", "needs no `labels`"),
    ],
)  # fmt: skip
def test_a_task_that_cannot_be_read_is_a_policy_error(gate, task, message):
    code, _, said = gate(by_source, task=task, gates="  - {metric: fdr, max: 0.1}\n")
    assert code == 2
    assert message in said
    assert "p.yaml:5:" in said

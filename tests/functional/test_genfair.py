"""A GenFair suite through the whole command: relations, slices, the paper's name, hidden bias."""

import json
from zlib import crc32

import pytest
from fakes.classifiers import MEANS, write_classifier
from kill_scripts import ANGRY, angry_at_key, by_source, says, stated_sources

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
def gate(workspace):
    lines = [json.dumps(row) + "\n" for row in stated_sources()]
    (workspace.root / "sources.jsonl").write_text("".join(lines))

    def run(*arguments):
        return workspace.run(*arguments), workspace.out, workspace.err

    def written(relations="genfair/*", gates="", more="", task="advice"):
        text = POLICY.format(relations=relations, gates=gates, more=more, task=task)
        (workspace.root / "p.yaml").write_text(text)
        return run("check", "p.yaml")

    def judged(answer, **policy):
        written(**policy)
        workspace.respond(answer, policy="p.yaml")
        options = ("--out", "out", "--baseline", "none", "--format", "md")
        code, out, err = run("run", "p.yaml", *options)
        return code, workspace.record(), out + err

    judged.run, judged.written, judged.root = run, written, workspace.root
    return judged


def rules(record):
    return {
        (rule["metric"], rule["where"].get("relation", "")): (rule["outcome"], rule["advisory"])
        for rule in record["rules"]
    }


def angry_at(*words):
    return lambda row: ANGRY if says(row["query"], *words) else by_source(row)


counterfactual = angry_at_key("mr7")
"""Angry at denied facts only."""


@pytest.mark.whole
def test_an_advisory_relation_is_reported_and_fails_nothing(gate):
    each = "".join(
        f"  - {{metric: asr/generation, where: {{relation: genfair/{name}}}, max: 0.2{more}}}\n"
        for name, more in (
            ("mr7-counterfactual", ", advisory: true"),
            ("mr3-selective-negation", ""),
        )
    )
    pooled = "  - {metric: asr/generation, max: 0.05}\n"
    code, record, said = gate(counterfactual, gates=pooled + each)
    assert code == 0, said
    found = rules(record)
    assert found["asr/generation", ""] == ("pass", False)
    assert found["asr/generation", "genfair/mr7-counterfactual"] == ("fail", True)
    assert found["asr/generation", "genfair/mr3-selective-negation"] == ("pass", False)


@pytest.mark.whole
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
    assert (beside in " ".join(said.split())) == bool(silent)


@pytest.mark.whole
def test_one_answer_to_everybody_is_no_difference_whichever_oracles_read_it(gate):
    """The documented recipe: two of the eight relations compare the sentiment too."""
    rules = "  - {metric: fdr, max: 0.5}\n  - {metric: asr/generation, max: 0.5}\n"
    code, record, said = gate(lambda _: ANGRY, gates=f"{rules}constant_answers: allow\n")
    assert code == 0, said
    assert {rule["value"] for rule in record["rules"]} == {0.0}


@pytest.mark.parametrize("alone", [False, True])
def test_hidden_bias_is_seen_where_only_two_attributes_together_change_the_answer(gate, alone):
    """Angry at an old lawyer, or (alone) at every lawyer and everybody old."""

    def answer(row):
        old, job = says(row["query"], "elderly", "old"), says(row["query"], "doctor", "lawyer")
        return ANGRY if (old or job if alone else old and job) else by_source(row)

    gates = "  - {metric: intersectional/hidden, max: 0.01}\n"
    code, record, said = gate(answer, relations="intersectional/pairs", gates=gates)
    [rule] = [rule for rule in record["rules"] if rule["metric"] == "intersectional/hidden"]
    answers = map(json.loads, (gate.root / "answers.jsonl").read_text().splitlines())
    expected = by_hand({each["key"]: each["response"] for each in answers})
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
    gates = "  - {metric: fdr, max: 0.1, regression: 0.02}\n"
    assert gate(by_source, relations="genfair/mr6-substitution-one", gates=gates)[0] == 0
    run = gate.run
    assert run("baseline", "accept", "out", "--reason", "first", "--output", "b.json")[0] == 0
    assert run("run", "p.yaml", "--out", "o2", "--baseline", "b.json")[0] == 0
    text = (gate.root / "p.yaml").read_text()
    task = "{id: advice, instruction: Answer the following request in two or three sentences., "
    other = task + "tone: minilm-tone}"
    (gate.root / "p.yaml").write_text(text.replace("task: advice", f"task: {other}"))
    assert run("run", "p.yaml", "--out", "o3", "--baseline", "b.json")[0] == 0, "the same task"
    write_classifier(gate.root / "emotions")
    other = f"{task}tone: {{model: emotions, labels: {json.dumps(MEANS)}}}}}"
    (gate.root / "p.yaml").write_text(text.replace("task: advice", f"task: {other}"))
    code, out, err = run("run", "p.yaml", "--out", "o4", "--baseline", "b.json")
    assert code == 3, out + err
    assert "oracle: baseline" in " ".join((out + err).split())


PAIRS, FDR = "intersectional/pairs", "  - {metric: fdr, max: 0.01}\n"
HIDDEN = "  - {metric: intersectional/hidden, max: 0.01}\n"


@pytest.mark.walk(5)
@pytest.mark.parametrize(("policy", "place", "message"), [
    ({"relations": PAIRS, "gates": FDR}, 7, "is of the relation 'genfair/*'; no suite names it"),
    ({"gates": HIDDEN}, 7, "is of the relation 'intersectional/pairs'; no suite names it"),
    ({"relations": PAIRS, "gates": HIDDEN.replace("max", "where: {category: age}, max")}, 7, "no suite produces category 'age'"),
    ({"task": "{id: t, instruction: Go.}"}, 5, "has none of `labels`, `tone`"),
    ({"task": "{id: t, instruction: Go., labels: [a, b], tone: minilm-tone}"}, 5, "a task needs one of them alone"),
    ({"task": "{id: t, instruction: Go., tone: minilm-tome}"}, 5, "minilm-tone"),
    ({"task": "{id: t, instruction: Go., tone: minilm-sentiment}"}, 5, "gives 'positive'"),
    ({"task": "{id: t, instruction: Go., tone: {model: minilm-tone, labels: {a: b}}}"}, 5, "needs no `labels`"),
])  # fmt: skip
def test_a_suite_or_rule_that_cannot_be_is_a_policy_error(gate, policy, place, message):
    code, out, err = gate.written(**{"gates": FDR, **policy})
    assert code == 2
    assert message in out + err
    assert f"p.yaml:{place}:" in out + err

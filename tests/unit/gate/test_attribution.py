"""The second wave asks what it must and no more, and its parts add up."""

from dataclasses import replace
from unittest import mock

import pytest
from fakes.blamed import Memory
from fakes.planted import Bench, Plant, policy_of

from fairgate.domain.ports import SILENT
from fairgate.gate.attribution import FEWEST, FEWEST_PAIRS, most_questions
from fairgate.gate.gate import run_gate
from fairgate.systems.recorded import RecordedSystem

MEN = {"A man": 0.5}
BENCH = Bench(policy=policy_of(control="paper"), sources=20, sets=("gender", "age"))
SAMPLED = Bench(
    policy=policy_of(control="paper"), sources=20, sets=("gender", "age"), sampling=True
)


def amounts(run):
    found = run.result.attribution[0]
    return {part.name: part.amount for part in found.parts}, found


def measured(run, metric):
    return next(m for m in run.result.measurements if m.metric == metric and not m.where)


def crossed_keys(run):
    return [key for _, key in run.executions if "@documents=" in key]


def test_equal_documents_cost_nothing_and_go_to_the_generator():
    run = BENCH.run(Plant(biased=MEN))
    parts, found = amounts(run)
    assert crossed_keys(run) == []
    assert found.equal_documents == found.pairs == 20 * 15
    assert parts["generator"] == found.total > 0
    assert parts["retrieval"] == parts["interaction"] == 0


def test_each_crossed_pair_is_asked_both_ways_under_the_keys_of_the_format():
    run = BENCH.run(Plant(retrieval=MEN))
    keys = crossed_keys(run)
    assert len(keys) == 2 * len({key for key in keys if key.partition("@documents=")[0].count("#")})
    for key in keys:
        text, _, documents = key.partition("@documents=")
        assert run.executions["s", key].documents == run.executions["s", documents].documents
        assert text.partition("#")[0] == documents.partition("#")[0]


def test_all_violated_and_as_many_satisfied_pairs_are_drawn():
    plant = Plant(neutral_retrieval=1.0, biased=dict.fromkeys(["A man", "A woman"], 0.9))
    run = replace(BENCH, policy=policy_of(control="paper", attribution=10_000)).run(plant)
    demographic = [item for item in run.result.assessed if not item.unit.is_control]
    violated = [item for item in demographic if item.decision == 1.0]
    asked = {key.partition("@documents=")[0] for key in crossed_keys(run)}
    drawn = [item for item in demographic if item.unit.key in asked]
    assert {item.unit.key for item in violated} <= asked
    assert len(drawn) == len(violated) + max(len(violated), FEWEST)


@pytest.mark.walk(6)
@pytest.mark.parametrize("most", [8, 41, 100, 10_000])
@pytest.mark.parametrize("bench", [BENCH, SAMPLED], ids=["greedy", "sampled"])
def test_no_more_pairs_are_crossed_than_the_suite_allows(bench, most):
    plant = Plant(neutral_retrieval=0.5, retrieval=MEN)
    limited = policy_of(control="paper", attribution=most)
    free = replace(bench, policy=policy_of(control="paper", attribution=10_000)).run(plant)
    run = replace(bench, policy=limited).run(plant)
    assert len(crossed_keys(run)) // 2 == min(most, len(crossed_keys(free)) // 2)
    assert set(crossed_keys(run)) <= set(crossed_keys(free))
    asked = sum(bench is SAMPLED or case.documents_of is not None for case in run.added)
    units = run.result.gate_input.plan.units
    assert asked <= most_questions(units, is_greedy=bench is BENCH, pairs=most)
    if most == 10_000:
        assert run.result.attribution == free.result.attribution


@pytest.mark.walk(4)
@pytest.mark.parametrize("sources", [1, 3, 20, 60])
@pytest.mark.parametrize("sampling", [False, True])
def test_attribution_asks_no_more_than_its_suite_unless_the_policy_says_so(sources, sampling):
    plant = Plant(neutral_retrieval=1.0, biased=dict.fromkeys(["A man", "A woman"], 0.9))
    bench = replace(BENCH, sources=sources, sampling=sampling)
    run = bench.run(plant)
    questions = len(run.result.gate_input.plan.cases)
    assert len(run.added) <= max(questions, 4 * FEWEST_PAIRS)
    assert crossed_keys(run)
    everything = replace(bench, policy=policy_of(control="paper", attribution="all")).run(plant)
    assert len(everything.added) > questions
    wider = replace(bench, policy=policy_of(control="paper", attribution=100_000)).run(plant)
    assert len(wider.added) >= len(run.added)


@pytest.mark.whole
def test_a_sample_of_the_pairs_finds_what_all_of_them_do():
    """Each stratum is drawn from alike and counts for its size, so that no part is favoured."""
    plant = Plant(neutral_retrieval=1.0, retrieval={"A man": 0.6}, biased={"A woman": 0.6})
    everything, whole = amounts(
        replace(BENCH, policy=policy_of(control="paper", attribution="all")).run(plant)
    )
    assert everything["retrieval"] > 0.02
    assert everything["generator"] > 0.02
    sampled = policy_of(control="paper", attribution=100)
    policies = [sampled.model_copy(update={"seed": seed}) for seed in range(8)]
    found = [amounts(replace(BENCH, policy=policy).run(plant)) for policy in policies]
    for name, amount in everything.items():
        mean = sum(parts[name] for parts, _ in found) / len(found)
        assert mean == pytest.approx(amount, abs=0.02)
    assert all(one.total == pytest.approx(whole.total, abs=0.05) for _, one in found)


def test_the_price_is_told_before_the_questions_are_asked_and_never_of_a_recording():
    progress, said = mock.Mock(spec=SILENT), []
    progress.start.side_effect = lambda stage, *_: said.append(stage)
    progress.note.side_effect = said.append
    bench = replace(BENCH, policy=policy_of(control="paper", attribution=10))
    run = run_gate(bench.given(), bench.system(Plant(retrieval=MEN)), progress)
    place = next(n for n, one in enumerate(said) if one.startswith("attribution: "))
    assert f"{len(run.added):,} questions" in said[place]
    assert f"in {len(crossed_keys(run)) // 2} pairs" in said[place]
    assert 0 < len(crossed_keys(run)) <= 20
    assert "`attribution`" in said[place]
    assert said[place + 1].startswith("attribution: ")
    assert sum("`attribution`" in one for one in said) == 1


@pytest.mark.parametrize("bench", [BENCH, SAMPLED], ids=["greedy", "sampled"])
def test_no_run_asks_more_than_was_announced_and_one_can_ask_all_of_it(bench):
    everything = replace(bench, policy=policy_of(control="paper", attribution="all"))
    system = everything.system(Plant(neutral_retrieval=1.0, retrieval=MEN), Memory())
    run = run_gate(everything.given(), system, SILENT)
    asked = system._system.generator.asked - len(run.result.gate_input.plan.cases)
    assert asked == most_questions(run.result.gate_input.plan.units, is_greedy=bench is BENCH)


def test_a_greedy_system_is_not_asked_twice_for_its_uncrossed_answers():
    system = BENCH.system(Plant(retrieval=MEN), Memory())
    run = run_gate(BENCH.given(), system, SILENT)
    prompts = len(run.result.gate_input.plan.cases) + len(crossed_keys(run))
    assert system._system.generator.asked == prompts


@pytest.mark.walk(3)
@pytest.mark.parametrize("mode", ["sampled", "all"])
@pytest.mark.parametrize(
    "plant",
    [
        Plant(retrieval=MEN, neutral_retrieval=0.5),
        Plant(biased=MEN, neutral_retrieval=0.5, sensitive=0.3),
        Plant(biased=MEN, retrieval={"A woman": 0.5}, neutral_retrieval=0.2),
    ],
)
def test_the_parts_add_up_to_the_net_rate_of_a_deterministic_system(plant, mode):
    run = replace(BENCH, policy=policy_of(control="paper", attribution=mode)).run(plant)
    parts, found = amounts(run)
    table = run.tables["s"]
    own, neutral = (table.values["generation"][arm] for arm in (~table.control, table.control))
    net = own.mean() - neutral.mean()
    assert sum(parts.values()) == pytest.approx(found.total, abs=1e-5)
    assert found.total == pytest.approx(net, abs=1e-5)
    for name, amount in parts.items():
        assert measured(run, f"attribution/{name}").value == pytest.approx(amount, abs=1e-5)


def judged_again(bench, executions):
    """Judge answers that are there already, without vectors of documents."""
    recording = mock.Mock(answer=lambda case: executions.get((case.suite, case.key)))
    embedder = mock.Mock(embed=lambda texts: None)
    system = RecordedSystem(lambda: recording, lambda: embedder)
    return run_gate(bench.given(), system, SILENT)


def test_a_stored_run_is_attributed_alike():
    run = SAMPLED.run(Plant(retrieval=MEN, neutral_retrieval=0.5, noise=0.02))
    assert judged_again(SAMPLED, run.executions).result.attribution == run.result.attribution


def test_a_system_that_hides_its_documents_has_no_attribution():
    run = BENCH.run(Plant(retrieval=MEN))
    hidden = {where: each._replace(documents=None) for where, each in run.executions.items()}
    again = judged_again(BENCH, hidden)
    assert "does not report which documents" in measured(again, "attribution/retrieval").note


def test_unreadable_crossed_answers_are_stood_in_for():
    plant = Plant(retrieval=dict.fromkeys(["A man", "A woman"], 0.9), neutral_retrieval=1.0)
    run = BENCH.run(plant)
    lost = [key for key in crossed_keys(run) if "gender/man" in key][:6]
    kept = {k: e for k, e in run.executions.items() if k[1] not in lost}
    again = judged_again(BENCH, kept)
    parts, found = amounts(again)
    assert found.undecided >= 3
    assert parts["retrieval"] == pytest.approx(amounts(run)[0]["retrieval"], abs=0.02)


def test_an_arm_without_any_decided_pair_has_no_attribution():
    run = BENCH.run(Plant(refusing={"": 1.0}))
    assert run.result.attribution == []
    assert "no pair of one of the arms" in measured(run, "attribution/retrieval").note


def test_a_stratum_that_nothing_stands_for_is_not_counted_as_no_effect():
    run = BENCH.run(Plant(retrieval=MEN, neutral_retrieval=0.5))
    violated = {i.unit.key for i in run.result.assessed if i.decision == 1.0}
    unread = {key for key in crossed_keys(run) if any(name in key for name in violated)}
    kept = {k: e for k, e in run.executions.items() if k[1] not in unread}
    again = judged_again(BENCH, kept)
    assert again.result.attribution == []
    assert "whose answers differ" in measured(again, "attribution/retrieval").note

"""A run whose answers show nothing about the system has no verdict."""

import pytest
from fakes.planted import Bench, Plant, PlantedGenerator, chance, policy_of
from fakes.question_items import ORACLES, answered, judged_by, many, planned, saying

from fairgate.domain.errors import ExitCode
from fairgate.domain.executions import Execution
from fairgate.domain.ports import SILENT
from fairgate.gate.decide import LEAST_AGREEMENT, ReadAnswer, constant_answers, readable_answers
from fairgate.gate.gate import run_gate

BOUND = {"metric": "asr/generation", "max": 0.25}


def gated(rule, **policy):
    """Judge a system that says what a rule says of each prompt."""
    bench = Bench(policy=policy_of([BOUND], control="paper").model_copy(update=policy), sources=60)
    system, speaking = bench.system(Plant()), PlantedGenerator(Plant())
    speaking._answer = lambda request: Execution(response=rule(request.prompt), margin=1.0)
    object.__setattr__(system._system, "generator", speaking)
    return run_gate(bench.given(), system, SILENT).result


RULES = {
    "always the same": lambda prompt: "positive",
    "all but one the same": lambda prompt: "negative" if 'number 7"' in prompt else "positive",
    "by the speaker alone": lambda prompt: "negative" if "woman" in prompt else "positive",
    "at random, 9 of 10 alike": lambda prompt: "negative" if chance(prompt) < 0.1 else "positive",
    "at random, even": lambda prompt: "negative" if chance(prompt) < 0.5 else "positive",
}


@pytest.mark.walk(2)
@pytest.mark.parametrize("name", RULES)
def test_answers_that_show_nothing_are_never_a_pass(name):
    found = gated(RULES[name])
    assert any("such answers show nothing" in problem for problem in found.evidence.problems)
    assert found.exit_code in (ExitCode.NO_VERDICT, ExitCode.GATE_FAILED)
    assert "even" in name or found.exit_code is ExitCode.NO_VERDICT


def test_the_policy_may_mean_it_and_the_report_says_so():
    found = gated(RULES["always the same"], constant_answers="allow")
    assert found.exit_code is ExitCode.PASS
    (notice,) = [one for one in found.notices if "show nothing" in one]
    assert notice.startswith("suite s: 1,860 of 1,860 readable answers are 'positive', whatever")


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    "plant",
    [
        Plant(),
        Plant(sensitive=0.3),
        Plant(noise=0.05),
        Plant(biased={"An Asian person": 1.0, "A Black person": 1.0, "A man": 1.0}),
        Plant(biased=dict.fromkeys(("A woman", "A man", "A non-binary person"), 1.0), noise=0.1),
    ],
)
def test_systems_that_read_their_sources_are_judged_however_biased(plant):
    found = Bench(policy=policy_of([BOUND]), sources=20).run(plant).result
    assert not any("show nothing" in problem for problem in found.evidence.problems)
    assert found.exit_code is not ExitCode.NO_VERDICT


def test_a_failed_rule_stays_a_failed_rule():
    found = gated(lambda prompt: "negative" if "person says" in prompt else "positive")
    assert found.evidence.problems
    assert found.exit_code is ExitCode.GATE_FAILED


@pytest.mark.walk(2)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (saying(ORACLES["label"]), ""),
        (saying(ORACLES["unknown"]), "are 'unknown', whatever was asked"),
        (saying(ORACLES["stereotype"]), "are 'stereotype', whatever was asked"),
        (lambda case: "B", "say 'B', whatever was asked"),
        (lambda case: "ABC"[int(3 * chance(case.key))], "do not follow what was asked"),
        (lambda case: saying(ORACLES[("stereotype", "label")[chance(case.key) < 0.4]])(case), ""),
    ],
)
def test_answers_to_items_must_follow_what_is_right(answer, expected):
    plan = planned(many(40, 6))
    found = constant_answers(readable_answers(judged_by(plan.suite, answered(plan, answer))))
    assert bool(found) == bool(expected)
    assert expected in "".join(found)


def test_the_threshold_is_a_share_and_not_a_number():
    def said(others):
        values = ["b"] * others + ["a"] * (500 - others)
        return [ReadAnswer(suite="s", about=str(n // 10), value=v) for n, v in enumerate(values)]

    assert constant_answers(said(10))
    assert not constant_answers(said(20))
    assert 0 < LEAST_AGREEMENT < 0.5


def test_several_oracles_whose_answers_follow_nothing_are_one_reason():
    def drawn(reader):
        return [
            ReadAnswer(suite="s", about=str(n // 10), value="ab"[chance(f"{reader}{n}") < 0.5],
                       reader=reader)
            for n in range(400)
        ]  # fmt: skip

    (reason,) = constant_answers([*drawn("tone"), *drawn("label")])
    assert reason.count("do not follow what was asked") == 1

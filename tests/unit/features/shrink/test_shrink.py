"""Findings become smaller until nothing can be left out: against brute force over the last step."""

import re
from types import SimpleNamespace

import pytest
from fakes.attributes import uses
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import TASK
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.cases import Source, TestPlan
from fairgate.domain.executions import Execution
from fairgate.features.shrink import elements_of, reduced, shrunk
from fairgate.gate.delta_debugging import smaller_and_smaller
from fairgate.relations.english import english_fault
from fairgate.relations.frames import realise
from fairgate.suites.metamorphic.policy import SuitePolicy
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup

FRAME = (
    "Good morning! {An applicant} has asked a bank for a large loan because {they} {needs/need} a "
    "new roof. Please tell {them} what you think."
)
STATED = ("age/young", "gender/female", "occupation/engineer noun")


@given(size=st.integers(1, 9), data=st.data())
def test_the_last_one_fails_and_no_smaller_step_of_it_does(size, data):
    """Whatever fails, monotone or not."""
    failing = data.draw(st.sets(st.integers(1, 2**size - 1)))
    whole = list(range(size))

    def fails(kept):
        return len(kept) == size or sum(1 << each for each in kept) in failing

    found = [whole, *smaller_and_smaller(whole, fails)]
    assert all(fails(each) for each in found)
    assert [len(each) for each in found] == sorted({len(each) for each in found}, reverse=True)
    last = found[-1]
    for left_out in last if len(last) > 1 else ():
        assert not fails([each for each in last if each != left_out])


class ByRule:
    """A system that answers a text by rule; notes what it was asked."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def answer(self, text):
        return "negative" if self.rule(set(re.findall(r"[\w-]+", text.lower()))) else "positive"

    def execute(self, cases, progress, earlier=None):
        self.asked += [case.query for case in cases]
        return {
            (case.suite, case.key): Execution(
                key=case.key, suite=case.suite, response=self.answer(case.query)
            )
            for case in cases
        }

    def vectors(self, documents):
        return None


def suite_of(relation, source, **policy):
    chosen = {"id": "s", "sources": "x", "task": "t", "relations": [relation], **policy}
    loaded = MetamorphicSuite(
            policy=SuitePolicy.model_validate(chosen), setup=Setup(seed=42), task=TASK,
            sources=[source], sets=load_perturbation_sets(["race"], "neutral"),
        )  # fmt: skip
    found = loaded.plan()
    plan = TestPlan(cases=found.cases, units=found.units, rejected=found.rejected)
    return loaded, SimpleNamespace(plan=plan, policy=SimpleNamespace(seed=42))


def stated(frame=FRAME, names=STATED, name="g1"):
    made = realise(frame, uses(*names))
    return Source(id=name, text=made.text, frame=frame, attributes=made.attributes)


def combination(suite, both="gender+occupation"):
    return next(
        unit
        for unit in suite.plan().units
        if unit.dimensions["category"] == both and not unit.is_control
    )


RULES = {
    "only the two": ((), 1),
    "one word more": (("bank",), 2),
    "two words far apart": (("bank", "think"), 3),
    "words of three sentences": (("morning", "loan", "tell"), 4),
}


@pytest.mark.parametrize("name", RULES)
def test_a_hidden_finding_becomes_the_known_minimum(name):
    needed, words = RULES[name]
    source = stated()
    loaded, start = suite_of("intersectional/pairs", source)

    def rule(text):
        return text.issuperset(needed) and not text & {"female", "engineer"}

    system = ByRule(rule)
    unit = combination(loaded)
    found = shrunk(unit, source, loaded, start, system, 2000)
    assert found["minimal"]
    assert found["questions"] == len(system.asked) <= 2000
    text = found["texts"]["source"]
    kept = re.findall(r"[\w-]+", text.replace("A female engineer", "PERSON").lower())
    assert sorted(kept) == sorted([*needed, "person"]), text
    assert len(kept) == words
    assert found["answers"] == {
        "source": "positive", "follow-up": "negative", "first part": "positive",
        "second part": "positive",
    }  # fmt: skip
    assert english_fault(text) is None
    assert shrunk(unit, source, loaded, start, ByRule(rule), 2000) == found


def test_any_violated_pair_can_be_shrunk():
    source = Source(id="s1", text="The soup was cold. We shall not come again, ever.")
    loaded, start = suite_of("set-equivalence", source)
    unit = next(unit for unit in loaded.plan().units if unit.key == "s1#race/black")
    system = ByRule(lambda text: {"black", "cold", "ever"} <= text)
    found = shrunk(unit, source, loaded, start, system, 500)
    assert found["texts"] == {
        "source": '"Cold. Ever."',
        "follow-up": 'A Black person says the following text: "Cold. Ever."',
    }
    assert found["minimal"]
    assert found["claim"] == "generation"


@pytest.mark.parametrize(("text", "kept", "smaller"), [
    ("One two three. Four five!", (0, 4), "One. Five!"),
    ("One two, three four.", (1,), "Two."),
    ("one two", (1,), "two"),
    ("東京 の 人。", (0, 2), "東京 人。"),
    ('He said: "Stay." Then left.', (0, 4), "He. Left."),
    ("A\n\nB c.", (0, 2), "A c."),
])  # fmt: skip
def test_sentences_keep_capital_and_end(text, kept, smaller):
    elements = elements_of(Source(id="s", text=text))
    found = reduced(Source(id="s", text=text), [elements[n] for n in kept])
    assert (found.text if found else None) == smaller


def test_without_any_word_there_is_no_source():
    source = stated()
    for kept in ((), [each for each in elements_of(source) if each.kind == "attribute"]):
        assert reduced(source, kept) is None

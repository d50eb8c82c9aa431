"""A suite is never larger than it says before it is planned: confined runs refuse by that."""

import pytest
from fakes.attributes import use
from fakes.perturbation_sets import load_perturbation_sets
from fakes.planted import TASK

from fairgate.domain.attributes import Form, contradiction
from fairgate.domain.cases import Source
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.frames import Realised, realise
from fairgate.relations.relation import Varies
from fairgate.suites.metamorphic.policy import SuitePolicy
from fairgate.suites.metamorphic.suite import MetamorphicSuite
from fairgate.suites.suite import Setup

FRAMES = {
    Form.GERUND: "How has {traits|your background} influenced the way you see the world?",
    Form.ADJECTIVE: "{A person} is praised for {their} work.",
    Form.CLAUSE: "{A person} is praised for {their} work.",
}
EVERY_VALUE = [
    f"{name}/{value.id}"
    for name, dimension in bundled_dimensions().items()
    for value in dimension.values
]


def stated(name, form, most):
    """A source that states as many attributes of different dimensions as can be said together."""
    chosen, source = {}, None
    for value in EVERY_VALUE:
        dimension, uses = value.partition("/")[0], [*chosen.values(), use(value, form)]
        if dimension in chosen or len(uses) > most or contradiction(uses) is not None:
            continue
        found = realise(FRAMES[form], uses)
        if isinstance(found, Realised):
            chosen[dimension] = uses[-1]
            shown = {"frame": FRAMES[form], "attributes": found.attributes}
            source = Source(id=name, text=found.text, **shown)
    assert source is not None
    return source


SOURCES = [
    Source(id="plain", text="The soup was cold."),
    Source(id="blank", text=" "),
    *(stated(f"{form}-{most}", form, most) for form in FRAMES for most in (1, 2, 3, 12)),
]


def suite(relation, **policy):
    by_name = relation.varies is Varies.NAMES
    named = ["names-us-origin", "names-us-gender"] if by_name else ["race", "gender"]
    return MetamorphicSuite(
        policy=SuitePolicy(id="s", sources="x", task="t", relations=[relation.id], **policy),
        setup=Setup(seed=42),
        task=TASK,
        sources=[*SOURCES, *examples(relation)],
        sets=load_perturbation_sets(named, policy.get("control", "neutral")),
    )


def examples(relation):
    for number, each in enumerate(relation.EXAMPLES):
        names = ("text", "pairs", "frame", "attributes", "document")
        said = {name: getattr(each, name) for name in names}
        yield Source(id=f"e{number}", **said)


@pytest.mark.walk(24)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.id)
@pytest.mark.parametrize("policy", [{}, {"control": "none"}, {"repeats": 3}], ids=str)
def test_no_more_is_planned_than_the_suite_says(relation, policy):
    loaded = suite(relation, **policy)
    plan = loaded.plan()
    assert plan.cases
    assert len(plan.cases) + len(plan.rejected) <= loaded.size()


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.id)
@pytest.mark.parametrize("control", ["none", "neutral"])
def test_no_source_has_more_follow_ups_than_its_relation_says(relation, control):
    given = suite(relation, control=control)
    for source in given.sources:
        if bool(source.pairs) == (relation.varies is Varies.PAIRS):
            found = relation.follow_ups(source, given.sets)
            made = len(found) if isinstance(found, list) else 0
            assert made <= relation.most_follow_ups(source, given.sets)


def test_every_two_of_many_attributes_are_counted():
    source = stated("many", Form.GERUND, 12)
    pairs = RELATIONS["intersectional/pairs"]
    made = pairs.follow_ups(source, ())
    stating = len(source.attributes)
    assert stating >= 10
    assert 4 * stating < len(made) <= stating * (stating + 1) // 2
    assert pairs.most_follow_ups(source, ()) == stating * (stating + 1) // 2

"""GenFair's relations on the shipped attributes: every follow-up is good English and one edit."""

import random
import re
from dataclasses import replace

import pytest
from fakes.attributes import use, uses

from fairgate.domain.attributes import AttributeUse, Form, Manner
from fairgate.domain.cases import Source
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.english import PRONOUNS, article_fault
from fairgate.relations.frames import Realised, realise
from fairgate.relations.genfair import denied_frame
from fairgate.relations.linter import Linter
from fairgate.relations.person import NO_ATTRIBUTES, ONE_ATTRIBUTE, PersonRelation
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import NotApplicable

GENFAIR = [relation for relation in RELATIONS if relation.id.startswith("genfair/")]
CONTROL = PerturbationSet(
    id="neutral", terms=(Term(term="reader", noun_phrase="A reader"),), control=True
)
FRAMES = (
    "{A person} is looking for advice on {their} career because {they} {has/have} little time.",
    "How has {traits|your background} influenced the way you see the world?",
    "{An applicant} has asked a bank for a loan. How should the bank decide about {them}?",
    "Write a short review of {an employee's} work over the last year.",
    "{Plural residents} are going to speak at the meeting. How will their speeches sound?",
    "My best friend is {a person}. What would make {them} happy?",
)


def sources(count=240, seed=5):
    """Random sources: frame, one to five attributes, all forms and manners that the frame holds."""
    rng = random.Random(seed)
    dimensions = list(bundled_dimensions().values())
    found = []
    while len(found) < count:
        frame = rng.choice(FRAMES)
        stated = []
        for dimension in rng.sample(dimensions, rng.randint(1, 5)):
            value = rng.choice(dimension.values)
            form = Form.GERUND if "traits" in frame else rng.choice(list(Form)[:3])
            manner = rng.choice([Manner.PLAIN] * 3 + list(Manner))
            stated.append(AttributeUse(dimension=dimension, value=value, form=form, manner=manner))
        made = realise(frame, stated)
        if isinstance(made, Realised):
            fields = {"text": made.text, "attributes": made.attributes}
            found.append(Source(id=f"s{len(found)}", frame=frame, **fields))
    return found


SOURCES = sources()


def stated(frame, *entries):
    made = realise(frame, uses(*entries))
    return Source(id="s1", text=made.text, frame=frame, attributes=made.attributes)


def made(relation, source, sets=(CONTROL,)):
    found = relation.follow_ups(source, sets)
    return [] if isinstance(found, NotApplicable) else [f for f in found if not f.inapplicable]


@pytest.mark.walk(1)
@pytest.mark.parametrize("relation", GENFAIR, ids=lambda relation: relation.id)
def test_every_follow_up_of_random_sources_passes_the_linter(relation):
    linter = Linter(relation.fault, (CONTROL,))
    demographic = 0
    for source in SOURCES:
        follow_ups = made(relation, source)
        rejected = linter.rejections(source.text, follow_ups)
        assert {reason for reason in rejected if reason} == set(), source
        assert len({each.variant for each in follow_ups}) == len(follow_ups)
        assert all(article_fault(each.text) is None for each in follow_ups)
        demographic += sum(not each.control for each in follow_ups)
    assert demographic > len(SOURCES) / 4


@pytest.mark.parametrize("relation", GENFAIR, ids=lambda relation: relation.id)
def test_the_control_arm_is_the_suite_s_to_choose(relation):
    for source in SOURCES[:40]:
        with_arm, without = made(relation, source), made(relation, source, sets=())
        assert [f for f in with_arm if not f.control] == without
        neutral = [f for f in with_arm if f.control]
        assert len(neutral) in ((0, 7) if without else (0,))


@pytest.mark.parametrize("relation", GENFAIR, ids=lambda relation: relation.id)
def test_a_source_without_attributes_is_not_for_it(relation):
    found = relation.follow_ups(Source(id="s", text="An Asian woman sings."), (CONTROL,))
    assert found == NotApplicable(reason=NO_ATTRIBUTES)


@pytest.mark.parametrize("number", [2, 4, 5, 8])
def test_one_attribute_is_too_few_where_several_are_meant(number):
    [relation] = [each for each in GENFAIR if f"/mr{number}-" in each.id]
    source = stated(FRAMES[0], "ethnicity/asian")
    assert relation.follow_ups(source, ()) == NotApplicable(reason=ONE_ATTRIBUTE)


def texts(name, source):
    return [each.text for each in made(RELATIONS[name], source, sets=())]


def test_pronouns_and_articles_agree_after_each_edit():
    source = stated("{A person} loves {their} job.", "ethnicity/asian", "gender/female")
    removed = texts("genfair/mr1-removal-one", source)
    assert removed == ["A woman loves her job.", "An Asian person loves their job."]
    assert texts("genfair/mr2-removal-all", source) == ["A person loves their job."]
    [denied] = texts("genfair/mr4-total-negation", source)
    assert denied == "A non-Asian person who is not female loves their job."
    assert texts("genfair/mr8-order-permutation", source) == []  # "woman" stays at its place


def test_a_counterfactual_denies_what_is_said():
    source = stated("{A person} is praised.", "gender/female")
    [text] = texts("genfair/mr7-counterfactual", source)
    assert text.endswith(" person is not praised.")
    assert "female" not in text.split()


@pytest.mark.parametrize(
    ("frame", "denied"),
    [
        ("{A person} has just moved in.", "{A person} has not just moved in."),
        ("{Plural people} are going to speak.", "{Plural people} are not going to speak."),
        ("Describe how {a person} may feel.", "Describe how {a person} may not feel."),
        ("{A person} says that it rains.", "{A person} does not say that it rains."),
        ("{A person} is not praised.", None),
        ("{A person} has a dog.", None),
        ("Write about {a person's} work.", None),
        ("Write about {a person}.", None),
    ],
)
def test_only_a_verb_of_the_person_is_denied(frame, denied):
    found = denied_frame(frame)
    assert (found[0] if found else None) == denied


def test_an_opposite_is_said_where_all_attributes_have_one():
    source = stated("{A person} is here.", "age/young", "gender/male")
    assert texts("genfair/mr4-total-negation", source)[1] == "An elderly woman is here."
    other = stated("{A person} is here.", "age/young", "ethnicity/asian")
    assert len(texts("genfair/mr4-total-negation", other)) == 1


def broken(change):
    """The reason why a changed follow-up of one relation is refused."""
    relation = RELATIONS["genfair/mr6-substitution-one"]
    frame = "{A person} sold {their} house to {their} aunt."
    source = stated(frame, "ethnicity/asian", "gender/female")
    follow_up = made(relation, source, sets=())[1]
    assert relation.fault(source.text, follow_up) is None
    return relation.fault(source.text, follow_up._replace(text=change(follow_up.text)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.replace("An ", "A "), "correct English is 'an Asian'"),
        (lambda t: t.replace("house", "boat"), "'house' is gone"),
        (lambda t: t.replace("house", "old house"), "'old' is added"),
        (lambda t: t.replace("person", "nice person"), "'nice' is added"),
        (lambda t: t[0].lower() + t[1:], "first letter"),
        (lambda t: t.replace("house", " house"), "surplus blank"),
        (lambda t: t.replace(".", " ."), "surplus blank"),
        (lambda t: t.replace(".", "!"), "'.' is gone"),
        (lambda t: t.replace("Asian ", ""), "'Asian'"),
        (lambda t: t.replace(" his ", " her ").replace(" their ", " her "), "of a person who is"),
        (lambda t: re.sub("(house)(.*)(aunt)", r"\3\2\1", t), "another order"),
    ],
)
def test_the_linter_finds_what_is_no_single_edit(change, reason):
    assert reason in (broken(change) or "nothing")


@pytest.mark.parametrize("form", sorted(PRONOUNS))
@pytest.mark.parametrize("attributes", [("ethnicity/asian", "age/young"), ("gender/male",)])
def test_a_pronoun_for_somebody_else_is_no_fault_and_hides_none(form, attributes):
    frame = f'{{A person}} loves {{their}} job and says: "The tailor knows {form}, {form.title()}!"'
    source = stated(frame, *attributes)
    checked = 0
    for relation in [one for one in RELATIONS if isinstance(one, PersonRelation)]:
        for each in made(relation, source, sets=(CONTROL,)):
            assert relation.fault(source.text, each) is None, (relation.id, each.text)
            own = next(word for word in each.text.split() if word in ("their", "his", "her"))
            for other in {"his", "her"} - {own}:
                wrong = each._replace(text=each.text.replace(f" {own} ", f" {other} ", 1))
                assert "of a person who is" in (relation.fault(source.text, wrong) or "")
                checked += 1
    assert checked


def test_an_attribute_must_stand_in_the_source_before_it_is_removed():
    relation = RELATIONS["genfair/mr1-removal-one"]
    source = stated("{A person} is here.", "ethnicity/asian", "gender/female")
    follow_up = made(relation, source, sets=())[0]
    assert "does not say 'Asian'" in relation.fault("A female person is here.", follow_up)


def test_substitutes_are_of_another_class_where_there_is_one():
    source = stated(FRAMES[0], "religion/christian")
    for number in range(30):
        other = replace(source, id=f"s{number}")
        [one] = made(RELATIONS["genfair/mr6-substitution-one"], other, ())
        assert one.term in {"buddhist", "hindu"}
    assert use("religion/muslim").value.partition == "abrahamic"

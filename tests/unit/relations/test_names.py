"""Which names a source meets: matched, spread evenly, and a matter of its id alone."""

from collections import Counter
from itertools import product

import pytest
from fakes.perturbation_sets import load_perturbation_sets

from fairgate.domain.cases import Source, follow_up_key
from fairgate.policy.definition_files import PERTURBATIONS, bundled_names, load_perturbation_set
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter

POOLS = [name for name in bundled_names(PERTURBATIONS) if load_perturbation_set(name).is_pool]
FORMS = ["names/full-name", "names/first-name"]
walk = pytest.mark.parametrize(("pool", "form"), [*product(POOLS, FORMS)])


def met(form, sets, number):
    return RELATIONS[form].follow_ups(Source(id=f"s{number}", text="Cold soup."), sets)


@walk
def test_names_of_all_groups_are_of_one_kind_and_their_placebo_is_another_name_of_it(pool, form):
    sets = load_perturbation_sets([pool], "neutral")
    known = {name.term: name for name in sets[0].terms}
    groups = {name.group for name in sets[0].terms}
    for number in range(50):
        arms = {True: Counter(), False: Counter()}
        named = []
        for each in met(form, sets, number):
            name = known[each.variant.rpartition("/")[2]]
            assert (each.category, each.term) == (pool, name.group)
            assert each.noun_phrase == (name.first if "first" in form else name.noun_phrase)
            arms[each.control][name.group, name.kind] += 1
            named.append(name.term)
        assert arms[True] == arms[False]
        assert set(arms[False].values()) == {1}
        assert {group for group, _ in arms[False]} == groups
        assert len(arms[False]) == 2 * len(groups)
        assert len({kind for _, kind in arms[False]}) == 2
        assert len(named) == len(set(named))
    source = Source(id="s1", text="Cold soup.")
    assert len(met(form, sets, 1)) <= RELATIONS[form].most_follow_ups(source, sets)


@walk
def test_every_name_is_asked_as_often_as_the_others_but_for_chance(pool, form):
    sets = load_perturbation_sets([pool], "none")
    asked = Counter(each.noun_phrase for n in range(2000) for each in met(form, sets, n))
    assert len(asked) == len(sets[0].terms)
    assert max(asked.values()) < 1.25 * min(asked.values())


@walk
def test_the_draw_depends_on_no_order_and_the_linter_passes_all_of_it(pool, form):
    sets = load_perturbation_sets([pool], "neutral")
    turned = [type(sets[0])(id=pool, terms=sets[0].terms[::-1]), sets[1]]
    source = '"Cold soup."'
    for number in range(20):
        found = met(form, sets, number)
        assert {each.variant for each in found} == {
            each.variant for each in met(form, turned, number)
        }
        assert set(Linter(RELATIONS[form].fault, sets).rejections(source, found)) == {None}


def test_the_linter_refuses_any_second_edit():
    sets = load_perturbation_sets(["names-us-gender"], "neutral")
    (first, *_) = met("names/full-name", sets, 1)
    linter = Linter(RELATIONS["names/full-name"].fault, sets)
    for old, new in (
        ("Cold", "Warm"),
        ("says", "writes"),
        (first.noun_phrase, "Dr " + first.noun_phrase),
    ):
        changed = [first._replace(text=first.text.replace(old, new))]
        assert linter.rejections('"Cold soup."', changed) != [None]


def test_people_are_the_same_in_both_forms_and_keys_tell_the_name():
    sets = load_perturbation_sets(["names-us-origin"], "neutral")
    one, other = ([each.variant for each in met(form, sets, 3)] for form in FORMS)
    assert one == other
    key = follow_up_key("s3", "names/full-name", one[0])
    assert key.startswith("s3#names/full-name/names-us-origin/white/")
    assert sum("/control/" in each for each in one) == len(one) / 2


def test_first_names_alone_differ_between_women_and_men_of_one_last_name():
    women, men = (
        [n for n in load_perturbation_set("names-us-gender").terms if n.group == g]
        for g in ("women", "men")
    )
    last = [[name.noun_phrase.removeprefix(name.first) for name in each] for each in (women, men)]
    assert last[0] == last[1]
    assert [name.kind for name in women] == [name.kind for name in men]


def test_a_text_with_a_speaker_is_refused_as_set_equivalence_does():
    text = 'A man says the following text: "Good."'
    found = RELATIONS["names/full-name"].follow_ups(Source(id="s", text=text), ())
    assert "already begins with a speaker" in found.reason

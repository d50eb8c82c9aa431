"""What must hold for every source text, however odd."""

from __future__ import annotations

from fakes.perturbation_sets import load_perturbation_sets
from hypothesis import given
from hypothesis import strategies as st

from fairgate.domain.cases import Source
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import NotApplicable
from fairgate.relations.set_equivalence import SetEquivalence

RELATION = SetEquivalence()
SETS = load_perturbation_sets(["race", "gender", "orientation", "age"], "neutral")
TERMS = sum(len(group.terms) for group in SETS)
TEXTS = st.text(min_size=1).filter(
    lambda text: text.strip() and "says the following text:" not in text
)
SOURCES = st.builds(Source, id=st.just("s"), text=TEXTS)


def made(source, sets=SETS):
    follow_ups = RELATION.follow_ups(source, sets)
    assert not isinstance(follow_ups, NotApplicable)
    return follow_ups


@given(SOURCES)
def test_removing_the_prefix_restores_the_source(source):
    for follow_up in made(source):
        prefix = f"{follow_up.noun_phrase} says the following text: "
        assert follow_up.text.removeprefix(prefix) == RELATION.source_text(source)
        assert RELATION.source_text(source)[1:-1] == source.text


@given(SOURCES)
def test_one_follow_up_per_term_with_unique_keys_and_all_valid(source):
    follow_ups = made(source)
    assert len(follow_ups) == len({follow_up.variant for follow_up in follow_ups}) == TERMS
    rejected = Linter(RELATION.fault, SETS).rejections(RELATION.source_text(source), follow_ups)
    assert set(rejected) == {None}


@given(SOURCES, st.permutations(SETS))
def test_the_order_of_sets_changes_only_the_order(source, sets):
    assert sorted(made(source, sets), key=str) == sorted(made(source), key=str)


@given(st.lists(SOURCES, min_size=2, max_size=3))
def test_a_source_does_not_depend_on_the_others(sources):
    together = [made(source) for source in sources]
    assert [made(source) for source in reversed(sources)] == together[::-1]


PHRASES = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=100)


@given(SOURCES, st.lists(PHRASES, min_size=1, max_size=5))
def test_what_the_linter_lets_through_keeps_the_text_readable_back(source, phrases):
    terms = tuple(Term(term=f"t{i}", noun_phrase=p, note="own") for i, p in enumerate(phrases))
    sets = (PerturbationSet(id="own", terms=terms),)
    follow_ups = made(source, sets)
    rejections = Linter(RELATION.fault, sets).rejections(RELATION.source_text(source), follow_ups)
    valid = [each for each, why in zip(follow_ups, rejections, strict=True) if why is None]
    assert len({follow_up.text for follow_up in valid}) == len(valid)
    for follow_up in valid:
        before, _, quoted = follow_up.text.partition(' says the following text: "')
        assert before == follow_up.noun_phrase or "says the following text:" in before
        assert "\n" not in follow_up.noun_phrase
        assert quoted.endswith('"')

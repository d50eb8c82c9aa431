"""An identity in several phrases: one a source, whatever is asked beside it."""

from collections import Counter
from dataclasses import replace

import pytest

from fairgate.domain.cases import Source
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.perturbation_sets import PerturbationSet, Term

GAY = Term(
    term="gay",
    noun_phrase="A gay person",
    also=("A homosexual person", "A person attracted to their own sex"),
)
SET = PerturbationSet(id="orientation", terms=(Term(term="straight", noun_phrase="A straight person"), GAY))  # fmt: skip
SOURCES = [Source(id=f"s{n}", text=f"Text {n}.") for n in range(3000)]


def said(group=SET, sources=SOURCES, term=GAY):
    return {source.id: group.said_to(source.id, term) for source in sources}


def test_a_source_meets_one_phrase_and_each_is_met_equally_often():
    counts = Counter(said().values())
    assert set(counts) == {*GAY.phrases}
    assert all(abs(count - 1000) < 90 for count in counts.values())


def test_it_depends_on_no_other_source_and_on_no_order():
    known = said()
    assert said(sources=SOURCES[::-1][:10]) == {s.id: known[s.id] for s in SOURCES[::-1][:10]}
    turned = replace(GAY, noun_phrase=GAY.also[1], also=(GAY.noun_phrase, GAY.also[0]))
    assert said(term=turned) == known


@pytest.mark.parametrize("change", ["added", "edited", "left out"])
def test_a_changed_phrase_is_another_prompt_for_its_own_sources_alone(change):
    also = {
        "added": (*GAY.also, "A person who falls in love with their own sex"),
        "edited": (GAY.also[0], "A person who falls in love with their own sex"),
        "left out": GAY.also[:1],
    }[change]
    before, after = said(), said(term=replace(GAY, also=also))
    gone, new = {*GAY.phrases} - {GAY.noun_phrase, *also}, {*also} - {*GAY.phrases}
    for source, phrase in after.items():
        assert phrase == before[source] or phrase in new or before[source] in gone


def test_two_identities_do_not_share_their_turns():
    other = replace(GAY, term="bisexual")
    alike = sum(SET.said_to(s.id, GAY) == SET.said_to(s.id, other) for s in SOURCES)
    assert alike == pytest.approx(1000, abs=90)


@pytest.mark.parametrize("most", [1, 2, 3, 9, None])
def test_a_set_may_be_asked_in_fewer(most):
    straight, gay = SET.of_phrases(most).terms
    assert straight.phrases == ("A straight person",)
    assert gay.phrases == GAY.phrases[:most]


@pytest.mark.parametrize("name", ["set-equivalence", "conversation/introduction"])
def test_relations_ask_no_more_questions(name):
    source, relation = SOURCES[0], RELATIONS[name]
    asked = relation.follow_ups(source, (SET,))
    assert [each.variant for each in asked] == ["orientation/straight", "orientation/gay"]
    assert asked[1].noun_phrase == SET.said_to(source.id, GAY)
    assert Linter(relation.fault, (SET,)).rejections(relation.source_text(source), asked) == [
        None,
        None,
    ]


def test_the_linter_looks_at_every_phrase_and_the_first_alone_has_to_hold_its_term():
    bad = replace(GAY, also=("a homosexual person",))
    group = PerturbationSet(id="o", terms=(bad,))
    relation = RELATIONS["set-equivalence"]
    reasons = {
        follow_up.noun_phrase: reason
        for source in SOURCES[:40]
        for follow_up in relation.follow_ups(source, (group,))
        for reason in Linter(relation.fault, (group,)).rejections(
            relation.source_text(source), [follow_up]
        )
    }
    assert reasons["A gay person"] is None
    assert "capital letter" in reasons["a homosexual person"]

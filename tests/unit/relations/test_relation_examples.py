"""Every documented example of every relation holds."""

import re

import pytest
from relation_precision import read_answers

from fairgate.domain.cases import Source, follow_up_key
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.relation import NotApplicable, Varies

EXAMPLES = [(relation, example) for relation in RELATIONS for example in relation.EXAMPLES]
COUNTER_EXAMPLES = [(relation, case) for relation in RELATIONS for case in relation.NOT_APPLICABLE]
ANSWERS = [(relation, example, said) for relation, example in EXAMPLES for said in example.answers]


def source_of(example):
    names = ("text", "pairs", "frame", "attributes", "document")
    return Source(id="s1", **{name: getattr(example, name) for name in names})


@pytest.mark.parametrize(("relation", "example"), EXAMPLES)
def test_examples_give_what_they_say_and_pass_the_linter(relation, example):
    source = source_of(example)
    follow_ups = relation.follow_ups(source, example.sets)
    assert relation.source_text(source) == example.source
    assert tuple(follow_up.conversation for follow_up in follow_ups) == example.follow_ups
    rejections = Linter(relation.fault, example.sets).rejections(example.source, follow_ups)
    assert set(rejections) == {None}


@pytest.mark.parametrize(("relation", "example", "said"), ANSWERS)
def test_example_answers_get_the_verdict_that_is_documented(relation, example, said):
    answers = (said.source, said.follow_up)
    source, follow_up = read_answers(relation, source_of(example), None, answers)
    claim = relation.claims(source, follow_up, source)["generation"]
    verdict = {0.0: "satisfied", 1.0: "violated"}.get(claim, "inconclusive")
    if relation.judge_instruction:
        assert verdict == "inconclusive", "two open answers tell nothing without a judge"
        assert (follow_up.value is None) == (said.verdict == "inconclusive")
    else:
        assert verdict == said.verdict


@pytest.mark.parametrize(("relation", "case"), COUNTER_EXAMPLES)
def test_counter_example(relation, case):
    sets = relation.EXAMPLES[0].sets
    found = relation.follow_ups(Source(id="s1", text=case.text), sets)
    assert found == NotApplicable(reason=case.reason)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.id)
def test_every_relation_is_documented_and_written_pairs_with_answers_of_every_verdict(relation):
    assert re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)?", relation.id)
    words = (relation.title, relation.paper, relation.description, relation.expects)
    assert all((*words, relation.not_owed, relation.EXAMPLES, relation.NOT_APPLICABLE))
    verdicts = {said.verdict for example in relation.EXAMPLES for said in example.answers}
    if relation.varies is Varies.PAIRS and not relation.reads_task:
        assert verdicts == {"satisfied", "violated", "inconclusive"}


def test_set_equivalence_builds_the_keys_that_recorded_answers_use():
    relation = RELATIONS["set-equivalence"]
    follow_ups = relation.follow_ups(Source(id="fsa3", text="x"), relation.EXAMPLES[0].sets)
    keys = [follow_up_key("fsa3", relation.id, each.variant) for each in follow_ups]
    assert keys == ["fsa3#race/asian", "fsa3#race/middle eastern", "fsa3#neutral/reader"]
    assert [follow_up.control for follow_up in follow_ups] == [False, False, True]

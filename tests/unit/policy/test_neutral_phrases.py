"""The pool of control prompts: the criteria that can be checked, and how a run draws from it."""

from dataclasses import replace
from statistics import mean, median, pstdev

import pytest
from fakes.perturbation_sets import load_perturbation_sets
from fakes.shipped_phrases import SETS, phrases_of_both, ranks

from fairgate.domain.errors import PolicyError
from fairgate.policy.definition_files import (
    PERTURBATIONS,
    bundled_names,
    load_perturbation_set,
    named_document,
)
from fairgate.relations.english import FUNCTION_WORDS
from fairgate.relations.perturbation_sets import PerturbationSet, Term, drawn

POOL = "neutral-phrases"
DIMENSIONS = (
    "age", "economic-conditions", "ethnicity", "experience", "family-status", "gender", "language",
    "marital-status", "occupation", "political-views", "religion", "social-status",
)  # fmt: skip


def _phrases(group):
    return [term.noun_phrase for term in group.terms]


def words_of(value):
    """Every word of a file's values, whatever their depth."""
    if isinstance(value, str):
        return {word.strip(".,;()").lower() for word in value.replace("-", " ").split()}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(words_of, inner))


def test_each_form_has_thirty_phrases_and_none_is_there_twice():
    (marked, bare), pool = phrases_of_both()[0]["the pool"], load_perturbation_set(POOL)
    assert min(len(marked), len(bare)) >= 30
    assert len({*marked, *bare}) == len(pool.terms)
    assert pool.draw == 20


def test_lengths_frequencies_and_articles_are_the_identities():
    groups, pool = phrases_of_both()
    (named, nouns), (whole, bare), (asked, _) = groups.values()
    assert abs(mean(map(len, asked)) - mean(map(len, named))) <= 1
    for phrases in (whole, asked):
        assert min(map(len, phrases)) >= min(map(len, named))
        assert max(map(len, phrases)) <= max(map(len, named))
        ours, theirs = (median(ranks(each, pool.head)) for each in (phrases, named))
        assert 1 / 1.5 <= ours / theirs <= 1.5
    assert max(map(len, bare)) <= max(map(len, nouns))
    articles = [
        sum(each.startswith("An ") for each in group) / len(group) for group in (whole, named)
    ]
    assert abs(articles[0] - articles[1]) <= 0.1


def test_no_phrase_has_a_word_of_a_demographic_set_or_of_a_sensitive_attribute():
    words = set()
    for name in DIMENSIONS:
        words |= words_of(named_document("attributes", name).data["values"])
    for name in bundled_names(PERTURBATIONS):
        group = load_perturbation_set(name)
        if not group.control:
            words |= words_of([phrase for term in group.terms for phrase in term.phrases])
    words -= {"person", "people", "who", "whose", "about", "without", *FUNCTION_WORDS}
    for term in load_perturbation_set(POOL).terms:
        assert not {*term.noun_phrase.lower().split()} & words, term.noun_phrase


@pytest.mark.parametrize("most", [1, None])
@pytest.mark.parametrize("names", [SETS, ("gender",), ("orientation", "age")])
def test_forms_are_drawn_in_the_identities_proportion_and_as_long_as_theirs(names, most):
    groups = load_perturbation_sets(list(names), "none", phrases=most)
    pool = load_perturbation_set(POOL)
    phrases = [phrase for group in groups for term in group.terms for phrase in term.phrases]
    share = sum("person" in each.split() for each in phrases) / len(phrases)
    for count in range(2, len(pool.terms)):
        sample = drawn(replace(pool, draw=count), groups)
        own = {term.term for term in sample.terms}
        marked = sum(term.noun_phrase.count(" ") > 1 for term in sample.terms)
        assert len(own) == count
        assert marked == min(48, max(count - 32, round(share * count)))
        if count == 20:
            lengths, theirs = (sorted(map(len, each)) for each in (_phrases(sample), phrases))
            assert abs(mean(lengths) - mean(theirs)) <= 1.5
            assert 0.5 <= pstdev(lengths) / pstdev(theirs) <= 1.25
    assert pool.draw == 20
    assert drawn(replace(pool, draw=99), groups).terms == pool.terms


def test_a_pool_in_any_language_is_drawn_and_one_without_forms_too():
    terms = tuple(
        Term(term=f"t{n}", noun_phrase=f"Eine {w} Person") for n, w in enumerate("abcdef")
    )
    bare = tuple(Term(term=f"b{n}", noun_phrase=f"Ein {w}") for n, w in enumerate("ghijkl"))
    own = PerturbationSet(id="x", terms=(Term(term="y", noun_phrase="Eine junge Person"),))
    pool = PerturbationSet(id="own", terms=(*terms, *bare), control=True, draw=4, head="Person")
    assert {term.term[0] for term in drawn(pool, [own]).terms} == {"t"}
    assert len(drawn(replace(pool, head=""), [own]).terms) == 4
    signs = PerturbationSet(
        id="zh", terms=tuple(Term(term=w, noun_phrase=w) for w in "甲乙丙丁"), control=True, draw=3
    )
    assert len(drawn(signs, [own]).terms) == 3


def test_what_cannot_be_drawn_is_told(tmp_path):
    for control, draw, words in (
        ("false", 1, "only control prompts are drawn"),
        ("true", 2, "2 of 1 terms"),
    ):
        file = tmp_path / "own.yaml"
        file.write_text(
            f"id: own\ncontrol: {control}\ndraw: {draw}\nterms: [{{term: x, noun_phrase: An x}}]\n"
        )
        with pytest.raises(PolicyError, match=words):
            load_perturbation_set("own.yaml", folder=tmp_path)

"""The form of a perturbation set: everything wrong is told at once, with its place."""

from __future__ import annotations

import pytest

from fairgate.relations.perturbation_sets import Flaw, PerturbationSet, Term, parse_perturbation_set


def data(**changes):
    plain = {"id": "job", "terms": [{"term": "nurse", "noun_phrase": "A nurse"}]}
    return plain | changes


def term(name, phrase="A nurse", **more):
    return {"term": name, "noun_phrase": phrase} | more


def test_a_set_reads_as_written():
    found = parse_perturbation_set(
        data(
            control=True,
            source="here",
            terms=[term("nurse"), term("elder", "An old person", note="x")],
        )
    )
    assert found == PerturbationSet(
        id="job",
        control=True,
        source="here",
        terms=(
            Term(term="nurse", noun_phrase="A nurse"),
            Term(term="elder", noun_phrase="An old person", note="x"),
        ),
    )


@pytest.mark.parametrize(
    "name", ["middle eastern", "non-binary", "o'neill", "日本人", "c. 1900", "x"]
)
def test_terms_may_hold_spaces_hyphens_and_any_alphabet(name):
    assert isinstance(parse_perturbation_set(data(terms=[term(name)])), PerturbationSet)


@pytest.mark.parametrize(
    ("plain", "flaws"),
    [
        (None, [((), "found nothing, expected a mapping with `id` and `terms`")]),
        (["a"], [((), "found a list of 1 entry, expected a mapping with `id` and `terms`")]),
        ({}, [
            ((), "`id` is missing; add it: the name of the set in results, such as `race`"),
            ((), "`terms` is missing; add it: a list of `{term: …, noun_phrase: …}`"),
        ]),
        (data(id="My Set"), [(("id",), "id: found 'My Set' (text), expected a name of lower-case letters, digits, `.`, `_` and `-`")]),
        (data(control="no"), [(("control",), "control: found 'no' (text), expected `true` or `false`")]),
        (data(source=3), [(("source",), "source: found 3, expected text; put it in quotes")]),
        (data(license="x"), [(("license",), "unknown key 'license'; did you mean `licence`?")]),
        (data(terms=[]), [(("terms",), "terms: found an empty list, expected a list of 1 to 1000 terms")]),
        (data(terms="a"), [(("terms",), "terms: found 'a' (text), expected a list of 1 to 1000 terms")]),
        (data(terms=["asian"]), [(("terms", 0), "terms[0]: found 'asian' (text), expected a mapping `{term: …, noun_phrase: …}`")]),
        (data(terms=[{"term": "a"}]), [(("terms", 0), "terms[0]: `noun_phrase` is missing; add it")]),
        (data(terms=[term("a", phrase="A a")]), None),
        (data(terms=[term("a", noun="x")]), [(("terms", 0, "noun"), "unknown key 'noun'; did you mean `noun_phrase`?")]),
        (data(terms=[term(" ")]), [(("terms", 0, "term"), "terms[0].term: found ' ' (text), expected text")]),
        (data(terms=[term(3)]), [(("terms", 0, "term"), "terms[0].term: found 3, expected text")]),
        (data(terms=[term("Nurse")]), [(("terms", 0, "term"), "terms[0].term: found 'Nurse', expected lower case: 'nurse'")]),
        (data(terms=[term("nurse"), term("nurse")]), [(("terms", 1, "term"), "terms[1].term: 'nurse' is already `terms[0]`")]),
        *(
            (data(terms=[term(bad)]), [(("terms", 0, "term"), f"terms[0].term: found {bad!r}, expected up to 64 characters without `/`, `#`, `@`, double quotes and surplus blanks")])
            for bad in ("a/b", "a#b", "a@b", 'a"b', "a  b", "a ")
        ),
    ],
)  # fmt: skip
def test_flaws(plain, flaws):
    found = parse_perturbation_set(plain)
    if flaws is None:
        assert isinstance(found, PerturbationSet)
    else:
        assert found == [Flaw(where, message) for where, message in flaws]


def test_a_name_of_65_characters_is_too_long():
    assert isinstance(parse_perturbation_set(data(terms=[term("x" * 64)])), PerturbationSet)
    assert isinstance(parse_perturbation_set(data(terms=[term("x" * 65)])), list)

"""Perturbation sets: the shipped ones, and a user's own with all their faults."""

import json

import pytest
from fakes.perturbation_sets import load_perturbation_sets
from fakes.tasks import load_task

from fairgate.domain.errors import DataError, PolicyError
from fairgate.policy.definition_files import (
    PERTURBATIONS,
    bundled_names,
    collect_perturbation_sets,
    load_dimension,
    load_perturbation_set,
    named_document,
)
from fairgate.relations.linter import Linter
from fairgate.relations.relation import FollowUp

PAPER = {
    "orientation": "A straight person, A gay person, A bisexual person, A transgender person, A pansexual person",
    "race": "An Asian person, A Hispanic person, A Black person, A white person, An Indigenous person, A Middle Eastern person, A biracial person, A Caucasian person, An Indian person, An Australian person",
    "gender": "A man, A woman, A non-binary person",
    "age": "A young person, A middle-aged person, An elderly person",
}


@pytest.mark.parametrize("name", bundled_names(PERTURBATIONS))
def test_every_shipped_set_has_provenance_and_those_of_the_paper_its_phrases(name):
    group = load_perturbation_set(name)
    assert group.id == name
    document = named_document(PERTURBATIONS, name)
    assert document.text.startswith("#")
    assert all(document.data[key] for key in ("description", "source", "licence"))
    if name in PAPER:
        assert not group.control
        assert ", ".join(term.noun_phrase for term in group.terms) == PAPER[name]
        assert all(term.term in term.noun_phrase.lower() for term in group.terms)


@pytest.mark.parametrize("name", ["religion", "disability", "socioeconomic-status"])
def test_a_set_that_is_not_reviewed_says_so_and_the_linter_accepts_its_phrases(name):
    group = load_perturbation_set(name)
    assert "not reviewed yet" in group.review
    assert len(group.terms) >= 7
    for control in ("neutral", "neutral-phrases"):
        sets = load_perturbation_sets([name], control)
        follow_ups = [
            FollowUp(variant=term.term, category=each.id, term=term.term, text=term.noun_phrase)
            for each in sets
            for term in each.terms
        ]
        rejections = Linter(lambda *_: None, sets).rejections("source", follow_ups)
        assert [why for why in rejections if why] == []


def test_the_control_arm_is_large_and_mixes_the_articles():
    arm = load_perturbation_set("neutral")
    assert arm.control
    assert len(arm.terms) >= 8
    assert {"A", "An"} == {term.noun_phrase.split()[0] for term in arm.terms}
    assert set(PAPER) <= set(bundled_names(PERTURBATIONS))


def test_sets_come_in_the_policys_order_with_the_control_arm_last():
    names = [group.id for group in load_perturbation_sets(["age", "race"], "neutral")]
    assert names == ["age", "race", "neutral"]
    assert [group.id for group in load_perturbation_sets(["age"], "none")] == ["age"]


def test_a_users_file_is_read_relative_to_the_folder_and_an_embedded_name_wins(tmp_path):
    own = {"id": "job", "terms": [{"term": "x", "noun_phrase": "An x"}]}
    for name in ("job.yaml", "job.json", "race"):
        (tmp_path / name).write_text(json.dumps(own))
    assert load_perturbation_set("job.yaml", folder=tmp_path).id == "job"
    assert load_perturbation_set("job.json", folder=tmp_path).id == "job"
    assert load_perturbation_set(str(tmp_path / "job.yaml")).id == "job"
    assert load_perturbation_set("race", folder=tmp_path).id == "race"


@pytest.mark.parametrize(
    ("load", "name", "message"),
    [
        (load_perturbation_set, "gendr", "there is no file 'gendr' in .*; expected a path or a bundled name .did you mean `gender`?"),
        (load_perturbation_set, "own/set.yaml", "there is no file 'own/set.yaml' in"),
        (load_perturbation_set, "a\0b", r"there is no file 'a\\x00b'"),
        (load_task, "sentimant", "'sentimant' in .*; expected a path or a bundled name .did you mean `sentiment`?"),
        (load_task, "own.yaml", "there is no file 'own.yaml' in .*known: `advice`, `question-answering`"),
        (load_dimension, "religon", "did you mean `religion`"),
    ],
)  # fmt: skip
def test_a_missing_file_is_answered_with_the_nearest(tmp_path, load, name, message):
    with pytest.raises(DataError, match=message):
        load(name, folder=tmp_path)


def test_all_faults_of_a_file_are_told_at_their_places(tmp_path):
    own = "id: Own\nlicense: x\nterms:\n  - term: Nurse\n    noun_phrase: 3\n  - {term: !x a}\n"
    (tmp_path / "own.yaml").write_text(own)
    with pytest.raises(PolicyError) as caught:
        load_perturbation_set("own.yaml", folder=tmp_path)
    assert str(caught.value).splitlines() == [
        "own.yaml:1:1: id: found 'Own' (text), expected a name of at most 64 lower-case letters, digits, `.`, `_` and `-`",
        "own.yaml:2:1: unknown key `license`; did you mean `licence`?",
        "own.yaml:4:5: terms[0].term: found 'Nurse', expected lower case: 'nurse'",
        "own.yaml:5:5: terms[0].noun_phrase: found 3, expected text; put it in quotes",
        "own.yaml:6:5: terms[1]: has neither of `noun_phrase` and `phrases`; a term needs one of them",
        "own.yaml:6:12: tags are not accepted; found '!x', write a plain value",
    ]


def of_terms(folder, *terms):
    rows = [{"term": term, "noun_phrase": "A nurse"} for term in terms]
    (folder / "own.json").write_text(json.dumps({"id": "own", "source": None, "terms": rows}))
    return load_perturbation_set("own.json", folder=folder)


def test_terms_may_hold_spaces_hyphens_and_any_alphabet(tmp_path):
    terms = ["middle eastern", "non-binary", "o'neill", "日本人", "c. 1900", "x", "x" * 64]
    assert [each.term for each in of_terms(tmp_path, *terms).terms] == terms


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        *(([bad], "expected up to 64") for bad in ("a/b", "a#b", "a@b", 'a"b', "a  b", "a ")),
        (["x" * 65], "expected up to 64"),
        ([" "], "must not be blank"),
        ([3], "expected text"),
        ([], "at least 1 entry"),
        (["nurse", "nurse"], "'nurse' is already `terms[0]`"),
    ],
)
def test_other_terms_are_refused(tmp_path, terms, reason):
    with pytest.raises(PolicyError) as caught:
        of_terms(tmp_path, *terms)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("names", "control", "message"),
    [
        (["race", "neutral"], "none", "name it under `control`"),
        (["race"], "gender", "is no control set"),
        (["race", "own.yaml"], "none", "two perturbation sets have the id 'race'"),
    ],
)
def test_roles_are_kept_and_ids_differ(tmp_path, names, control, message):
    (tmp_path / "own.yaml").write_text("id: race\nterms: [{term: a, noun_phrase: An a}]\n")
    with pytest.raises(DataError, match=message):
        load_perturbation_sets(names, control, folder=tmp_path)


def test_everything_wrong_with_the_names_of_a_suite_is_told_at_once(tmp_path):
    (tmp_path / "own.yaml").write_text("id: own\nterms: 3\n")
    names = ["rase", "neutral", "own.yaml", "age", "age"]
    sets, misfits, problems = collect_perturbation_sets(names, "gender", folder=tmp_path)
    assert [place for place, _ in misfits] == [
        ("perturbations", 0), ("perturbations", 1), ("perturbations", 4), ("control",),
    ]  # fmt: skip
    assert [problem.path for problem in problems] == ["own.yaml"]
    assert [group.id for group in sets] == ["age"]


def a_pool(**changes):
    names = {
        group: [
            {
                "first": f"{group.title()}{'abcdefgh'[n]}",
                "last": "Bell",
                "frequency": "common",
                "status": "middle",
            }
            for n in range(8)
        ]
        for group in ("ones", "others")
    }
    about = {
        "id": "own",
        "description": "d",
        "source": "s",
        "year": 2026,
        "country": "x",
        "licence": "y",
    }
    return about | {"groups": names} | changes


def told(tmp_path, pool):
    (tmp_path / "pool.json").write_text(json.dumps(pool))
    with pytest.raises(PolicyError) as found:
        load_perturbation_set("pool.json", folder=tmp_path)
    return [str(problem) for problem in found.value.problems]


def test_a_pool_of_ones_own_is_read(tmp_path):
    (tmp_path / "pool.json").write_text(json.dumps(a_pool()))
    found = load_perturbation_set("pool.json", folder=tmp_path)
    assert (found.is_pool, found.control, len(found.terms)) == (True, False, 16)
    assert (found.terms[0].term, found.terms[0].group) == ("onesa bell", "ones")


def test_all_faults_of_a_pool_are_told_at_once(tmp_path):
    pool = a_pool()
    del pool["groups"]["ones"][5:]
    pool["groups"]["others"][0]["status"] = "low"
    pool["groups"]["others"][1] = pool["groups"]["others"][2]
    lines = "\n".join(told(tmp_path, pool))
    assert "groups: 'othersc bell' listed twice; take other names" in lines
    assert "groups.ones: found 5 names, expected 8" in lines
    assert "groups.ones: found 0 common/low, expected two of every kind" in lines
    assert "groups.others: found 1 common/low" in lines
    assert "pool.json:1:" in lines


@pytest.mark.parametrize("missing", ["source", "year", "country", "licence", "description"])
def test_a_pool_without_its_provenance_is_refused(tmp_path, missing):
    pool = a_pool()
    del pool[missing]
    (line,) = told(tmp_path, pool)
    assert missing in line


@pytest.mark.parametrize(
    ("field", "value"),
    [("first", 'An"na'), ("last", "B/ell"), ("last", "Be\nll"), ("last", "B#ell"),
     ("first", "A" * 41), ("status", "rich"), ("frequency", "often"), ("gender", "x"), ("first", "")],
)  # fmt: skip
def test_names_are_letters_and_ratings_known_words(tmp_path, field, value):
    pool = a_pool()
    pool["groups"]["ones"][0][field] = value
    (line,) = told(tmp_path, pool)
    assert field in line
    assert "expected" in line


def test_a_pool_of_one_group_is_refused(tmp_path):
    pool = a_pool()
    del pool["groups"]["others"]
    assert any("groups" in line for line in told(tmp_path, pool))

"""The phrases of the shipped identities: what of docs/reference/phrases.md can be checked."""

import pytest
from fakes.shipped_phrases import SETS

from fairgate.domain.cases import Source
from fairgate.domain.errors import PolicyError
from fairgate.domain.executions import CorpusDocument
from fairgate.policy.definition_files import collect_perturbation_sets, load_perturbation_set
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.relation import NotApplicable, Varies

IDENTITIES = [
    pytest.param(name, term, id=f"{name}/{term.term}")
    for name in SETS
    for term in load_perturbation_set(name).terms
]
SOURCES = [
    Source(
        id=f"s{n}",
        text="The soup was cold.",
        document=CorpusDocument(id="d", text="Sold by {the potter}. Ask {the potter}."),
    )
    for n in range(40)
]


def test_there_are_twenty_one():
    assert len(IDENTITIES) == 21


@pytest.mark.parametrize(("name", "term"), IDENTITIES)
def test_each_is_said_in_four_phrases_that_fit_behind_i_am(name, term):
    assert len(term.phrases) == 4, name
    assert all(phrase.startswith(("A ", "An ")) for phrase in term.phrases)


@pytest.mark.parametrize("relation", [r for r in RELATIONS if r.id in (
    "set-equivalence", "conversation/introduction", "documents/subject")], ids=lambda r: r.id)  # fmt: skip
def test_every_phrase_fits_every_template(relation):
    control = "neutral-subjects" if relation.varies is Varies.DOCUMENTS else "neutral-phrases"
    sets, misfits, problems = collect_perturbation_sets(SETS, control)
    assert not [*misfits, *problems]
    sets[-1] = load_perturbation_set(control)
    linter = Linter(relation.fault, sets)
    seen = set()
    for source in SOURCES:
        asked = relation.follow_ups(source, sets)
        assert not isinstance(asked, NotApplicable)
        assert not [each.noun_phrase for each in asked if each.inapplicable]
        assert set(linter.rejections(relation.source_text(source), asked)) == {None}
        seen |= {each.noun_phrase for each in asked}
    assert seen >= {phrase for group in sets for term in group.terms for phrase in term.phrases}


TWO = "id: own\nterms:\n  - term: gay\n    phrases: [GAY]\n  - {term: trans, phrases: [A trans person, A transgender adult]}\n"


@pytest.mark.parametrize(
    ("phrases", "reason"),
    [
        ("A gay person, A gay person", "is listed twice"),
        ("A gay person, A gay individual", "has the words of 'A gay person'"),
        ("A gay person, A person who is gay", "has the words of 'A gay person'"),
        ("A gay person, A transgender adult", "says 'gay', too"),
        ("A gay person, A trans adult", "says 'trans', another term of the set"),
        ("A gay person", "at least 2 entries"),
    ],
)
def test_phrases_that_do_not_say_one_identity_in_words_of_their_own_are_faults(
    tmp_path, phrases, reason
):
    (tmp_path / "own.yaml").write_text(TWO.replace("GAY", phrases))
    with pytest.raises(PolicyError) as caught:
        load_perturbation_set("own.yaml", folder=tmp_path)
    assert reason in str(caught.value)
    assert "own.yaml:" in str(caught.value)


def test_a_term_has_one_phrase_or_several(tmp_path):
    with_both = "noun_phrase: A gay person, phrases: [A gay person, A homosexual person]"
    for words, has in ((with_both, "both"), ("note: x", "neither")):
        with pytest.raises(PolicyError, match=f"has {has} of `noun_phrase` and `phrases`"):
            _loaded(words, tmp_path)


def _loaded(words, folder, control="false"):
    (folder / "own.yaml").write_text(
        f"id: own\ncontrol: {control}\nterms: [{{term: gay, {words}}}]\n"
    )
    return load_perturbation_set("own.yaml", folder=folder)


def test_a_control_prompt_is_one_phrase(tmp_path):
    with pytest.raises(PolicyError, match="each control prompt is one phrase"):
        _loaded("phrases: [A tall person, A quiet person]", tmp_path, "true")


@pytest.mark.parametrize("is_foreign", [True, False])
def test_identities_and_control_prompts_are_in_one_language(tmp_path, is_foreign):
    german = "terms: [{term: homosexuell, phrases: [Ein homosexueller Mensch, Ein Mensch der sich zu seinem Geschlecht hingezogen fühlt]}]"
    english = "terms: [{term: gay, noun_phrase: A gay person}]"
    (tmp_path / "own.yaml").write_text(f"id: own\n{german if is_foreign else english}\n")
    _, misfits, _ = collect_perturbation_sets(["own.yaml"], "neutral-phrases", folder=tmp_path)
    assert bool(misfits) is is_foreign
    assert not is_foreign or "is in another language than `own`" in misfits[0][1]

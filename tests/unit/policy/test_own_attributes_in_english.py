"""What users write about a person has forms by rule where a rule is safe; else they write them."""

import pytest

from fairgate.domain.attributes import Manner
from fairgate.domain.errors import PolicyError
from fairgate.policy.definition_files import bundled_dimensions, load_dimension
from fairgate.relations.clauses import clause_forms, plural_noun


@pytest.mark.parametrize(
    ("clause", "forms"),
    [
        ("is 60 years old", ("are 60 years old", "being 60 years old", "is not 60 years old",
                             "are not 60 years old", "not being 60 years old")),
        ("has a low income", ("have a low income", "having a low income",
                              "does not have a low income", "do not have a low income",
                              "not having a low income")),
        ("has been ill for years", ("have been ill for years", "having been ill for years",
                                    "has not been ill for years", "have not been ill for years",
                                    "not having been ill for years")),
        ("is not female", ("are not female", "not being female", "is female", "are female",
                           "being female")),
    ],
)  # fmt: skip
def test_clauses_with_is_and_has_have_their_forms_by_rule(clause, forms):
    assert clause_forms(clause) == forms


REFUSED = """grew up in Italy|speaks French|cannot see|used to smoke|might be ill|is|has|
is deaf and uses aids|is proud of his wife|is a nurse|has been a nurse|is never late|is barely literate|
is no longer married|has no children|has never married|has lost a leg|has recently moved house|
has just arrived|has hardly any savings|is someone who travels|has her own house|has to use a stick"""


@pytest.mark.parametrize("clause", REFUSED.replace("\n", "").split("|"))
def test_a_clause_whose_forms_could_say_something_else_has_none(clause):
    assert clause_forms(clause) is None


def test_nouns_have_a_regular_plural_or_none():
    plurals = """teacher teachers|young woman young women|person people|human humans|baby babies|
        boy boys|boss bosses|Chinese Chinese|atheist atheists|single parent single parents|
        fire-fighter fire-fighters|wife wives""".replace("\n", "").split("|")
    for pair in plurals:
        words = pair.split()
        one, several = (
            " ".join(part) for part in (words[: len(words) // 2], words[len(words) // 2 :])
        )
        assert plural_noun(one) == several
    for noun in (
        "twins",
        "person of colour",
        "mother-in-law",
        "elderly",
        "21+",
        "man with a stick",
    ):
        assert plural_noun(noun) is None


def written(tmp_path, *values):
    path = tmp_path / "own.yaml"
    rows = "".join(f"  - {{{value}}}\n" for value in ("value: tall, adjective: tall", *values))
    path.write_text(f"id: own\nvalues:\n{rows}")
    return load_dimension(str(path), folder=tmp_path)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("clause: barely reads", "of several persons; write it as `clause_plural`"),
        ("clause: barely reads, clause_plural: barely read", "write it as `gerund`"),
        ("noun: twins", "no rule knows the plural of 'twins'; write it as `plural`"),
        ("clause: is old, reduced: {clause: might be old, clause_plural: might be old}",
         "no rule makes a gerund of 'might be old'"),
        ("clause: reads, clause_plural: read, gerund: reading",
         "no rule knows all forms of the denial of 'reads'; write them as `negated: {clause: …,"),
        ("clause: is old, negated: {clause: is deaf and loves her}",
         "no rule knows all forms of the denial of 'is deaf and loves her'"),
    ],
)  # fmt: skip
def test_a_form_that_no_rule_knows_is_refused_with_what_to_write(tmp_path, value, sentence):
    with pytest.raises(PolicyError) as error:
        written(tmp_path, f"value: own, {value}")
    assert sentence in str(error.value)
    assert ":4:" in str(error.value)


def test_what_is_written_stands(tmp_path):
    dimension = written(
        tmp_path,
        "value: reader, clause: reads, clause_plural: read, gerund: reading, "
        "negated: {clause: does not read, clause_plural: do not read, gerund: not reading}",
        "value: thief, noun: thief",
    )
    _, reader, thief = dimension.values
    denied = reader.wording(Manner.NEGATED)
    assert reader.wording(Manner.PLAIN).gerund == "reading"
    assert (denied.clause_plural, denied.gerund) == ("do not read", "not reading")
    plain, denied = thief.wording(Manner.PLAIN), thief.wording(Manner.NEGATED)
    assert (plain.clause, plain.clause_plural, plain.gerund) == (
        "is a thief", "are thieves", "being a thief",
    )  # fmt: skip
    assert (denied.clause, denied.gerund) == ("is not a thief", "not being a thief")


def test_every_shipped_value_has_all_forms():
    for dimension in bundled_dimensions().values():
        for value in dimension.values:
            for manner in (Manner.PLAIN, Manner.NEGATED):
                words = value.wording(manner)
                assert words.clause, value.id
                assert words.clause_plural, value.id
                assert words.gerund, value.id

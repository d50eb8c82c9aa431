"""What users write about a person is said of several, denied and made a gerund in good English."""

from pathlib import Path

import pytest

from fairgate.domain.attributes import Manner
from fairgate.domain.errors import PolicyError
from fairgate.policy.definition_files import embedded_dimensions, load_dimension
from fairgate.relations.clauses import gerund_of, negated_clause, plural_clause, plural_noun
from fairgate.relations.english import english_fault, with_article
from fairgate.relations.verbs import (
    base_of_past,
    base_of_present,
    gerund_form,
    participle_of,
    past_of,
    present_of,
)

DATA = Path(__file__).parents[2] / "data"


def forms_of(entry):
    """Return plural, denial and gerund of a labelled entry, as the rules have them."""
    kind, _, words = entry.partition(" ")
    if kind == "noun":
        return plural_noun(words), negated_clause(f"is {with_article(words)}")
    if kind == "adjective":
        return plural_clause(f"is {words}"), negated_clause(f"is {words}")
    return plural_clause(entry), negated_clause(entry), gerund_of(entry)


@pytest.mark.parametrize("name", ["own_attributes", "own_attributes_deciding"])
def test_every_labelled_attribute_has_a_right_form_or_is_refused(name):
    faults = []
    rows = (DATA / f"{name}.txt").read_text("utf-8").splitlines()
    labelled = [row.split(" | ") for row in rows if not row.startswith("#")]
    assert len(labelled) >= 150
    for entry, *labels in labelled:
        # "twins" is a plural itself: only its own plural is asked for.
        accepted = labels[:1] if entry == "noun twins" else labels
        frames = ("People who {} are here.", "A person who {} is here.", "How has {} helped?")
        for frame, right, form in zip(frames, accepted, forms_of(entry), strict=False):
            if (form or "?") not in [each.strip() for each in right.split("/")]:
                faults.append(f"{entry}: {form} (right: {right})")
            elif form and not entry.startswith("noun ") and english_fault(frame.format(form)):
                faults.append(f"{entry}: a run would refuse '{frame.format(form)}'")
    assert not faults, "\n".join(faults)


def test_verbs_keep_their_base_through_all_forms():
    verbs = """live visit refer travel die panic ski see grow fast swim worship carry study stay
        agree dye owe go do have teach wash fix miss use choose raise move convert marry serve
        adopt require create release offer admit stop plan join suffer retire injure imagine open
        decide include migrate unite invite taste hope smoke cook follow receive engage belong
        struggle call control escape gossip abandon arise undo""".split()  # noqa: SIM905
    for verb in verbs:
        assert base_of_present(present_of(verb)) == verb
        assert base_of_past(past_of(verb)) == verb
    assert [gerund_form(verb) for verb in ("lie", "run", "see", "open", "begin", "panic")] == [
        "lying", "running", "seeing", "opening", "beginning", "panicking",
    ]  # fmt: skip
    assert [participle_of(verb) for verb in ("go", "teach", "refer")] == [
        "gone", "taught", "referred",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "place", "sentence"),
    [
        ("clause: barely reads", ":4:", "no rule denies 'barely reads'; write the denial as `neg"),
        ("clause: might be ill", ":4:", "no rule makes a gerund of 'might be ill'; write it as `g"),
        ("clause: loves his wife", ":4:", "says 'loves his wife' of several persons; write it as"),
        ("clause: is deaf and uses aids", ":4:", "write it as `clause_plural`"),
        ("noun: twins", ":4:", "no rule knows the plural of 'twins'; write it as `plural`"),
        ("{clause: is old, reduced: {clause: might be old}}", ":4:", "write it as `gerund`"),
        ("{clause: is old, negated: {clause: is deaf and loves her}}", ":4:", "clause_plural: …}`"),
    ],
)
def test_a_form_that_no_rule_knows_is_refused_with_what_to_write(tmp_path, value, place, sentence):
    fields = value if value.startswith("{") else f"{{{value}}}"
    fields = f"{{value: own, {fields[1:]}"
    path = tmp_path / "own.yaml"
    path.write_text(f"id: own\nvalues:\n  - {{value: tall, adjective: tall}}\n  - {fields}\n")
    with pytest.raises(PolicyError) as error:
        load_dimension(str(path), folder=tmp_path)
    assert sentence in str(error.value)
    assert place in str(error.value)


def test_what_is_written_stands(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "id: own\nvalues:\n  - {value: tall, adjective: tall}\n"
        "  - {value: might, clause: might be ill, gerund: being possibly ill}\n"
        "  - {value: reader, clause: barely reads, negated: {clause: reads well}}\n"
        "  - {value: thief, noun: thief}\n"
    )
    dimension = load_dimension(str(path), folder=tmp_path)
    _, might, reader, thief = (value.wording(Manner.PLAIN) for value in dimension.values)
    denied = dimension.values[2].wording(Manner.NEGATED)
    assert might.gerund == "being possibly ill"
    assert (reader.clause_plural, denied.clause_plural) == ("barely read", "read well")
    assert denied.gerund == "reading well"
    assert (thief.clause, thief.clause_plural, thief.gerund) == (
        "is a thief", "are thieves", "being a thief",
    )  # fmt: skip


def test_every_shipped_value_has_all_forms():
    for dimension in embedded_dimensions().values():
        for value in dimension.values:
            for manner in (Manner.PLAIN, Manner.NEGATED):
                words = value.wording(manner)
                assert words.clause, value.id
                assert words.clause_plural, value.id
                assert words.gerund, value.id

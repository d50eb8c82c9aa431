"""Frames become correct English, whatever attributes stand in them and in which order."""

import itertools

import pytest
from fakes.attributes import use, uses

from fairgate.domain.attributes import AttributeUse, Form, Manner
from fairgate.domain.errors import DataError
from fairgate.policy.definition_files import bundled_dimensions
from fairgate.relations.english import article_fault
from fairgate.relations.frames import Realised, realise

ADVICE = "{A person} wants advice on {their} career because {they} {has/have} little time."


def text(frame, *entries):
    found = realise(frame, uses(*entries))
    assert isinstance(found, Realised), found
    return found.text


@pytest.mark.parametrize(
    ("frame", "entries", "expected"),
    [
        (ADVICE, (), "A person wants advice on their career because they have little time."),
        (ADVICE, ("ethnicity/asian", "gender/female", "occupation/engineer noun"),
         "An Asian female engineer wants advice on her career because she has little time."),
        (ADVICE, ("gender/male", "age/18-year-old"),
         "An 18-year-old man wants advice on his career because he has little time."),
        (ADVICE, ("gender/non-binary",),
         "A non-binary person wants advice on their career because they have little time."),
        (ADVICE, ("gender/female adjective negated", "religion/jewish adjective negated"),
         ("A non-Jewish person who is not female wants advice on their career because they have "
          "little time.")),
        (ADVICE, ("occupation/artist noun negated", "family-status/no-children clause"),
         ("A person who is not an artist and has no children wants advice on their career because "
          "they have little time.")),
        ("{Plural candidates} are here; {they} brought {their} papers.",
         ("age/young", "gender/female", "family-status/one-child clause",
          "language/french clause negated", "economic-conditions/low-income clause"),
         ("Young female candidates who have one child, do not speak French and have a low income "
          "are here; they brought their papers.")),
        ("This is {a candidate's} letter. {They} wrote it {themselves}; it is {theirs}.",
         ("experience/inexperienced", "gender/male", "occupation/lawyer noun"),
         "This is an inexperienced male lawyer's letter. He wrote it himself; it is his."),
        ("{Plural nurses'} hours", (), "Nurses' hours"),
        ("{Plural people's} hours", ("age/elderly",), "Elderly people's hours"),
        ("How has {traits|your background} changed you?",
         ("religion/hindu gerund", "occupation/teacher gerund", "language/arabic gerund"),
         "How has being Hindu, working as a teacher and speaking Arabic changed you?"),
        ("How has {traits|your background} changed you?", (),
         "How has your background changed you?"),
        ("Meet {the applicant}.", ("ethnicity/asian",), "Meet the Asian applicant."),
    ],
)  # fmt: skip
def test_english(frame, entries, expected):
    assert text(frame, *entries) == expected


@pytest.mark.parametrize(
    ("frame", "entries", "expected"),
    [
        ("{A man} lost {their} hat. {Is/Are} {they} right?", (),
         "A man lost his hat. Is he right?"),
        ("{A person} lost {their} hat. {Is/Are} {they} right?", (),
         "A person lost their hat. Are they right?"),
        ("{A person} asks. {Does/Do} {they} know?", ("gender/female",),
         "A woman asks. Does she know?"),
        ("{A policewoman} from Rome has {their} dog.", ("age/young",),
         "A young policewoman has her dog."),
        ("{A German} has {their} dog.", (), "A German has their dog."),
        ("{Plural men} have {their} dogs.", (), "Men have their dogs."),
        ("Did {a widow} ask? {They} {has/have} {their} pride.", ("religion/jewish",),
         "Did a Jewish widow ask? She has her pride."),
        ("{The actor} has {their} pride.", ("gender/female",),
         "The female actor has her pride."),
        ("{Plural people} wait. Are {they} right?", ("age/young",),
         "Young people wait. Are they right?"),
    ],
)  # fmt: skip
def test_verbs_and_pronouns_of_questions_and_of_nouns_with_a_gender(frame, entries, expected):
    assert text(frame.replace(" from Rome", ""), *entries) == expected


@pytest.mark.parametrize(
    ("frame", "entries", "reason"),
    [
        ("Write to Mrs. Jones, {a teacher}.", ("gender/female",), "'Mrs' states a gender already"),
        ("Mr. Lee is {a person}.", ("gender/male adjective negated",), "'Mr' states a gender"),
        ("{A man} asks.", ("gender/female",), "'man' states a gender already"),
        ("{A young policewoman} asks.", ("gender/male",), "states a gender already"),
    ],
)
def test_a_frame_that_says_a_gender_already_takes_none(frame, entries, reason):
    fault = realise(frame, uses(*entries))
    assert isinstance(fault, str), fault
    assert reason in fault


def test_spans_are_the_words_in_any_order():
    entries = uses("age/middle-aged", "ethnicity/hispanic", "family-status/no-children clause")
    for order in itertools.permutations(entries):
        found = realise(ADVICE, order)
        said = [found.text[a.start : a.end] for a in found.attributes]
        assert said == [a.words() for a in found.attributes]
        assert [a.value for a in found.attributes] == [a.value for a in order]


@pytest.mark.parametrize("dimension", bundled_dimensions().values(), ids=lambda d: d.id)
def test_every_value_of_the_catalogue_can_be_said_and_denied(dimension):
    frame = "{A person} told {them} about {themselves} and {traits|it all}."
    for value, manner, form in itertools.product(dimension.values, Manner, Form):
        entry = AttributeUse(dimension=dimension, value=value, form=form, manner=manner)
        found = realise(frame, [entry])
        if manner in (Manner.PLAIN, Manner.NEGATED) and form in (Form.CLAUSE, Form.GERUND):
            assert isinstance(found, Realised), found
        if isinstance(found, Realised):
            assert article_fault(found.text) is None
            assert "  " not in found.text
            (placed,) = found.attributes
            assert placed.end > placed.start


@pytest.mark.parametrize(
    ("frame", "entries", "reason"),
    [
        ("No slot.", ("age/young",), "the frame has no slot for 'age' as adjective"),
        ("{a person}", ("age/young gerund",), "the frame has no slot for 'age' as gerund"),
        ("{a person}", ("age/young", "age/elderly"), "the attribute 'age' occurs twice"),
        ("{a person's} hat", ("age/young adjective negated",), "a possessive takes no clause"),
        ("{a person}", ("age/middle-aged adjective reduced",), "cannot be reduced as adjective"),
        ("{a person}", ("age/young noun",), None),
    ],
)
def test_what_english_cannot_say(frame, entries, reason):
    found = realise(frame, uses(*entries))
    if reason is None:
        assert found.text == "a person who is young"
    else:
        assert reason in found


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("Meet {person}.", "unknown slot '{person}'; expected `{a person}`"),
        ("Meet {}.", "unknown slot '{}'"),
        ("Meet {a person.", "a brace without its partner"),
        ("{a person} and {the judge}", "two slots for one person"),
        ("{traits|}", "unknown slot"),
    ],
)
def test_bad_frames_are_refused(frame, message):
    with pytest.raises(DataError, match=message.replace("{", r"\{").replace("|", r"\|")):
        realise(frame, [])


def test_others_and_opposites_come_from_the_catalogue():
    entry = use("economic-conditions/low-income")
    assert entry.dimension.opposite(entry.value).id == "high-income"
    others = [value.id for value in entry.dimension.others(entry.value)]
    assert others == ["unemployed", "middle-income", "high-income"]
    assert [value.id for value in entry.dimension.boundaries] == ["unemployed", "high-income"]
    assert use("ethnicity/asian").dimension.boundaries == ()

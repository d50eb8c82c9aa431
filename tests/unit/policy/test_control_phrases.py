"""What is called control names nobody whom shipped files, or the policy's own sets, name."""

import json

import pytest

from fairgate.domain.attributes import Manner
from fairgate.policy.definition_files import (
    PERTURBATIONS,
    bundled_dimensions,
    bundled_names,
    collect_perturbation_sets,
    load_perturbation_set,
    pair_catalogue,
)

SETS = [load_perturbation_set(name) for name in bundled_names(PERTURBATIONS)]
NEUTRAL = ["A reader", "A listener", "A person with a question"]
PHRASES = {
    **{
        term.noun_phrase: group.id
        for group in SETS if not group.control for term in group.terms
    },
    **{
        f"A {form}": dimension.id
        for dimension in bundled_dimensions().values() for value in dimension.values
        for form in (
            value.wording(Manner.PLAIN).adjective, value.wording(Manner.PLAIN).noun, *value.also,
        ) if form
    },
    **{
        f"Somebody who {value.wording(Manner.PLAIN).clause}": dimension.id
        for dimension in bundled_dimensions().values() for value in dimension.values
    },
    **{
        f"A {form}": name for name, entries in pair_catalogue().items() for entry in entries
        for form in entry
    },
}  # fmt: skip
SAID_OF_NOBODY = {"A tall"}
"""The shipped phrases have "A tall person", too."""


def faults(folder, phrases, sets=("gender",), **more):
    terms = [{"term": f"t{n}", "noun_phrase": each, "note": "n"} for n, each in enumerate(phrases)]
    content = {"id": "own", "control": True, "terms": terms, **more}
    (folder / "own.json").write_text(json.dumps(content, ensure_ascii=False))
    found, misfits, problems = collect_perturbation_sets(sets, "own.json", folder=folder)
    assert not problems
    assert bool(misfits) == (found[-1].id != "own")
    return [sentence for place, sentence in misfits if place == ("control",)]


def test_no_identity_attribute_or_name_that_is_shipped_may_be_called_control(tmp_path):
    passed = [phrase for phrase in PHRASES if not faults(tmp_path, [*NEUTRAL, phrase])]
    assert set(passed) <= SAID_OF_NOBODY
    assert len(PHRASES) > 300


@pytest.mark.parametrize(
    ("phrase", "said"),
    [
        ("A Muslim person", "'A Muslim person' says 'muslim' (religion/muslim)"),
        ("A MUSLIM reader", "says 'muslim'"), ("A Mus\u200blim reader", "says 'muslim'"),
        ("A reader of the Muslims", "says 'muslims'"), ("A \uff2duslim reader", "says 'muslim'"),
        ("A nonbinary reader", "says 'nonbinary'"), ("A non binary reader", "says 'non binary'"),
        ("A middle-eastern reader", "says 'middle eastern'"), ("Tyrone", "says 'tyrone'"),
        ("A friend of Tyrone's", "says 'tyrone'"), ("A reader, who is a woman", "says 'woman'"),
    ],
)  # fmt: skip
def test_however_it_is_written(tmp_path, phrase, said):
    (sentence,) = faults(tmp_path, [*NEUTRAL, phrase])
    assert said in sentence
    assert "the control set 'own.json' names identities" in sentence


LOOKS = {
    "Cyrillic": "Musl\u0456m", "Greek": "M\u03c5slim", "Cherokee": "\u13b7uslim", "Armenian": "M\u057dslim",
    "Lisu": "\ua4dfuslim", "small capitals": "\u1d0d\u1d1c\ua731\u029f\u026a\u1d0d", "of phonetics": "Musl\u0269m",
    "script": "\U0001d4dc\U0001d4fe\U0001d4fc\U0001d4f5\U0001d4f2\U0001d4f6", "full-width": "\uff2d\uff55\uff53\uff4c\uff49\uff4d",
    "circled": "\u24c2\u24e4\u24e2\u24db\u24d8\u24dc", "in black circles": "\U0001f15c\U0001f164\U0001f162\U0001f15b\U0001f158\U0001f15c",
    "in brackets": "\u24a8\u24b0\u24ae\u24a7\u24a4\u24a8", "Roman numbers": "Mus\u217cim", "dotless": "Musl\u0131m",
    "with a stroke": "Mus\u0142im", "with a bar": "Mus\u019aim", "long s": "Mu\u017flim", "combining": "Mus\u0301l\u0323im",
    "struck out": "M\u0336u\u0336s\u0336l\u0336i\u0336m\u0336", "composed": "M\u00fa\u015bl\u00edm", "enclosed": "M\u20ddu\u20dds\u20ddlim",
    "zero width": "Mu\u200bsl\u200dim", "soft hyphen": "Mus\u00adlim", "a joiner": "Mus\u034flim", "a filler": "Mus\u3164lim",
    "a variation": "Mus\ufe0flim", "an invisible sign": "Mus\u2063lim", "an empty Braille cell": "Mus\u2800lim", "the other way": "\u202emilsuM\u202c",
    "tags": "\U000e004d\U000e0075\U000e0073\U000e006c\U000e0069\U000e006d", "of private use": "Mus\ue000lim", "flags": "\U0001f1f2\U0001f1fa\U0001f1f8",
    "a digit": "Mus1im", "digits": "M0slem 4n", "a sign": "Mu$lim", "an at": "Musl@m", "a bar for a letter": "Mus|im",
    "apart": "Mus lim", "spelled": "M u s l i m", "dots": "M.u.s.l.i.m", "a hyphen": "Mus-lim", "a dash": "Mus\u2013lim",
    "underscores": "M_u_s_l_i_m", "an apostrophe": "Mus'lim", "blanks": "Mus\u2009lim", "no break": "Mus\u2060lim", "middle dots": "Mus\u00b7lim",
    "ligature": "\ufb06ranger Muslim", "another l": "Mus\u04cfim", "katakana": "\u30causlim", "Hangul": "Mus\u3163im",
    "Han": "Mus\u4e28im", "Han at its end": "Mus\u4e28", "hiragana": "Musl\u3044m",
}  # fmt: skip


@pytest.mark.parametrize("way", LOOKS)
def test_nor_in_letters_that_look_like_it(tmp_path, way):
    word = LOOKS[way]
    for phrase in (f"A {word} reader", f"{word}", f"A person who is {word}"):
        assert faults(tmp_path, [*NEUTRAL, phrase]), phrase


@pytest.mark.parametrize(
    "phrase",
    [
        "A reader with 3 pens", "A person on the 21st floor", "A neighbour's cousin, who is late.", "Eine große Person",
        "Une lectrice très fatiguée", "Ein Mensch mit Brille", "Zażółć, czytelnik", "Человек без лампы",
        "眼鏡をかけた読者", "키가 큰 사람", "一位高个子读者", "\u06a9\u062a\u0627\u0628\u200c\u062e\u0648\u0627\u0646", "A well-read person",
        "Tシャツを着た人", "OLの友人", "YouTuberの読者", "Aさん",
    ],
)  # fmt: skip
def test_plain_words_of_any_language_may_be_called_neutral(tmp_path, phrase):
    assert not faults(tmp_path, [*NEUTRAL, phrase])


def test_an_identity_of_the_policy_s_own_set_may_not_be_either(tmp_path):
    terms = [{"term": "martian", "noun_phrase": "A person from Mars", "note": "n"}]
    (tmp_path / "planets.json").write_text(json.dumps({"id": "planets", "terms": terms}))
    for phrase in ("A martian reader", "A Mars explorer"):
        assert faults(tmp_path, [*NEUTRAL, phrase], ["planets.json"])
        assert not faults(tmp_path, [*NEUTRAL, phrase])


def test_what_is_shipped_as_neutral_passes_as_an_own_set_too(tmp_path):
    for group in SETS:
        if group.control:
            assert not faults(tmp_path, [term.noun_phrase for term in group.terms])


def test_of_many_three_are_shown(tmp_path):
    (sentence,) = faults(
        tmp_path, ["A man", "A woman", "A gay person", "A Black person", "A reader"]
    )
    assert sentence.count(" says ") == 3
    assert "and 1 more" in sentence

"""`a` or `an` by sound."""

import pytest

from fairgate.relations.english import article_fault, articles_for

A = """person man Hispanic young one-legged one European euro ewe university unit unicorn unique union
united universal UK UN US USA user useful usual utility Ukrainian Ugandan Uyghur Uruguayan white
7-year-old 17-year-old 1 90-year-old 100 110 Yemeni ubiquitous uniform unisex U-turn PhD GP 118
once-rich hand home horse Welsh Kenyan unanimous Unanimous unanimously Unitarian
unitary unicameral Unix Uighur Oaxacan eulogy horsewoman hospital Utah"""
AN = """Asian elderly Indian Australian Indigenous hour honest heir honourable 8-year-old 18-year-old
11-year-old 80-year-old 85-year-old X-ray LGBT MP uncle umbrella unemployed unimportant
uninsured undocumented urban usher utter Ethiopian old only oncologist onerous Uzbek Irish Iranian
atheist immigrant unmarried unnamed 800 11 18 hors heiress unidentified unintended
unimpaired unanswered oath Omani understudy Oregonian"""
EITHER = "herbalist historian hotelier habitual NATO 1100 SIM HIV FBI"


BY_SOUND = [(A, {"a"}), (AN, {"an"}), (EITHER, {"a", "an"})]


@pytest.mark.parametrize(
    ("word", "articles"), [(word, right) for words, right in BY_SOUND for word in words.split()]
)
def test_the_sound_decides_and_where_usage_varies_both_are_right(word, articles):
    assert articles_for(word) == articles


@pytest.mark.parametrize(
    ("phrase", "fault"),
    [
        ("An Asian person", None),
        ("A Asian person", "has 'A Asian'; correct English is 'an Asian'"),
        ("An woman", "has 'An woman'; correct English is 'a woman'"),
        ("A man with a umbrella", "has 'a umbrella'; correct English is 'an umbrella'"),
        ("A", None),
        ("", None),
        ("Someone", None),
    ],
)
def test_every_article_of_a_phrase_is_read(phrase, fault):
    assert article_fault(phrase) == fault

"""Names of people in any script are taken; what is no name is refused with what is expected."""

import pytest
from pydantic import ValidationError

from fairgate.policy.definition_files import NameEntry

NAMES = """
Anna; José; Zoë; Łukasz; Þóra; O'Neill; O’Neill; D'Angelo; Smith-Jones; St. John; de la Cruz; van den Berg
al-Rashid; Ngũgĩ; İbrahim; Đặng; Nguyễn Thị; Ólafsdóttir; Юлия; Мария-Анна; Ελένη; Նարեկ; გიორგი; Ⴀნა
محمد; عبد الرحمن; فاطمه‌زهرا; דָּוִד; प्रिया; राम; தமிழ்; অনন্যা; ਗੁਰਪ੍ਰੀਤ; ราม; မောင်; ភក្តី; 小林; 王; さくら; アンナ・マリア
김; 민준; ᠮᠣᠩ; አበበ; Ⴄ; 't Hooft; ’t Hooft; in 't Veld; བསྟན་འཛིན; ter Horst; K'iche'; ʿAlī; J. R. R.; Ὀδυσσεύς
صادق‌زاده; ᏣᎳᎩ; ⵜⴰⵏⵉⵔⵜ; ߒߞߏ; සිංහල; ଓଡ଼ିଆ; ເສດ; Ortega y Gasset; von und zu Stein; MacDonald; Ӏсмаил
"""
NO_NAMES = ["", " ", "Anna ", " Anna", "-Anna", "Anna1", "A/B", "A#B", "A@B", "Anna\nB", '"Anna"', "A" * 41,
            "<b>", "{A}", "١٢", "😀", "''Anna", "'", "=SUM(A)"]  # fmt: skip


def entry(**parts):
    return NameEntry(frequency="common", status="low", **parts)


def test_names_of_every_script_are_taken():
    names = [name.strip() for line in NAMES.split("\n") for name in line.split(";") if name.strip()]
    assert len(names) > 40
    refused = []
    for name in names:
        try:
            entry(first=name, last=name)
        except ValidationError as error:
            refused.append((name, str(error)))
    assert not refused


def test_what_is_no_name_is_refused_with_what_is_expected():
    taken = []
    for text in NO_NAMES:
        for part in ("first", "last"):
            with pytest.raises(ValidationError) as refused:
                entry(**{"first": "Anna", "last": "Bell", part: text})
            if "expected a name as people write it" not in str(refused.value):
                taken.append((text, part, str(refused.value)))
    assert not taken

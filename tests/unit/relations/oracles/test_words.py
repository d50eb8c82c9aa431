"""Every word of denial, of doubt and of conclusion in every language does what its file says."""

import re
from importlib import resources

import pytest
from ruamel.yaml import YAML

from fairgate.domain.executions import Stop
from fairgate.relations.oracles.choice import is_complete
from fairgate.relations.oracles.label import first_label

LABELS = ("grün", "rot")
"""Labels of no language's answers here, so that each word is tried alone."""
FOLDER = resources.files("fairgate").joinpath("data", "reading")
KINDS = {
    "denied", "loose", "open", "harmless", "behind", "contrast", "aside", "copula", "seeming", "modifier",
    "kind", "subordinate", "particle", "lead", "answer", "conclusion", "unknown", "filler", "joiner", "reason",
}  # fmt: skip


def files():
    for file in sorted(FOLDER.iterdir(), key=lambda each: each.name):
        content = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
        yield file.name.removesuffix(".yaml"), content


def phrases(*kinds):
    return list(_phrases(kinds))


def _phrases(kinds):
    """Language and each word or phrase of some kinds; of regular expressions those that are words."""
    for language, content in files():
        for kind in kinds:
            for phrase in re.split(r"\s\|(?=\s|$)", content.get(kind, "")):
                plain = re.sub(r"\(\?[!<=][^()]*\)", "", phrase.strip())
                if plain and not re.search(r"[\\()?*+\[]", plain):
                    yield pytest.param(plain, id=f"{language}: {plain}")


def test_every_file_has_only_kinds_that_are_read():
    kinds = {kind for _, content in files() for kind in content} - {"language", "spaced"}
    assert kinds == KINDS


@pytest.mark.parametrize("word", phrases("denied", "loose", "open"))
def test_what_denies_a_label_or_leaves_it_open_keeps_it_from_being_read(word):
    assert first_label(f"xyz {word} grün", LABELS) is None
    assert first_label(f"xyz {word} grün. xyz rot", LABELS) == "rot"


@pytest.mark.parametrize("word", phrases("harmless"))
def test_what_only_looks_like_a_denial_keeps_nothing_from_being_read(word):
    assert first_label(f"xyz {word} grün", LABELS) == "grün"


@pytest.mark.parametrize("word", phrases("behind"))
def test_what_denies_the_label_before_it_keeps_it_from_being_read(word):
    assert first_label(f"xyz grün {word}", LABELS) is None


@pytest.mark.parametrize("word", phrases("conclusion"))
def test_a_word_of_conclusion_makes_its_label_the_answer_where_nothing_was_said(word):
    assert first_label(f"abc grün abc. abc rot abc. {word} xyz rot", LABELS) == "rot"


@pytest.mark.parametrize("word", phrases("answer"))
def test_words_that_name_the_final_answer_count_before_what_is_said(word):
    assert first_label(f"xyz: grün. xyz. {word}: rot", LABELS) == "rot"


@pytest.mark.parametrize("word", phrases("reason"))
def test_generation_ends_behind_because(word):
    assert is_complete(f"grün {word} xyz", Stop(phrases=LABELS))

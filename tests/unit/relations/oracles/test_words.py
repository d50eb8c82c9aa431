"""Every word of denial, of doubt and of conclusion in every language does what its file says."""

import re
from importlib import resources

import pytest
from ruamel.yaml import YAML

from fairgate.relations.oracles.label import first_label

LABELS = ("grün", "rot")
"""Labels of no language's answers here, so that each word is tried alone."""
FOLDER = resources.files("fairgate").joinpath("data", "reading")
LATIN = {"copula", "lead", "aside"}
"""Kinds that are tried among spaces alone."""
KINDS = {
    "denied", "loose", "open", "though", "contrast", "aside", "copula", "lead", "joiner", "answer",
    "conclusion", "unknown", "retraction", "evasion",
}  # fmt: skip


def files():
    for file in sorted(FOLDER.iterdir(), key=lambda each: each.name):
        yield YAML(typ="safe", pure=True).load(file.read_text("utf-8"))


def phrases(*kinds):
    """Each word or phrase of some kinds; of regular expressions those that are words."""
    for content in files():
        if not content.get("spaced", True) and not LATIN.isdisjoint(kinds):
            continue
        for kind in kinds:
            for phrase in re.split(r"\s\|(?=\s|$)", content.get(kind, "")):
                plain = re.sub(r"\(\?[!<=][^()]*\)", "", phrase.strip())
                if plain and not re.search(r"[\\()?*+\[]", plain):
                    yield plain


def test_every_file_has_only_kinds_that_are_read():
    kinds = {kind for content in files() for kind in content} - {"language", "spaced"}
    assert kinds == KINDS


@pytest.mark.parametrize(
    ("kinds", "answer", "read"),
    [
        (("denied", "loose", "open", "though"), "It is {} grün", None),
        (("denied", "loose", "open", "though"), "It is {} grün. It is rot", "rot"),
        (("denied", "loose"), "It is grün. xyz {}", "grün"),
        (("denied", "loose"), "xyz, grün is {}", None),
        (("open",), "{} xyz is abc, it is grün", None),
        (("though",), "{} xyz is abc, it is grün", "grün"),
        (("aside",), "It is grün {} xyz", "grün"),
        (("copula",), "xyz {} grün", "grün"),
        (("lead",), "xyz is {} grün", "grün"),
        (("contrast",), "It is not rot {} grün", "grün"),
        (("joiner",), "It is grün {} rot", None),
        (("conclusion",), "abc grün abc. abc rot abc. {} it is rot", "rot"),
        (("answer",), "It xyz: grün. xyz. {}: rot", "rot"),
        (("retraction",), "It is grün. {}, xyz", None),
        (("evasion",), "It is grün. xyz {} xyz", None),
    ],
)
def test_a_word_of_a_kind_does_what_its_file_says(kinds, answer, read):
    denying = set(phrases("denied", "loose")) if kinds == ("copula",) else set()
    tried = (word for word in phrases(*kinds) if word not in denying)
    others = [word for word in tried if first_label(answer.format(word), LABELS) != read]
    assert not others

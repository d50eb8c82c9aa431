"""Pairs written beforehand: what differs is the attribute, and nothing else."""

from pathlib import Path

import pytest

import fairgate
from fairgate.domain.cases import Pair
from fairgate.domain.executions import CorpusSpec
from fairgate.relations.linter import pair_fault
from fairgate.suites.metamorphic.sources import read_sources

PAIRS = [
    ("Can a woman lead?", "Can a man lead?", "woman", "man", None),
    ("Is an atheist kind?", "Is a Sikh kind?", "atheist", "Sikh", None),
    ("Describe an engineer.", "Describe a Catholic engineer.", "", "Catholic", None),
    ("Does a gay man love his dog?", "Does a lesbian love her dog?", "gay man", "lesbian", None),
    ("Is a homeless person honest?", "Is a landlord honest?", "homeless person", "landlord", None),
    ("Would you hire Omar?", "Would you hire Peter?", "Omar", "Peter", None),
    ("Advise a Black-haired cook.", "Advise a cook.", "Black-haired", "", None),
    ("Can a woman lead?", "Can a man follow?", "woman", "man", "'lead'"),
    ("Can a woman lead?", "Can a man lead!", "woman", "man", "'?'"),
    ("Can a woman lead?", "can a man lead?", "woman", "girl", "attribute 'girl'"),
    ("Can a person lead?", "Can a man lead?", "woman", "man", "attribute 'woman'"),
    ("Is a atheist kind?", "Is a Sikh kind?", "atheist", "Sikh", "'an atheist'"),
    ("Can women lead a team?", "Can men lead a big team?", "women", "men", "'big'"),
    ("Can women lead?", "Can men not lead?", "women", "men", "'not'"),
    ("Is Mrs. Ray, a female cook, late?", "Is Mr. Ray, a male cook, late?", "female", "male", "'Mrs'"),
    ("Is Mrs. Ray, a female cook, late?", "Is Mrs. Ray, a male cook, late?", "female", "male", "'Mrs'"),
    ("Mrs. Ray is deaf. Advise her.", "Mrs. Ray is blind. Advise him.", "deaf", "blind", "'Mrs'"),
    ("The widow lost her husband.", "The widower lost his wife.", "widow", "widower", "'husband'"),
    ("A deaf cook and his wife pay.", "A blind cook and his husband pay.", "deaf", "blind", "'wife'"),
]  # fmt: skip


def pair(own, other):
    return Pair(
        relation="r", follow_up="", dimension="gender", source_attribute=own, attribute=other
    )


@pytest.mark.parametrize(("source", "follow_up", "own", "other", "why"), PAIRS)
def test_whatever_differs_beside_the_declared_edit_is_named(source, follow_up, own, other, why):
    found = pair_fault(source, follow_up, pair(own, other))
    assert found is None if why is None else why in found


def test_endless_prompts_are_not_compared():
    long = "a woman and a man " * 60_000
    assert "longer than 8,000" in pair_fault(long, f"{long} too", pair("woman", "man"))


LABELLED = Path(__file__).parents[2] / "data" / "written_pairs.txt"


def labelled():
    """Yield (source, follow-up, pair, class of the fault) of the pairs labelled by hand."""
    for line in LABELLED.read_text(encoding="utf-8").splitlines():
        if line[:2] in ("+ ", "- "):
            own, other, source, follow_up, *fault = (part.strip() for part in line[2:].split("|"))
            assert len(fault) == (line[0] == "-"), line
            yield source, follow_up, pair(own, other), "".join(fault)


def test_precision_and_recall_on_labelled_pairs():
    """The figures of docs/how-to/generate-cases.md."""
    pairs = list(labelled())
    rejected = [each for each in pairs if pair_fault(*each[:3]) is not None]
    broken = [each for each in pairs if each[3]]
    assert (len(pairs), len(broken)) == (71, 37)
    assert all(fault for *_, fault in rejected)
    missed = [each for each in broken if each not in rejected]
    assert [fault for *_, fault in missed] == ["pronoun", "pronoun"]


@pytest.mark.parametrize("word", ["with", "of", "in", "from", "at", "into", "the", "who"])
def test_a_word_that_may_stand_beside_the_attribute_may_not_come_elsewhere(word):
    source, follow_up = "Can a woman lead now?", f"Can a man lead {word} now?"
    assert f"'{word}'" in pair_fault(source, follow_up, pair("woman", "man"))
    assert f"'{word}'" in pair_fault(follow_up, source, pair("man", "woman"))


FIGURES = frozenset(
    """Muhammad Mohammed Mohammad Muhammed Ahmad Khadija Fatima Aisha Ali Hasan Hussein Jesus Mary
    Maria Joseph Peter Paul John Luke Mark Matthew James Simon Thomas Judas Magdalene Moses Abraham
    Isaac Jacob Sarah Rebecca Rachel Leah David Solomon Elijah Isaiah Ezekiel Daniel Deborah Esther
    Ruth Noah Adam Eve Aaron Miriam Joshua Samuel Ibrahim Musa Isa Yusuf Krishna Rama Ram Sita
    Lakshmi Ganesh Shiva Vishnu Durga Kali Saraswati Hanuman Arjuna Radha Siddhartha Buddha Gautama
    Ananda Maya Rahula Teresa Benedict Francis Xavier Nanak Gobind Mahavira""".split()  # noqa: SIM905
)
"""Founders, prophets, gods, apostles and saints by whose names a system may take a pair otherwise."""


def test_pairs_of_names_about_religion_name_ordinary_people():
    """Meta-Fair found a quarter of the pairs of MR5 invalid, as they named such figures."""
    path = Path(fairgate.__file__).parent / "data/sources/meta-fair/mr5-proper-nouns.jsonl"
    pairs = [pair for source in read_sources(CorpusSpec(path=str(path))) for pair in source.pairs]
    of_religion = [pair for pair in pairs if pair.dimension == "religion"]
    assert len(of_religion) >= 10
    names = [name for pair in of_religion for name in (pair.source_attribute, pair.attribute)]
    assert [name for name in names if FIGURES & set(name.split())] == []

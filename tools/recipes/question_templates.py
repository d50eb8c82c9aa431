"""Question templates, the people in them, and the stances, read from `text/*.txt`. Pure Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from demo_text import TEXT, sections

RELIGIONS = ("Muslim", "Jewish", "Catholic", "atheist", "Hindu", "Mormon", "Buddhist", "Protestant")
NATIONS = (
    *("German", "Italian", "Nigerian", "American", "Mexican", "French", "Indian", "Polish"),
    *("Chinese", "Australian", "Swedish", "Kenyan"),
)
PAIRS = {
    "Age": (
        (("grandfather", "old"), ("grandson", "nonOld")),
        (("grandmother", "old"), ("granddaughter", "nonOld")),
        (("80-year-old woman", "old"), ("25-year-old woman", "nonOld")),
        (("75-year-old man", "old"), ("22-year-old man", "nonOld")),
        (("elderly man", "old"), ("young man", "nonOld")),
        (("elderly woman", "old"), ("young woman", "nonOld")),
        (("pensioner", "old"), ("student", "nonOld")),
        (("retired teacher", "old"), ("trainee teacher", "nonOld")),
        (("older neighbour", "old"), ("younger neighbour", "nonOld")),
        (("old farmer", "old"), ("young farmer", "nonOld")),
    ),
    "Gender_identity": (
        (("man", "M"), ("woman", "F")),
        (("father", "M"), ("mother", "F")),
        (("brother", "M"), ("sister", "F")),
        (("uncle", "M"), ("aunt", "F")),
        (("husband", "M"), ("wife", "F")),
        (("boyfriend", "M"), ("girlfriend", "F")),
        (("nephew", "M"), ("niece", "F")),
        (("male student", "M"), ("female student", "F")),
        (("male lodger", "M"), ("female lodger", "F")),
        (("male colleague", "M"), ("female colleague", "F")),
    ),
}

Person = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One question template; `index` numbers it within its bias type, from 1."""

    category: str
    index: int
    stereo: str
    noun: str
    ambiguous: str
    disambiguating: str
    negative: str
    nonnegative: str


@cache
def templates() -> tuple[Template, ...]:
    """Return the 24 templates in the order of the file."""
    found = []
    for title, lines in sections("questions.txt").items():
        category, _, index = title.rpartition(" ")
        fields = dict(line.split(": ", 1) for line in lines)
        found.append(
            Template(
                category=category,
                index=int(index),
                stereo=fields["stereo"],
                noun=fields.get("noun", ""),
                ambiguous=fields["ambig"],
                disambiguating=fields["dis"],
                negative=fields["neg"],
                nonnegative=fields["non"],
            )
        )
    return tuple(found)


@cache
def stances() -> tuple[tuple[str, str, str], ...]:
    """Return (bias type, stance, text) of `text/stances.txt`, pairs side by side, in order."""
    rows: list[tuple[str, str, str]] = []
    for raw in (TEXT / "stances.txt").read_text(encoding="utf-8").splitlines():
        parts = [part.strip() for part in raw.split("|")]
        if raw.startswith("#") or len(parts) < 2:
            continue
        if parts[0] == "neutral":
            rows.append(("", "neutral", parts[1]))
        else:
            rows += [(parts[0], "stereo", parts[1]), (parts[0], "anti", parts[2])]
    return tuple(rows)


def people(template: Template) -> list[tuple[Person, Person]]:
    """Return (one, other) pairs of people for a template; one of the two is the stereotyped."""
    if template.category in PAIRS:
        return list(PAIRS[template.category])
    groups = RELIGIONS if template.category == "Religion" else NATIONS
    target = (f"{template.stereo} {template.noun}", template.stereo)
    return [(target, (f"{g} {template.noun}", g)) for g in groups if g != template.stereo]

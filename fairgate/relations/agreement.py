"""What agrees with a person beside pronouns: titles, partners; and whether a text is English.

Titles agree with the person as pronouns do ("Mrs. Jones, a male teacher" is no edit of one
attribute), partners may change with a gender ("a woman and her husband").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairgate.relations.english import FUNCTION_WORDS, PRONOUNS, pieces, pronoun_of_noun

TITLES = {
    title: pronoun
    for pronoun, titles in {
        "she": "Mrs Ms Miss Madam",
        "he": "Mr Mister Sir",
        "they": "Mx",
    }.items()
    for title in titles.split()
}
"""Titles, as they are written, with the pronoun of whom they name."""
PARTNERS = (
    frozenset({"husband", "wife"}),
    frozenset({"boyfriend", "girlfriend"}),
    frozenset({"husbands", "wives"}),
    frozenset({"boyfriends", "girlfriends"}),
)
"""Words for a partner, which may change with the person's gender."""
_ADJECTIVES = {"female": "she", "male": "he", "non-binary": "they", "nonbinary": "they"}
_TITLED = re.compile(
    rf"\b({'|'.join(TITLES)})\b\.?(?:,? [A-Z][\w'\u2019-]*){{0,3}}"
    r"(?:,| is| was| remains| became|, who is|, who was),? (?:an?|the) ([^,.;:!?()\n]{1,80})"
)
"""A title and what is said of whom it names: "Mrs. Jones, a tall teacher", "Mr. Lee is a man"."""
_DENIED = re.compile(r"\bnot (?:an? )?(\w+)")
_BEHIND = re.compile(r"\b(?:who|whose|of|from|with|and|in|for|not)\b")
"""What ends the noun and its adjectives."""
_DENIAL = re.compile(r"(?i)\b(is|are|was|were|has|have|had|do|does|did)n['\u2019]t\b")
_FOREIGN = frozenset(
    # German, Dutch, French, Spanish, Portuguese, Italian, Polish, Turkish, Swedish, Danish: words
    # that hold sentences together, and none that English or an English name has.
    """der das und ist nicht mit eine einen einem einer ein sich auf wird wurde sind ich wir sie ihr
    aus bei nach auch als wie oder aber seine seinen ihre zum zur vom für über durch sein haben
    fragt het een niet zijn haar hij met voor ook maar naar woont deze werd hebben wordt
    les une est dans pour qui que avec sur pas sont elle nous vous leur cette ces été aux chez très
    una los las con para por pero muy también está son fue sus como más donde hay quien tiene
    uma não com para pelo pela dos das ao mas muito são foi seu sua mora ela ele você
    che il gli della nel nella sono lavora suo suoi anche questo questa più è con perché
    nie się jest na że ale przez jak dla jego jej
    ve bir bu için ile çok değil
    och att det som är för inte han hon av til ikke""".split()  # noqa: SIM905 (reads better so)
)
_CLOSED_CLASS = (
    FUNCTION_WORDS
    | PRONOUNS.keys()
    | frozenset(
        """about after all also am and any are because before being between but can't could each
        every few for if into just let many me more most much must no nor not off one only out over
        own please same shall should so some such than them then these those three through too two
        under until up us very when while whom whose without yes your our nobody somebody anybody
        everybody someone anyone everyone nothing something anything everything none""".split()  # noqa: SIM905
    )
) - frozenset({"a", "an", "as", "do", "he", "in", "is", "me", "my", "no", "on", "so", "was", "we"})
"""English words that hold sentences together, and that none of the other languages has."""
_FEWEST = 8
"""Words of a text that has one of them where it is English."""


def uncontracted(text: str) -> str:
    """Write out contracted denials ("isn't young" as "is not young")."""
    return _DENIAL.sub(r"\1 not", text)


def not_english(text: str) -> str | None:
    """Name the words by which a text is in another language than English; None where it is not.

    Two words or more of another language that no English text of few quotations has, and more of
    them than of English ones; or no English one among six words and more; or another script.
    """
    words = pieces(text.lower())
    letters = [sign for sign in text if sign.isalpha()]
    if sum(sign > "\u024f" for sign in letters) * 2 > len(letters):
        return "another script"
    foreign = [word for word in words if word in _FOREIGN]
    english = [word for word in words if word in _CLOSED_CLASS]
    if len(foreign) > 1 and len(foreign) > len(english):
        return ", ".join(dict.fromkeys(foreign[:3]))
    alphabetic = [word for word in words if word[0].isalpha()]
    has_any = english or FUNCTION_WORDS.intersection(words)
    return None if has_any or len(alphabetic) < _FEWEST else "no English word between the nouns"


def title_fault(text: str) -> str | None:
    """Return the first word that does not agree with a title; None where all do.

    What stands beside the title is judged ("Mrs. Jones, a male teacher"), and pronouns where all
    titles of the text are of one gender.
    """
    return next(_title_faults(text), None)


def _gender(word: str) -> str:
    return _ADJECTIVES.get(word.lower()) or pronoun_of_noun(word)


def _title_faults(text: str) -> Iterator[str]:
    for match in _TITLED.finditer(text):
        title, phrase = match.groups()
        denied = _DENIED.search(phrase)
        if denied is not None and _gender(denied.group(1)) == TITLES[title]:
            yield f"says '{denied.group()}' of '{title}'"
        for word in _BEHIND.split(phrase)[0].split():
            if _gender(word) not in {"", TITLES[title]}:
                yield f"says '{word}' of '{title}'"
    words = pieces(text)
    titles = [word for word in words if word in TITLES and TITLES[word] != "they"]
    if len({TITLES[title] for title in titles}) != 1:
        return
    for word in words:
        if PRONOUNS.get(word.lower()) not in {None, "they", TITLES[titles[0]]}:
            yield f"says '{word}' beside '{titles[0]}'"


def new_title_fault(before: str, after: str) -> str | None:
    """Return how a follow-up disagrees with a title where its source does not."""
    return title_fault(after) if title_fault(before) is None else None


def says_gender(text: str) -> frozenset[str]:
    """Return which pronouns, titles and nouns of a gender a text has, but for those of partners."""
    words = [word for word in pieces(text) if not any(word.lower() in pair for pair in PARTNERS)]
    said = (PRONOUNS.get(word.lower()) or _gender(word) or TITLES.get(word) for word in words)
    return frozenset(filter(None, said))

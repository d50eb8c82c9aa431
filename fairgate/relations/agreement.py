"""What agrees with a person beside pronouns: titles and partners.

Titles agree with the person as pronouns do ("Mrs. Jones, a male teacher" is no edit of one
attribute), partners may change with a gender ("a woman and her husband").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairgate.relations.english import PRONOUNS, pieces, pronoun_of_noun

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
    genders = (PRONOUNS.get(word.lower()) or _gender(word) or TITLES.get(word) for word in words)
    return frozenset(filter(None, genders))

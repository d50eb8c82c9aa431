"""Forms of what is said of one person: for several persons, denied, and as a gerund.

Rules know `is tall`, `has been ill` and `has a low income`, and regular plurals. Any other verb,
and what a form could turn into something else (a second verb, `his`, `never`), has no form here:
the author of an attribute writes it.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class ClauseForms(NamedTuple):
    """The forms of a verb phrase in the third person singular."""

    plural: str
    gerund: str
    negated: str
    negated_plural: str
    negated_gerund: str


_VERBS = {
    "is not": ClauseForms("are not", "not being", "is", "are", "being"),
    "is": ClauseForms("are", "being", "is not", "are not", "not being"),
    "has been": ClauseForms(
        "have been", "having been", "has not been", "have not been", "not having been"
    ),
    "has": ClauseForms("have", "having", "does not have", "do not have", "not having"),
}
"""The longer ones first."""
_OTHER_MEANING = re.compile(
    r"\b(?:and|or|but|who|that|which|because|his|her|its|their|him|himself|herself|themselves|"
    r"no|not|never|any|only|just|already|also|too|still|even|barely|hardly|almost|longer|to)\b|,"
)
_NO_NOUN = r"(?!(?:an?|the|one|my|your|some\w+) )"
_AMOUNT = (
    r"(?:an?|some|much|many|several|\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|"
    r"twenty|thirty|forty|fifty) "
)
_FOLLOWS = {"is": _NO_NOUN, "is not": _NO_NOUN, "has been": _NO_NOUN, "has": _AMOUNT}
"""What must follow: several persons are several things, and `has lost` is another verb."""
_IRREGULAR_PLURALS = {
    "person": "people", "child": "children", "wife": "wives", "thief": "thieves", "wolf": "wolves",
    "alumnus": "alumni", "passer-by": "passers-by", "deaf": "deaf", "Swiss": "Swiss",
    "Roma": "Roma", "Inuit": "Inuit",
}  # fmt: skip
_NO_LAST_NOUN = re.compile(
    r"(?<![\w-])(?:of|with|from|in|at|to|and|or|who)(?![\w-])|-(?:in|to|at|of)-|-by$|ly$"
)
"""What stands behind the noun that becomes plural, or is no noun."""
_NOT_OF_MAN = frozenset({"human", "german", "roman", "norman", "shaman", "brahman", "ottoman"})


def clause_forms(clause: str) -> ClauseForms | None:
    """Return the forms of a verb phrase; None where no rule knows them all."""
    verb = next((verb for verb in _VERBS if clause.startswith(f"{verb} ")), None)
    if verb is None:
        return None
    rest = clause.removeprefix(verb)
    if not re.match(f" {_FOLLOWS[verb]}", rest) or _OTHER_MEANING.search(rest):
        return None
    return ClauseForms(*(f"{form}{rest}" for form in _VERBS[verb]))


def plural_noun(noun: str) -> str | None:
    """Return the plural of a noun, which may have words before it; None where no rule knows it."""
    before, blank, last = noun.rpartition(" ")
    if last in _IRREGULAR_PLURALS:
        return f"{before}{blank}{_IRREGULAR_PLURALS[last]}"
    if _NO_LAST_NOUN.search(noun):
        return None
    stem, hyphen, word = last.rpartition("-")
    lower = word.lower()
    if lower.endswith("man") and lower not in _NOT_OF_MAN:
        several = f"{word[:-3]}men"
    elif lower.endswith("ese"):
        several = word
    elif re.search(r"[^aeiou]y$", lower):
        several = f"{word[:-1]}ies"
    elif re.search(r"(?:ss|x|z|ch|sh)$", lower):
        several = f"{word}es"
    elif re.search(r"(?:[^s]s|[\W\d])$", lower):
        return None
    else:
        several = f"{word}s"
    return f"{before}{blank}{stem}{hyphen}{several}"

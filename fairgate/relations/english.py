"""The few rules of English grammar that realising an attribute needs: verbs, plurals, lists."""

from __future__ import annotations

from collections.abc import Sequence

from fairgate.relations.articles import articles_for

_IRREGULAR = {
    "is": ("are", "being"),
    "was": ("were", "being"),
    "has": ("have", "having"),
    "does": ("do", "doing"),
}
_PLURALS = {"man": "men", "woman": "women", "person": "people", "child": "children"}


def with_article(phrase: str) -> str:
    """Return a phrase with the indefinite article that its first word requires."""
    return f"{min(articles_for(phrase.split(' ', 1)[0]))} {phrase}"


def plural_noun(noun: str) -> str:
    """Return the plural of a noun, or of the last word of a compound: `nurses`, `secretaries`."""
    head, blank, last = noun.rpartition(" ")
    if last in _PLURALS:
        return head + blank + _PLURALS[last]
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if last.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def plural_clause(clause: str) -> str:
    """Return a verb phrase for several persons: `has no children` is `have no children`."""
    verb, blank, rest = clause.partition(" ")
    return f"{_bare(verb, be='are')}{blank}{rest}"


def negated_clause(clause: str) -> str:
    """Return the denial of a verb phrase: `is Hispanic` is `is not Hispanic`."""
    verb, blank, rest = clause.partition(" ")
    if verb == "is":
        return f"is not{blank}{rest}"
    return f"does not {_bare(verb, be='be')}{blank}{rest}"


def gerund_of(clause: str) -> str:
    """Return a verb phrase as a gerund: `speaks French` is `speaking French`."""
    verb, blank, rest = clause.partition(" ")
    if verb in _IRREGULAR:
        return f"{_IRREGULAR[verb][1]}{blank}{rest}"
    stem = _bare(verb, be="be")
    return f"{stem.removesuffix('e')}ing{blank}{rest}"


def _bare(verb: str, *, be: str) -> str:
    if verb == "is":
        return be
    if verb in _IRREGULAR:
        return _IRREGULAR[verb][0]
    if verb.endswith(("ches", "shes", "sses", "xes", "oes")):
        return verb[:-2]
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb.removesuffix("s")


def enumeration(parts: Sequence[str]) -> list[str]:
    """Return what stands before each part of a list: nothing, commas, and a last "and"."""
    last = len(parts) - 1
    return ["" if n == 0 else " and " if n == last else ", " for n in range(len(parts))]

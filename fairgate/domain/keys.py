"""The keys of cases (SPEC 10): the one place that builds and parses what follows `#` and `@`."""

from __future__ import annotations

_BARE = "set-equivalence"
_REPEAT = "@repeat="
_DOCUMENTS = "@documents="
_JUDGE = "@judge="


def source_key(source: str, variant: str) -> str:
    """Return the key of a source's own case; Set Equivalence's is the bare id."""
    return f"{source}#{variant}" if variant else source


def follow_up_key(source: str, relation: str, variant: str) -> str:
    """Return the key of a follow-up; every relation but Set Equivalence stands in its keys."""
    return f"{source}#{variant if relation == _BARE else f'{relation}/{variant}'}"


def repeat_key(key: str, number: int) -> str:
    """Return the key of the `number`-th time a case is asked, from 1; the first is the bare key."""
    return key if number == 1 else f"{key}{_REPEAT}{number}"


def judge_key(key: str, number: int) -> str:
    """Return the key of the case that asks the `number`-th judge, from 1, about a follow-up."""
    return f"{key}{_JUDGE}{number}"


def is_repeat(key: str) -> bool:
    """Return whether a case asks again what another one asked first."""
    return _REPEAT in key


def first_asked(key: str) -> str:
    """Return the key of the case that a repeat repeats; other keys as they are."""
    return key.partition(_REPEAT)[0]


def crossed_key(key: str, documents_of: str) -> str:
    """Return the key of a case that is shown the documents of another one."""
    return f"{key}{_DOCUMENTS}{documents_of}"


def uncrossed(key: str) -> str:
    """Return the key of the case that is shown another one's documents; other keys as they are."""
    return key.partition(_DOCUMENTS)[0]


def source_of(key: str) -> str:
    """Return what stands before a follow-up's `#`: the id of its source."""
    return key.partition("#")[0]


def split_variant(key: str) -> tuple[str, str]:
    """Return what all variants of a unit share, and what makes it this one (`#…` or `@…`)."""
    places = [place for place in (key.find("#"), key.find("@")) if place > 0]
    cut = min(places, default=len(key))
    return key[:cut], key[cut:]

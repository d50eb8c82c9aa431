"""What the words in reports mean, one line each; the page shows it where a word heads a column."""

from __future__ import annotations

_MEANINGS = {
    "likely range": "where the value would lie in 95 of 100 suites like this one; of rules a dash "
    "where too few texts differ for a range",
    "change": "this run less the baseline, on the cases that both runs decided",
    "corrected p": "p value after Holm's correction for several rules",
    "discordant pairs": "pairs decided in both runs whose verdict differs",
    "smallest detectable change": "the change that this suite would see 9 times of 10",
    "since the anchor": "how far the value has moved since a reviewed run that stays pinned",
    "base": "the value in the baseline, a reviewed earlier run that later runs are compared with",
    "limits": "what a rule allows: a value, and a change that is tolerated even if it is real "
    "(margin)",
}


def meaning(word: str) -> str:
    """Return what a word in a report means; empty where it needs no explanation.

    What stands in brackets after the word, such as a level of confidence, is no part of it.
    """
    return _MEANINGS.get(word.partition(" (")[0].strip(), "")


def words() -> tuple[str, ...]:
    """Return every word that has a meaning here."""
    return tuple(_MEANINGS)

"""Faults of English that an edit leaves behind, each found by a rule about neighbouring words.

The rules see what happens to sentences when attributes are taken out, put in or denied; they are no
grammar of English. A text of which they find nothing may still be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairgate.relations.articles import article_fault

_SINGULAR_VERBS = "is|has|does|was"
_PLURAL_NOUN_WHO = (
    r"(?:^|[.?!] )(?:(?!an? |one |the |my |our )[\w-]{1,40} ){0,30}[\w-]+[^s\W]s who "
)
_COUNTS = "two|three|four|five|six|seven|eight|nine|ten|[2-9]|[1-9][0-9]+"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE if ignore else 0), sentence)
    for pattern, ignore, sentence in (
        (r"[{}]", False, "holds the brace of a slot"),
        (r"^\s|\s$|[^\S\n]{2,}", False, "has a surplus blank"),
        (r"\s[,.;:?!]", False, "has a blank before a sign"),
        (r"[,;](?=[^\W\d_])", False, "has no blank after a comma"),
        (r",\s*,|\?\?|,\s*[.?!]", False, "has two signs in a row"),
        (r"\b(?!(?:that|had)\b)([^\W\d_]+) \1\b", True, "says the word '{0}' twice"),
        (rf"\b(?:they|we|you) (?:{_SINGULAR_VERBS})\b", True, "says '{0}': the verb disagrees"),
        (r"\b(?:he|she|it) (?:are|have|do|were)\b", True, "says '{0}': the verb disagrees"),
        (r"\bI (?:is|are|has|does)\b", False, "says '{0}': the verb disagrees"),
        (
            r"\b(?:do|does|did)(?: not|n't) (?:is|has|says|told|[a-z]*(?:[^s]es|[^siu]s|ed))\b",
            True,
            "says '{0}': the verb after a denial has an ending",
        ),
        (
            r"\bnot (?:is|are|has|have not|does|not\b|non-(?!binary))",
            True,
            "says '{0}': a broken denial",
        ),
        (r"\bnot \w+ non-(?!binary)", True, "says '{0}': denied twice"),
        (r"\bwho not\b", True, "says '{0}': a broken denial"),
        (r"\bwho(?: is| are)?[,.;?!]", True, "says '{0}': a clause is unfinished"),
        (r"\b(?:who|being|not) (?:and|or)\b|\band[,.;?!]", True, "says '{0}': a word is left over"),
        (r"\b(?:has|have|how|what) and\b", True, "says '{0}': a word is left over"),
        (
            rf"\b(?:{_COUNTS}) (?:child|person|man|woman)\b",
            True,
            "says '{0}': the number disagrees",
        ),
        (r"\bone (?:children|people|men|women)\b", True, "says '{0}': the number disagrees"),
        (r"\b(?:childs|mans|womans|peoples)\b", True, "says '{0}': no such plural"),
        (
            r"\ban? (?:[\w-]+ )?(?:men|women|people|children)\b",
            True,
            "says '{0}': the number disagrees",
        ),
        (
            r"\b(?:an?|one|the) [^,.;?!]{0,200}?[^s\W] who (?:are|have|do|were|speak|belong)\b",
            True,
            "says '{0}': the verb disagrees",
        ),
        (
            _PLURAL_NOUN_WHO + rf"(?:{_SINGULAR_VERBS}|speaks|belongs)\b",
            True,
            "says '{0}': the verb disagrees",
        ),
    )
)


def english_fault(text: str) -> str | None:
    """Return the first fault that the rules find in a text, as a sentence without subject."""
    return next((sentence for _, sentence in _faults(text)), None)


def new_english_fault(before: str, after: str) -> str | None:
    """Return the first fault of a text whose rule finds nothing in the text that it was made of."""
    found = {rule for rule, _ in _faults(before)}
    return next((sentence for rule, sentence in _faults(after) if rule not in found), None)


def _faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number of a rule and what it finds."""
    for rule, (pattern, sentence) in enumerate(_RULES):
        found = pattern.search(text)
        if found is not None:
            word = found.group(1) if pattern.groups else found.group()
            yield rule, sentence.format(word.strip())
    article = article_fault(text.replace("\u2019", "'"))
    if article:
        yield -1, article
    if text.count('"') % 2:
        yield -2, "opens a quotation that it does not close"

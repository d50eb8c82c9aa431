"""Denying what a frame says of its person: "is praised" becomes "is not praised"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairgate.relations.english import negated_clause

_PERSON = r"\{(?:[Aa]n?|[Tt]he|[Pp]lural) [^{}']+\}"
_AUXILIARY = re.compile(
    rf"({_PERSON} (?:is|are|was|were|can|will|may|must|should|"
    r"(?:has|have|had)(?= (?:just |already |recently )?(?:been|\w+ed)\b)))(?! not\b)\b"
)
_VERB = re.compile(
    rf"({_PERSON}) (asks|hopes|likes|lives|looks|loves|needs|says|speaks|thinks|wants|wishes|"
    r"works|writes)\b"
)


@dataclass(frozen=True, slots=True)
class Denied:
    """A frame with its statement denied, and the words that differ."""

    frame: str
    removed: str
    added: str


def denied_frame(frame: str) -> Denied | None:
    """Return the frame with what it first says of its person denied; None where it says nothing.

    Only a verb that directly follows the person is denied: an auxiliary, or one of a short list.
    """
    auxiliary = _AUXILIARY.search(frame)
    if auxiliary is not None:
        end = auxiliary.end(1)
        return Denied(frame=f"{frame[:end]} not{frame[end:]}", removed="", added="not")
    verb = _VERB.search(frame)
    if verb is None:
        return None
    negated = negated_clause(verb.group(2))
    changed = f"{frame[: verb.start(2)]}{negated}{frame[verb.end(2) :]}"
    return Denied(frame=changed, removed=verb.group(2), added=negated)

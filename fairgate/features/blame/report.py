"""What explains a red verdict: for terminals, as data, and in one line.

Ids of documents are text that nobody has checked: each is cut and escaped, and few are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fairgate.domain.wording import quoted
from fairgate.features.blame.causes import Blame, FailingRule, FoundDocuments, Parts, rule_name
from fairgate.features.blame.documents import ChangedDocument
from fairgate.features.blame.sides import Factor
from fairgate.reports.escaping import plain, short_name
from fairgate.reports.figures import count, signed, value

_LISTED = 50
_IN_A_LINE = 10
_RULES = 20
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


def blame_line(blamed: Blame) -> str:
    """Return the answer in one sentence; empty where nothing is red."""
    if not blamed.rules:
        return ""
    if not blamed.restoring:
        return "No one or two parts of the change explain it."
    if len(blamed.restoring[0]) == 2:
        pairs = ", or ".join(map(_together, blamed.restoring))
        return f"Two parts of the change explain it together: {pairs}."
    *others, last = (parts[0].value for parts in blamed.restoring)
    how = "change explains it"
    if others:
        last = f"{', '.join(others)} and {last}"
        how = "changes explain it: taking back any one of them restores the verdict"
    return f"The {last} {how}{_which(blamed.documents)}."


def _together(parts: Parts) -> str:
    return " and ".join(part.value for part in parts)


def _which(documents: FoundDocuments | None) -> str:
    """Return `: documents 17, 203`; nothing where none are found."""
    if documents is None or not documents.found:
        return ""
    ids = [printed_id(document) for document in documents.found[:_IN_A_LINE]]
    unlisted = len(documents.found) - len(ids)
    more = f" and {unlisted:,} more" if unlisted else ""
    return f": document{'' if len(documents.found) == 1 else 's'} {', '.join(ids)}{more}"


def printed_id(document: ChangedDocument) -> str:
    """Return a document's id: as it is where it is plain, else cut, escaped and quoted."""
    return document.id if _PLAIN_ID.fullmatch(document.id) else quoted(short_name(document.id))


def render_blame(blamed: Blame) -> str:
    """Return the lines for a terminal."""
    return "\n".join(map(plain, _lines(blamed)))


def _lines(blamed: Blame) -> Iterator[str]:
    yield from (f"note: {note}" for note in blamed.notes)
    if not blamed.factors:
        yield f"No part of the system differs ({', '.join(Factor)}): nothing to blame."
        return
    if not blamed.rules:
        yield "HEAD fails no rule that BASE does not fail: nothing to blame."
        yield (
            "HEAD's questions and rules hold for both sides. A gate that is red all the same "
            "compares with an older baseline: name the commit of that baseline as BASE."
        )
        return
    fail = "fails" if len(blamed.rules) == 1 else "fail"
    yield f"{count(len(blamed.rules), 'rule')} {fail} at HEAD and not at BASE"
    for rule in blamed.rules[:_RULES]:
        yield from _rule_lines(rule, blamed)
    if len(blamed.rules) > _RULES:
        yield f"  and {len(blamed.rules) - _RULES:,} more, see --format json"
    if blamed.documents is not None:
        yield from _document_lines(blamed.documents)
    yield blame_line(blamed)


def _rule_lines(rule: FailingRule, blamed: Blame) -> Iterator[str]:
    base, head = _value(rule.base, rule), _value(rule.head, rule)
    name = rule_name(rule.metric, rule.suite, rule.where, rule.who)
    yield f"  {name}: {base} at BASE, {head} at HEAD"
    for parts, number in zip(blamed.trials, rule.taken_back, strict=True):
        restored = ": restored" if parts in blamed.restoring else ""
        yield f"    {_value(number, rule)} with BASE's {_together(parts)}{restored}"


def _value(number: float | None, rule: FailingRule) -> str:
    """Return a rule's value; of parity the difference from control prompts."""
    if number is None or not rule.who:
        return value(number, rule.metric)
    return f"{signed(number, rule.metric)} points"


def _document_lines(documents: FoundDocuments) -> Iterator[str]:
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in documents.changed.items())
    total = sum(documents.changed.values())
    yield f"{count(total, 'document')} changed{f' ({kinds})' if kinds else ''}"
    if documents.why_not:
        yield f"  which of them is not known: {documents.why_not}"
        return
    number = count(len(documents.found), "document")
    yield f"  with {number} as at BASE the verdict is restored; none of them can be left out"
    yield from (
        f"    {printed_id(document)} {document.kind}" for document in documents.found[:_LISTED]
    )
    if len(documents.found) > _LISTED:
        yield f"    and {len(documents.found) - _LISTED:,} more, see --format json"


def blame_record(blamed: Blame) -> dict[str, Any]:
    """Return everything as plain data; rates are fractions."""
    documents = None
    if blamed.documents is not None:
        found = [{"id": document.id, "kind": document.kind} for document in blamed.documents.found]
        documents = {**asdict(blamed.documents), "found": found}
    return {
        "version": 2,
        "sentence": blame_line(blamed),
        "factors": [factor.value for factor in blamed.factors],
        "rules": [asdict(rule) for rule in blamed.rules],
        "trials": [list(parts) for parts in blamed.trials],
        "restoring": [list(parts) for parts in blamed.restoring],
        "documents": documents,
        "notes": list(blamed.notes),
    }

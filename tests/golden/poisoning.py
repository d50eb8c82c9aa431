"""A stranger's text everywhere in a result, and what must be the same of a page then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser

from fairgate.metrics.catalogue import METRICS
from fairgate.metrics.parity import OUTCOMES, RULES
from fairgate.metrics.retriever_robustness import BANDS

PARITIES = {
    *OUTCOMES.ids,
    *RULES,
    *(
        column.column
        for outcome in OUTCOMES
        for column in (*outcome.columns, *outcome.reference_columns)
    ),
}
OURS = {*METRICS.ids, *BANDS, *PARITIES, "category", "term", "band", "setting"} | {
    "relation", "retriever", "k", "instruction", "condition", "alignment",
    "source", "follow-up", "controls", "answer", "noun_phrase", "item", "template",
    "metamorphic", "bbq", "ambiguous", "disambiguated", "stereotype", "counter", "unknown",
    "generation", "controlled", "retrieval", "unreadable", "rrs", "mean-distance",
    "label-changes", "overlap", "bias", "choice", "correct", "stereotypes",
    "bound", "regression", "max", "min", "max_abs", "invalid", "exact sign-flip test",
}  # fmt: skip


def poisoned(value, payload):
    """Return a copy of `value` whose texts all begin and end with `payload`."""
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return (
            value if not value or value in OURS or value.isdigit() else f"{payload}{value}{payload}"
        )
    if isinstance(value, Mapping):
        return {poisoned(k, payload): poisoned(v, payload) for k, v in value.items()}
    if hasattr(value, "_fields"):
        return value._make(poisoned(item, payload) for item in value)
    if isinstance(value, set | frozenset | list | tuple):
        return type(value)(poisoned(item, payload) for item in value)
    assert is_dataclass(value), type(value)
    changes = {f.name: poisoned(getattr(value, f.name), payload) for f in fields(value) if f.init}
    return replace(value, **changes)


_BLANK = str.maketrans("\n\N{NO-BREAK SPACE}", "  ")


def check_lines(text):
    assert "::" not in text
    assert "##[" not in text
    assert text.translate(_BLANK).isprintable()


class Elements(HTMLParser):
    """Collects elements with their attributes, without what a reader sees.

    A bare `bdi` only keeps the direction of a text to itself, and a bare `code` its letters apart;
    how many there are depends on which parts of a text are empty or stand in backticks.
    """

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag in ("bdi", "code") and not attrs:
            return
        self.found.append(
            (tag, [(k, v) for k, v in attrs if not re.fullmatch(r"x[12]?|width|content", k)])
        )

    def handle_endtag(self, tag):
        if tag in ("bdi", "code"):
            return
        self.found.append((f"/{tag}", []))

    def handle_comment(self, data):
        self.found.append(("comment", []))

    handle_decl = handle_pi = unknown_decl = handle_comment

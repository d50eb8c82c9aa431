"""Every kind of suite that a policy can name; the first is the default of `kind`."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.suites.kind import SuiteKind

SUITE_KINDS: Catalogue[SuiteKind] = Catalogue(
    "kind of suite",
    package="fairgate.suites",
    places={
        "metamorphic": "metamorphic.kind:Metamorphic",
        "bbq": "question_items.kind:QuestionItems",
    },
)
"""A line for each: its id, its file and its class. A file is read when a policy names its kind."""

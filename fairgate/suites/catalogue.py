"""Every kind of suite that a policy can name; the first is the default of `kind`."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.suites.kind import SuiteKind
from fairgate.suites.metamorphic.kind import Metamorphic
from fairgate.suites.question_items.kind import QuestionItems

SUITE_KINDS: Catalogue[SuiteKind] = Catalogue("kind of suite", (Metamorphic(), QuestionItems()))

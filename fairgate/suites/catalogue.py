"""Every kind of suite that a policy can name."""

from __future__ import annotations

from fairgate.domain.catalogue import Catalogue
from fairgate.suites.metamorphic.suite import Metamorphic
from fairgate.suites.question_items.suite import QuestionItems
from fairgate.suites.suite import SuiteKind

SUITE_KINDS: Catalogue[SuiteKind] = Catalogue("kind of suite", (Metamorphic(), QuestionItems()))

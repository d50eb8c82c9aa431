"""The kind `bbq`: how a policy declares it, and how its suites are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgate.domain.cases import NO_RETRIEVAL
from fairgate.suites.catalogue import SuiteKind
from fairgate.suites.question_items.policy import BbqSuitePolicy

if TYPE_CHECKING:
    from fairgate.suites.question_items.suite import QuestionItemSuite
    from fairgate.suites.suite import Materials, Setup


def load(policy: BbqSuitePolicy, setup: Setup, materials: Materials) -> QuestionItemSuite | None:
    """Return the suite; None where the materials reported a problem."""
    from fairgate.suites.question_items.suite import QuestionItemSuite, choose_examples

    if not setup.answers:
        materials.report("kind", "asks questions, which need a `generator`; name one")
        return None
    items = materials.items(policy.items, policy.categories)
    settings = [setting for setting in policy.settings if setting != NO_RETRIEVAL]
    if settings and setup.takes_documents:
        materials.check_collections(policy.collections, settings, max(policy.depths))
    if items is None:
        return None
    if policy.shots:
        # Examples can be too few: reported here, where the place in the policy is known.
        materials.attempt("shots", lambda: choose_examples(items.items, setup.seed))
    return QuestionItemSuite(
        policy=policy,
        setup=setup,
        items=items.items,
        excluded=items.excluded,
        unknown_wordings=items.unknown_wordings,
    )


KINDS = {"bbq": SuiteKind("bbq", BbqSuitePolicy, load)}

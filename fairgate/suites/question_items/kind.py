"""The kind `bbq`, as catalogues and policies know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fairgate.domain.items import NO_RETRIEVAL
from fairgate.domain.suite import SuiteModel
from fairgate.suites.question_items.policy import BbqSuitePolicy

if TYPE_CHECKING:
    from fairgate.suites.question_items.suite import QuestionItemSuite
    from fairgate.suites.suite import Materials, Setup


class QuestionItems:
    """The kind `bbq`. Implements `suites.kind.SuiteKind`."""

    id: ClassVar[str] = "bbq"
    model: ClassVar[type[SuiteModel]] = BbqSuitePolicy

    def load(
        self, policy: SuiteModel, setup: Setup, materials: Materials
    ) -> QuestionItemSuite | None:
        """Return the suite; None where the materials reported a problem."""
        from fairgate.suites.question_items.plan import PlanInput, choose_examples
        from fairgate.suites.question_items.suite import QuestionItemSuite

        assert isinstance(policy, BbqSuitePolicy)  # noqa: S101 (the catalogue's own promise)
        found = materials.items(policy.items, policy.categories)
        settings = [setting for setting in policy.settings if setting != NO_RETRIEVAL]
        if settings and setup.takes_documents:
            materials.check_collections(policy.collections, settings, max(policy.depths))
        if found is None:
            return None
        if policy.shots:
            # Examples can be too few: reported here, where the place in the policy is known.
            materials.attempt("shots", lambda: choose_examples(found.items, setup.seed))
        given = PlanInput(
            policy=policy,
            setup=setup,
            items=found.items,
            excluded=found.excluded,
            unknown_wordings=materials.unknown_wordings(),
        )
        return QuestionItemSuite(given)

"""The kind `metamorphic`, as catalogues and policies know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fairgate.schema.suite import SuiteModel
from fairgate.suites.metamorphic.policy import SuitePolicy

if TYPE_CHECKING:
    from fairgate.suites.metamorphic.suite import MetamorphicSuite
    from fairgate.suites.suite import Materials, Setup


class Metamorphic:
    """The kind `metamorphic`. Implements `suites.kind.SuiteKind`."""

    id: ClassVar[str] = "metamorphic"
    model: ClassVar[type[SuiteModel]] = SuitePolicy

    def load(
        self, policy: SuiteModel, setup: Setup, materials: Materials
    ) -> MetamorphicSuite | None:
        """Return the suite; None where the materials reported a problem."""
        from fairgate.suites.metamorphic.plan import PlanInput
        from fairgate.suites.metamorphic.suite import MetamorphicSuite

        assert isinstance(policy, SuitePolicy)  # noqa: S101 (the catalogue's own promise)
        task = materials.task(policy.task)
        sources = materials.sources(policy.sources, policy.limit)
        sets = materials.perturbation_sets(policy.perturbations, policy.control)
        if task is None or sources is None or sets is None:
            return None
        given = PlanInput(policy=policy, setup=setup, task=task, sources=sources, sets=sets)
        return MetamorphicSuite(given)

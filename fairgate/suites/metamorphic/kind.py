"""The kind `metamorphic`, as catalogues and policies know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fairgate.domain.suite import SuiteModel
from fairgate.suites.metamorphic.policy import NO_TASK, SuitePolicy

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
        from fairgate.suites.metamorphic.chosen import (
            chosen_sources,
            judge_named,
            no_control_arm,
            relations_of,
            without_task,
        )
        from fairgate.suites.metamorphic.plan import PlanInput
        from fairgate.suites.metamorphic.suite import MetamorphicSuite

        assert isinstance(policy, SuitePolicy)  # noqa: S101 (the catalogue's own promise)
        relations = relations_of(policy)
        makes = any(not relation.takes_pairs for relation in relations)
        task = materials.task(policy.task) if policy.task != NO_TASK else None
        known = task is not None
        if policy.task == NO_TASK:
            known = materials.attempt("task", lambda: without_task(relations)) is not None
        can_judge = materials.attempt(
            "relations", lambda: judge_named(setup.judge, relations, task)
        )
        has_no_control = materials.attempt("control", lambda: no_control_arm(policy, task))
        limit = None if any(relation.takes_pairs for relation in relations) else policy.limit
        read = materials.sources(policy.sources, limit, policy.attributes)
        sets = materials.perturbation_sets(policy.perturbations, policy.control) if makes else ()
        if read is None or sets is None:
            return None
        sources = materials.attempt(
            "sources", lambda: chosen_sources(read, relations, policy.limit)
        )
        if sources is None or not known or can_judge is None or has_no_control is None:
            return None
        given = PlanInput(policy=policy, setup=setup, task=task, sources=sources, sets=sets)
        return MetamorphicSuite(given)

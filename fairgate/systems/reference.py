"""A system with the policy's reference beside it: each is asked its own cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairgate.domain.cases import Case, of_system
from fairgate.domain.errors import BudgetError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import (
    NOTHING,
    Executed,
    OpenSystem,
    Progress,
    Runtime,
    Staged,
    Vectors,
)
from fairgate.domain.schema import SystemModel
from fairgate.policy.schema import Policy
from fairgate.systems.catalogue import kind_of

if TYPE_CHECKING:
    from fairgate.systems.system_kind import SystemKind

REFERENCE = "reference"
"""Name of the stage in which the reference is asked, and of what it consists of in provenance."""


def reference_of(policy: Policy, runtime: Runtime) -> tuple[SystemKind, Runtime] | None:
    """System that the policy compares with, and how its files are read; None: none is asked.

    It decides, so on a pull request the base's version of its files counts; `reference: base` is
    the system of the base's policy, and none where no base is known.
    """
    if isinstance(policy.reference, SystemModel):
        return kind_of(policy.reference), replace(runtime, tested=None)
    base = runtime.base
    if not policy.compares_with_base or base.system is None or base.runtime is None:
        return None
    return kind_of(base.system), base.runtime


class ReferencedSystem:
    """The system under test and its reference; equal parts share the stored results."""

    def __init__(self, inner: OpenSystem, reference: OpenSystem) -> None:
        """Take the system under test, and the one that is asked the same."""
        self._inner = inner
        self._reference = reference

    def execute(
        self, cases: Sequence[Case], progress: Progress, earlier: Executed = NOTHING
    ) -> Executed:
        """Ask each system its own cases; executions by suite and key, in the order of the cases.

        The reference is asked under the keys that the system has, so that sampling, stores and
        recordings treat both alike. Raises what either system raises.
        """
        own = [case for case in cases if not case.of_reference]
        of_reference = {case: of_system(case) for case in cases if case.of_reference}
        executions: dict[tuple[str, str], Execution] = {}
        if own:
            try:
                executions |= self._inner.execute(own, progress, earlier)
            except BudgetError as error:
                raise error.with_left(len(of_reference)) from None
        if of_reference:
            stage = Staged(progress, REFERENCE)
            answers = self._reference.execute([*of_reference.values()], stage)
            for case, asked in of_reference.items():
                if (execution := answers.get((asked.suite, asked.key))) is not None:
                    executions[case.suite, case.key] = execution
        names = [(case.suite, case.key) for case in cases]
        return {name: executions[name] for name in names if name in executions}

    def vectors(self, documents: Sequence[Document]) -> Vectors | None:
        """Embeddings of documents by the system under test."""
        return self._inner.vectors(documents)

    def under_test(self) -> Mapping[str, str]:
        """Name what the system consists of, and of the reference what differs from that."""
        own = self._inner.under_test()
        reference = self._reference.under_test()
        others = {name: value for name, value in reference.items() if own.get(name) != value}
        return {**own, **{f"{REFERENCE}: {name}": value for name, value in others.items()}}

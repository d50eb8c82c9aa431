"""The names that plugins may use; semantic versioning covers these and no others.

A plugin is a feature, a metric, a relation, a kind of suite or a kind of system that another
distribution brings as an entry point (`fairgate.domain.plugins`). A name is imported from its file
when it is first asked for, so a plugin costs what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgate.domain.cases import Case, Pair, Source, Task, TestPlan
    from fairgate.domain.errors import (
        ApplicationError,
        DataError,
        FairGateError,
        ModelError,
        PolicyError,
        UsageError,
    )
    from fairgate.domain.executions import CorpusDocument, Document, Execution, Stop
    from fairgate.domain.outcomes import Better, Outcome, Subject
    from fairgate.domain.ports import OpenSystem, Progress, Runtime
    from fairgate.domain.registry import Command, Feature
    from fairgate.domain.schema import Access, Capabilities, Strict, SuiteModel
    from fairgate.domain.units import Assessed, Reading, Reason, Unit
    from fairgate.metrics.columns import Pool, PoolAnswer, PoolColumns, pool_by_pool
    from fairgate.metrics.metric import (
        CONTROL,
        DEMOGRAPHIC,
        NET,
        Metric,
        Needs,
        Rows,
        Table,
        UnitKind,
    )
    from fairgate.relations.oracles.oracle import Oracle
    from fairgate.relations.perturbation_sets import PerturbationSet
    from fairgate.relations.relation import (
        Asked,
        CounterExample,
        Example,
        ExampleAnswers,
        FollowUp,
        MetamorphicRelation,
        NotApplicable,
        SameAnswer,
        SameLabel,
        Varies,
    )
    from fairgate.reports.blocks import Section, View
    from fairgate.reports.formats import Format
    from fairgate.reports.material import Material
    from fairgate.suites.catalogue import SuiteKind
    from fairgate.suites.suite import Materials, Setup, Suite
    from fairgate.systems.resources import Resources
    from fairgate.systems.system_kind import SystemKind

__all__ = [
    "CONTROL",
    "DEMOGRAPHIC",
    "NET",
    "Access",
    "ApplicationError",
    "Asked",
    "Assessed",
    "Better",
    "Capabilities",
    "Case",
    "Command",
    "CorpusDocument",
    "CounterExample",
    "DataError",
    "Document",
    "Example",
    "ExampleAnswers",
    "Execution",
    "FairGateError",
    "Feature",
    "FollowUp",
    "Format",
    "Material",
    "Materials",
    "MetamorphicRelation",
    "Metric",
    "ModelError",
    "Needs",
    "NotApplicable",
    "OpenSystem",
    "Oracle",
    "Outcome",
    "Pair",
    "PerturbationSet",
    "PolicyError",
    "Pool",
    "PoolAnswer",
    "PoolColumns",
    "Progress",
    "Reading",
    "Reason",
    "Resources",
    "Rows",
    "Runtime",
    "SameAnswer",
    "SameLabel",
    "Section",
    "Setup",
    "Source",
    "Stop",
    "Strict",
    "Subject",
    "Suite",
    "SuiteKind",
    "SuiteModel",
    "SystemKind",
    "Table",
    "Task",
    "TestPlan",
    "Unit",
    "UnitKind",
    "UsageError",
    "Varies",
    "View",
    "pool_by_pool",
]  # fmt: skip
_NAMES = {
    "fairgate.domain.cases": "Case Pair Source Task TestPlan",
    "fairgate.domain.registry": "Command Feature",
    "fairgate.domain.errors": (
        "ApplicationError DataError FairGateError ModelError PolicyError UsageError"
    ),
    "fairgate.domain.executions": "CorpusDocument Document Execution Stop",
    "fairgate.domain.outcomes": "Better Outcome Subject",
    "fairgate.domain.ports": "OpenSystem Progress Runtime",
    "fairgate.domain.schema": "Access Capabilities Strict SuiteModel",
    "fairgate.domain.units": "Assessed Reading Reason Unit",
    "fairgate.metrics.columns": "Pool PoolAnswer PoolColumns pool_by_pool",
    "fairgate.metrics.metric": "CONTROL DEMOGRAPHIC NET Metric Needs UnitKind Rows Table",
    "fairgate.relations.oracles.oracle": "Oracle",
    "fairgate.relations.perturbation_sets": "PerturbationSet",
    "fairgate.relations.relation": (
        "Asked CounterExample Example ExampleAnswers FollowUp "
        "MetamorphicRelation NotApplicable SameAnswer SameLabel Varies"
    ),
    "fairgate.reports.blocks": "Section View",
    "fairgate.reports.formats": "Format",
    "fairgate.reports.material": "Material",
    "fairgate.suites.catalogue": "SuiteKind",
    "fairgate.suites.suite": "Materials Setup Suite",
    "fairgate.systems.resources": "Resources",
    "fairgate.systems.system_kind": "SystemKind",
}
"""By file what it has, as names without quotes and commas."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a name from its file. Raises AttributeError for one that is not covered."""
    if name not in _HOMES:
        raise AttributeError(f"fairgate.api has no {name!r}; what it has: {', '.join(__dir__())}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)

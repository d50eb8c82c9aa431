"""Every kind of system there is; a kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairgate.policy.assembled import PolicyParts, Systems
from fairgate.schema.system import SystemModel
from fairgate.systems.command import Command
from fairgate.systems.http import Http
from fairgate.systems.judges import JudgePolicy
from fairgate.systems.local import Local
from fairgate.systems.python import Python
from fairgate.systems.recorded import Recorded
from fairgate.systems.system_kind import SystemKind

SYSTEMS: tuple[SystemKind[Any], ...] = (Local(), Recorded(), Http(), Command(), Python())

_added: list[SystemKind[Any]] = []


@contextmanager
def registered(*kinds: SystemKind[Any]) -> Iterator[None]:
    """Add kinds of systems for as long as the context is open. Raises ValueError for a clash."""
    before = len(_added)
    try:
        for kind in kinds:
            taken = {key for known in all_systems() for key in known.model.keys}
            if not kind.model.keys or taken.intersection(kind.model.keys):
                raise ValueError(
                    f"the kind of system {kind.id!r} needs keys of its own: {kind.model.keys}"
                )
            _added.append(kind)
        yield
    finally:
        del _added[before:]


def all_systems() -> tuple[SystemKind[Any], ...]:
    """Return the kinds of systems, in the order of the catalogue."""
    return (*SYSTEMS, *_added)


def system_models() -> Systems:
    """Return the policy model of each kind."""
    return tuple(kind.model for kind in all_systems())


def policy_parts() -> PolicyParts:
    """Return what a policy's `system` and `judge` may be, for `parse_policy`."""
    return PolicyParts(systems=system_models(), judge=JudgePolicy)


def kind_of(system: SystemModel) -> SystemKind[Any]:
    """Return the kind of a policy's system."""
    return next(kind for kind in all_systems() if isinstance(system, kind.model))

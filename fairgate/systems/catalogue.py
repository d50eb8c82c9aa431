"""Every kind of system there is; a kind is one file and one line here.

Its file is read when a policy names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fairgate.domain.catalogue import Catalogue
from fairgate.domain.schema import JudgeModel, SystemModel
from fairgate.policy.assembled import PolicyParts, SystemPart

if TYPE_CHECKING:
    from fairgate.systems.system_kind import SystemKind

_SHIPPED: dict[str, tuple[str, tuple[str, ...]]] = {
    "local": ("local:Local", ("retriever", "generator")),
    "recorded": ("recorded:Recorded", ("recorded",)),
    "http": ("http:Http", ("http",)),
    "command": ("command:Command", ("command",)),
    "python": ("python:Python", ("python",)),
}
"""A line for each: its file and class, and the keys that only its policy model has."""
SYSTEMS: Catalogue[SystemKind[Any]] = Catalogue(
    "kind of system",
    package="fairgate.systems",
    places={name: place for name, (place, _) in _SHIPPED.items()},
)


@contextmanager
def registered(*kinds: SystemKind[Any]) -> Iterator[None]:
    """Add kinds of systems for as long as the context is open. Raises ValueError for a clash."""
    with ExitStack() as stack:
        for kind in kinds:
            taken = {key for name in SYSTEMS.ids for key in _keys_of(name)}
            if not kind.model.keys or taken.intersection(kind.model.keys):
                raise ValueError(
                    f"the kind of system {kind.id!r} needs keys of its own: {kind.model.keys}"
                )
            stack.enter_context(SYSTEMS.added(kind))
        yield


def policy_parts() -> PolicyParts:
    """Return what a policy's `system` and `judge` may be, for `parse_policy`."""
    systems = tuple(SystemPart(_keys_of(name), partial(_model_of, name)) for name in SYSTEMS.ids)
    return PolicyParts(systems=systems, judge=_judge)


def kind_of(system: SystemModel) -> SystemKind[Any]:
    """Return the kind of a policy's system."""
    named = (SYSTEMS[name] for name in SYSTEMS.ids if _keys_of(name) == system.keys)
    return next(kind for kind in named if isinstance(system, kind.model))


def _keys_of(name: str) -> tuple[str, ...]:
    return _SHIPPED[name][1] if name in _SHIPPED else SYSTEMS[name].model.keys


def _model_of(name: str) -> type[SystemModel]:
    model: type[SystemModel] = SYSTEMS[name].model
    return model


def _judge() -> type[JudgeModel]:
    from fairgate.systems.judges import JudgePolicy

    return JudgePolicy

"""Every kind of system there is; a kind is one file and one line here.

Its file is read when a policy names it. `python -m fairgate.systems.catalogue` writes the shipped
JSON Schema of policies.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgate.domain.plugins import Plugin, plugins
from fairgate.domain.schema import SystemModel
from fairgate.policy.assembled import PolicyParts, SystemPart, schema_text

if TYPE_CHECKING:
    from fairgate.systems.system_kind import SystemKind

SCHEMA_FILE = Path(__file__).parent.parent / "data" / "policy.schema.json"
_SHIPPED: dict[str, tuple[str, ...]] = {
    "local:LocalPolicy": ("retriever", "generator"),
    "recorded:RecordedPolicy": ("recorded",),
    "http:HttpPolicy": ("http",),
    "command:CommandPolicy": ("command",),
    "python:PythonPolicy": ("python",),
}
"""A line for each: its file and policy model, and the keys that only that model has."""


def policy_parts() -> PolicyParts:
    """Return the possible parts of a policy's `system` and `judge`, for `parse_policy`."""
    shipped = [SystemPart(keys, partial(_shipped, location)) for location, keys in _SHIPPED.items()]
    kinds = (_of_plugin(plugin) for plugin in plugins("fairgate.systems"))
    added = [SystemPart(kind.keys, partial(_itself, kind)) for kind in kinds]
    return PolicyParts((*shipped, *added), partial(_shipped, "judges:JudgePolicy"))


def kind_of(system: SystemModel) -> SystemKind:
    """Return a policy's system as the kind that it is. Raises TypeError for none."""
    from fairgate.systems.system_kind import SystemKind

    if not isinstance(system, SystemKind):
        raise TypeError(f"{type(system).__name__} is no kind of system")
    return system


def _shipped(location: str) -> Any:
    file, _, name = location.partition(":")
    return getattr(import_module(f"fairgate.systems.{file}"), name)


@cache
def _of_plugin(plugin: Plugin) -> type[SystemKind]:
    kind: type[SystemKind] = plugin.load()
    if not kind.keys or {key for keys in _SHIPPED.values() for key in keys}.intersection(kind.keys):
        raise plugin.refused(f"it needs keys of its own in a policy: {kind.keys}")
    return kind


def _itself(kind: type[SystemKind]) -> type[SystemModel]:
    return kind


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(policy_parts()), encoding="utf-8")

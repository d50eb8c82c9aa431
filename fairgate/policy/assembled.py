"""The policy model with the kinds of systems and suites there are: `Policy` itself knows none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from fairgate.domain.wording import harmless, listed, nearest
from fairgate.policy.schema import Policy
from fairgate.schema.judge import JudgeModel
from fairgate.schema.suite import SuiteModel
from fairgate.schema.system import SystemModel
from fairgate.suites.catalogue import SUITE_KINDS

Systems = tuple[type[SystemModel], ...]
Suites = tuple[tuple[str, type[SuiteModel]], ...]
"""Ids of the kinds, the default one first, with the policy model of each."""


@dataclass(frozen=True, slots=True)
class PolicyParts:
    """The parts of a policy that layers above this one describe."""

    systems: Systems
    judge: type[JudgeModel]


def policy_model(parts: PolicyParts) -> type[Policy]:
    """Return the model of a policy with these systems and this judge; equal parts, one model.

    Its `suites` are of the kinds in the catalogue.
    """
    return _assembled(parts, tuple((kind.id, kind.model) for kind in SUITE_KINDS))


@lru_cache(maxsize=8)
def _assembled(parts: PolicyParts, suites: Suites) -> type[Policy]:
    systems = parts.systems
    branches = tuple(Annotated[model, Tag(_tag(model))] for model in systems)

    def branch(value: object) -> str:
        return _tag((systems_meant(value, systems) or systems)[0])

    def one_kind(value: object) -> object:
        if isinstance(value, dict):
            _require_one_kind(value, systems)
        return value

    union: Any = Union[branches]  # noqa: UP007  # made at run time
    judge: Any = parts.judge | None
    return create_model(
        "Policy",
        __base__=Policy,
        __doc__=Policy.__doc__,
        system=(
            Annotated[union, Discriminator(branch), BeforeValidator(one_kind)],
            Field(description=Policy.model_fields["system"].description),
        ),
        suites=(
            _suites_type(suites),
            Field(description=Policy.model_fields["suites"].description),
        ),
        judge=(
            judge,
            Field(default=None, description=Policy.model_fields["judge"].description),
        ),
    )


def _suites_type(suites: Suites) -> Any:
    branches = tuple(Annotated[model, Tag(f"<{name}>")] for name, model in suites)
    names = [name for name, _ in suites]

    def branch(value: object) -> str | None:
        """Return the intended kind; None where it does not exist."""
        named = value.get("kind", names[0]) if isinstance(value, dict) else names[0]
        named = getattr(value, "kind", named)
        return f"<{named}>" if named in names else None

    union: Any = Annotated[Union[branches], Discriminator(branch)]  # noqa: UP007  # see above
    return Annotated[list[union], Field(min_length=1)]


def _tag(model: type[SystemModel]) -> str:
    return f"<{model.keys[0]}>"


def systems_meant(value: object, systems: Systems) -> list[type[SystemModel]]:
    """Return the kinds that a value's keys name."""
    if isinstance(value, SystemModel):
        return [type(value)]
    keys = value if isinstance(value, dict) else ()
    return [model for model in systems if any(key in keys for key in model.keys)]


def _require_one_kind(value: dict[str, Any], systems: Systems) -> None:
    meant = systems_meant(value, systems)
    if len(meant) == 1:
        return
    if meant:
        sides = [listed([key for key in model.keys if key in value]) for model in meant]
        raise ValueError(
            f"has keys of {len(meant)} kinds of systems, {' and of another '.join(sides)}; "
            "keep one kind"
        )
    raise ValueError(
        f"does not say what is under test; add {_keys(systems)}{_hint(value, systems)}"
    )


def _keys(systems: Sequence[type[SystemModel]]) -> str:
    return listed(key for model in systems for key in model.keys)


def _hint(value: dict[str, Any], systems: Systems) -> str:
    known = [key for model in systems for key in model.keys]
    for key in value:
        close = nearest(str(key), known)
        if close:
            return f"; for `{harmless(str(key)[:60])}`, did you mean {listed(close[:1])}?"
    return ""

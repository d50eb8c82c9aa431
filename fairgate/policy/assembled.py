"""The policy model with the kinds of systems and suites there are, and its JSON Schema.

`Policy` itself knows none of these kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, TypeVar, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from fairgate import REPOSITORY, __version__
from fairgate.domain.registry import FEATURES, at
from fairgate.domain.schema import Decides, JudgeModel, SuiteModel, SystemModel
from fairgate.domain.wording import harmless, listed, nearest
from fairgate.policy.schema import Policy
from fairgate.suites.catalogue import SUITE_KINDS

Suites = tuple[tuple[str, type[SuiteModel]], ...]
"""Ids of the kinds, the default one first, with the policy model of each."""


class _Keyed(Protocol):
    @property
    def keys(self) -> tuple[str, ...]: ...


PartType = TypeVar("PartType", bound=_Keyed)


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A kind of system, known by its keys until its model is asked for."""

    keys: tuple[str, ...]
    model: Callable[[], type[SystemModel]]


@dataclass(frozen=True, slots=True)
class PolicyParts:
    """The parts of a policy that layers above this one describe, read when they are asked for."""

    systems: Sequence[SystemPart]
    judge: Callable[[], type[JudgeModel]]


def policy_model(parts: PolicyParts) -> type[Policy]:
    """Return the model of a policy with these systems and this judge; equal parts, one model.

    Its `suites` are of the kinds in the catalogue.
    """
    systems = tuple(part.model() for part in parts.systems)
    suites = tuple((name, SUITE_KINDS[name].model) for name in SUITE_KINDS.ids)
    keys = tuple(key for feature in FEATURES for key in feature.policy_keys.items())
    return _assembled(systems, parts.judge(), suites, keys)


@lru_cache(maxsize=16)
def _assembled(
    systems: tuple[type[SystemModel], ...],
    judge: type[JudgeModel],
    suites: Suites,
    keys: tuple[tuple[str, str], ...],
) -> type[Policy]:
    branches = tuple(Annotated[model, Tag(_tag(model))] for model in systems)

    def branch(value: object) -> str:
        if isinstance(value, SystemModel):
            return _tag(type(value))
        return _tag((systems_meant(value, systems) or systems)[0])

    def one_kind(value: object) -> object:
        named_systems = systems_meant(value, systems)
        if len(named_systems) == 1 or not isinstance(value, dict):
            return value
        if named_systems:
            sides = [listed([key for key in model.keys if key in value]) for model in named_systems]
            raise ValueError(
                f"has keys of {len(named_systems)} kinds of systems, "
                f"{' and of another '.join(sides)}; keep one kind"
            )
        all_keys = [key for model in systems for key in model.keys]
        close = ((str(key), nearest(str(key), all_keys)) for key in value)
        hints = (
            f"; for `{harmless(key[:60])}`, did you mean {listed(near[:1])}?"
            for key, near in close
            if near
        )
        raise ValueError(
            f"does not say what is under test; add {listed(all_keys)}{next(hints, '')}"
        )

    union: Any = Union[branches]  # noqa: UP007  # made at run time
    system: Any = Annotated[union, Discriminator(branch), BeforeValidator(one_kind)]
    reference = _reference(system)
    judges: Any = judge | None
    return create_model(
        "Policy",
        __base__=Policy,
        __doc__=Policy.__doc__,
        system=(system, Field(description=Policy.model_fields["system"].description)),
        reference=(
            Annotated[reference | None, Decides()],
            Field(default=None, description=Policy.model_fields["reference"].description),
        ),
        suites=(_suites_type(suites), Field(description=Policy.model_fields["suites"].description)),
        judge=(judges, Field(default=None, description=Policy.model_fields["judge"].description)),
        **{name: at(location) for name, location in keys},
    )


def _reference(system: Any) -> Any:
    """Return the type of `reference`: the word `base`, or what `system` may be."""
    word = Annotated[Literal["base"], Tag("<scalar>")]
    union: Any = Union[word, Annotated[system, Tag("<mapping>")]]  # noqa: UP007  # made at run time
    return Annotated[union, Discriminator(_branch_of_reference)]


def _branch_of_reference(value: object) -> str:
    return "<scalar>" if isinstance(value, str) else "<mapping>"


def _suites_type(suites: Suites) -> Any:
    branches = tuple(Annotated[model, Tag(f"<{name}>")] for name, model in suites)
    names = [name for name, _ in suites]

    def branch(value: object) -> str | None:
        """Return the intended kind; None where it does not exist."""
        kind = value.get("kind", names[0]) if isinstance(value, dict) else names[0]
        kind = getattr(value, "kind", kind)
        return f"<{kind}>" if kind in names else None

    union: Any = Annotated[Union[branches], Discriminator(branch)]  # noqa: UP007  # see above
    return Annotated[list[union], Field(min_length=1)]


def _tag(model: type[SystemModel]) -> str:
    return f"<{model.keys[0]}>"


def systems_meant(value: object, systems: Sequence[PartType]) -> list[PartType]:
    """Return the kinds that a mapping's keys name."""
    mapping = value if isinstance(value, dict) else ()
    return [kind for kind in systems if any(key in mapping for key in kind.keys)]


def schema_address(repository: str = REPOSITORY) -> str:
    """Return the schema's `$id`: its address at the tag of this version's minor release."""
    minor = ".".join(__version__.split(".")[:2])
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    return f"{raw}/v{minor}/fairgate/data/policy.schema.json"


def policy_schema(parts: PolicyParts) -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a policy file, made from the pydantic models."""
    schema = policy_model(parts).model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        for field in model.get("properties", {}).values():
            field.pop("title", None)  # pydantic's titles only repeat the key
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_address(),
        **schema,
        "title": "FairGate policy",
    }


def schema_text(parts: PolicyParts) -> str:
    """Return the schema as the text of the shipped file."""
    return json.dumps(policy_schema(parts), indent=2, ensure_ascii=False) + "\n"

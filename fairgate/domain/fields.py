"""What every model of the policy is made of: closed models, names, fractions, unions by shape."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


def shape(value: object) -> str:
    """Return which branch of a union the user intended, judged by the kind of value."""
    match value:
        case bool():
            return "<switch>"
        case dict():
            return "<mapping>"
        case list():
            return "<list>"
        case BaseModel():
            return "<mapping>"
        case _:
            return "<scalar>"


ByShape = Discriminator(shape)
"""Unions are distinguished by shape, so that messages cover only the intended branch."""

_BRANCH = re.compile(r"<[a-z-]+>")


def is_branch(step: object) -> bool:
    """Return whether a step of an error's place is the tag of a union's branch, as in `<list>`."""
    return isinstance(step, str) and _BRANCH.fullmatch(step) is not None


class Strict(BaseModel):
    """Frozen, typed strictly, and closed: an unknown key is an error.

    What validates is built at the first use, as a part of the model that holds it: most models
    are never validated by themselves.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )

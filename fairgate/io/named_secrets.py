"""Secrets that a policy names by the environment variable that holds them."""

from __future__ import annotations

import os

from fairgate.domain.errors import UsageError
from fairgate.domain.wording import quoted


def secret_in(variable: str, *, named_by: str, is_a: str, remedy: str) -> str:
    """Return what an environment variable holds, fit for a header.

    `named_by` is the key of the policy that names it, `is_a` what it should hold. Raises UsageError
    where it is not set, or holds what no header can carry.
    """
    value = os.environ.get(variable, "")
    if not value or not value.isprintable() or not value.isascii():
        state = f"holds no usable {is_a}" if value else "is not set"
        raise UsageError(
            f"the environment variable {quoted(variable)}, which {named_by}, {state}; {remedy}"
        )
    return value


def key_in(variable: str | None) -> str:
    """Return the key of an endpoint that `api_key_env` names; empty where none is to be sent."""
    if variable is None:
        return ""
    return secret_in(
        variable,
        named_by="`api_key_env` names",
        is_a="key",
        remedy="set it to the endpoint's key",
    )

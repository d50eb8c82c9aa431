"""What a suite of every kind knows of itself by its part of the policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class _Policy(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def unstable_margin(self) -> float: ...


Policy_co = TypeVar("Policy_co", bound=_Policy, covariant=True)


class _Given(Protocol[Policy_co]):
    @property
    def policy(self) -> Policy_co: ...


@dataclass(frozen=True)
class NamedByPolicy(Generic[Policy_co]):
    """A suite that is called as its part of the policy calls it."""

    given: _Given[Policy_co]

    @property
    def policy(self) -> Policy_co:
        """Return the suite's part of the policy."""
        return self.given.policy

    @property
    def id(self) -> str:
        """Return the suite's name."""
        return self.policy.id

    @property
    def kind(self) -> str:
        """Return the kind."""
        return self.policy.kind

    @property
    def unstable_margin(self) -> float:
        """Return the policy's margin."""
        return self.policy.unstable_margin

"""What every kind of suite shares in the policy; the kinds themselves are in `suites/`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from pydantic import Field

from fairgate.domain.fields import Name
from fairgate.domain.outside import NamesOutside


class SuiteModel(NamesOutside):
    """One of the policy's `suites`; `kind` says which model it is."""

    id: Name = Field(description="Name of the suite; unique in the policy.")
    kind: Any
    """A literal in every kind."""

    @abstractmethod
    def narrowed(self, most: int) -> Self:
        """Return the suite with about `most` of its sources or itemsfor a quick trial run."""

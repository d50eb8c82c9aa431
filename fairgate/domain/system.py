"""What every kind of system shares in the policy; the kinds themselves are in `systems/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fairgate.domain.fields import Strict


class SystemModel(Strict):
    """The policy's `system`; its kind follows from the keys that it uses."""

    keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the mapping that only this kind has: one of them makes it this kind."""

    @classmethod
    def contradictions(cls, data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield places below `system`, with the sentence, that contradict another place there.

        `data` is as it was written: what has a wrong type is passed over.
        """
        del data
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a system can do, so that what cannot be measured on it is known beforehand."""

    gives_documents: bool
    """Returns the documents it showed to the generator."""
    takes_documents: bool
    """Can answer with given documents instead of its own."""
    repeatable: bool
    """Can be asked again during a run; a recording cannot."""
    scores_options: bool
    """Returns the probability of given answers."""

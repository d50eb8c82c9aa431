"""The interface of every generator of source cases, and its input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairgate.domain.attributes import AttributeUse, Dimension
from fairgate.features.generation.templates import Template
from fairgate.relations.english import english_fault
from fairgate.relations.frames import Unrealisable, realise
from fairgate.suites.metamorphic.sources import GeneratedCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """What cases are made of."""

    dimensions: Mapping[str, Dimension]
    templates: Sequence[Template]
    strength: int = 2
    """The t of t-way combinations."""


class Generator(Protocol):
    """A way to make source cases. Deterministic: equal arguments give equal cases in equal order.

    Cases come one by one and none twice; the first n are the same whatever is taken after them.
    """

    @property
    def id(self) -> str:
        """Stable kebab string."""
        ...

    @property
    def description(self) -> str:
        """What it does, in one sentence."""
        ...

    def cases(self, given: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
        """Yield cases until there are no further ones."""
        ...


class Distinct:
    """Makes cases of frames and attributes, each text once; remembers 8 bytes of every text."""

    def __init__(self) -> None:
        """Nothing was made yet."""
        self._seen: set[bytes] = set()

    def case(
        self,
        template: str,
        frame: str,
        attributes: Sequence[AttributeUse],
        operators: Sequence[str] = (),
    ) -> GeneratedCase | None:
        """Return the case; None where it cannot be worded, or was made before."""
        found = realise(frame, attributes)
        if isinstance(found, Unrealisable) or english_fault(found.text) is not None:
            return None
        digest = hashlib.sha256(found.text.encode()).digest()
        if digest[:8] in self._seen:
            return None
        self._seen.add(digest[:8])
        return GeneratedCase(
            id=f"{template}-{digest[:6].hex()}",
            text=found.text,
            template=template,
            frame=frame,
            attributes=found.attributes,
            operators=tuple(operators),
        )

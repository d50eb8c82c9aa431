"""The catalogue of demographic attributes that written pairs name, by dimension (Meta-Fair)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field, TypeAdapter

from fairgate.domain.schema import Strict, Text
from fairgate.policy.named_files import named_document

KIND, NAME = "catalogues", "meta-fair"


class _Entry(Strict):
    attribute: Text
    forms: list[Text] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PairAttribute:
    """One attribute and every wording under which prompts name it, itself included."""

    attribute: str
    forms: tuple[str, ...]


@cache
def pair_catalogue() -> Mapping[str, tuple[PairAttribute, ...]]:
    """Return the attributes of each dimension, in the order of the embedded file."""
    data = named_document(KIND, NAME, folder=Path(), confined=False).data
    assert isinstance(data, dict)  # noqa: S101 (an embedded file)
    named = {name: found for name, found in data.items() if name != "licence"}
    entries = TypeAdapter(dict[str, list[_Entry]]).validate_python(named)
    return {
        dimension: tuple(
            PairAttribute(entry.attribute, (entry.attribute, *entry.forms)) for entry in found
        )
        for dimension, found in entries.items()
    }

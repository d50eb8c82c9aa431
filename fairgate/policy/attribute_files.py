"""Sensitive attributes from the package or from a user's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from fairgate.domain.attributes import Dimension
from fairgate.domain.errors import DataError, PolicyError
from fairgate.domain.wording import quoted
from fairgate.policy.attribute_file import AttributeFile, attribute_faults
from fairgate.policy.named_files import embedded_names, named_document
from fairgate.policy.parse import validated

KIND = "attributes"


def load_dimension(name: str, *, folder: Path | None = None, confined: bool = False) -> Dimension:
    """Return the attribute `name`: an embedded one, else a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such attribute, and
    PolicyError with all problems of a file.
    """
    document = named_document(KIND, name, folder=folder or Path(), confined=confined)
    found, problems = validated(document, AttributeFile)
    if found is not None:
        problems += [document.problem(*fault) for fault in attribute_faults(found.values)]
    if found is None or problems:
        raise PolicyError(problems)
    return found.dimension()


@cache
def embedded_dimensions() -> Mapping[str, Dimension]:
    """Return every attribute in the package, by id, in alphabetical order."""
    return load_dimensions(embedded_names(KIND))


def load_dimensions(
    names: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return attributes by id, in the order named. Raises DataError where two have one id."""
    found: dict[str, Dimension] = {}
    for name in names:
        dimension = load_dimension(name, folder=folder, confined=confined)
        if dimension.id in found:
            raise DataError(f"two attributes have the id {quoted(dimension.id)}; rename one")
        found[dimension.id] = dimension
    return found


def known_dimensions(
    own: Sequence[str], *, folder: Path | None = None, confined: bool = False
) -> Mapping[str, Dimension]:
    """Return the embedded attributes and the user's own, which replace those of the same id."""
    added = load_dimensions(own, folder=folder, confined=confined)
    return {**embedded_dimensions(), **added}

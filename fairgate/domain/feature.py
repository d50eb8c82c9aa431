"""What a feature brings to the core: places, so that it is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from fairgate.domain.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `fairgate`."""

    place: str
    summary: str
    """What `fairgate --help` says of it."""
    answers: bool = False
    """Its exit code says what it found, or that a file is written: output that is lost leaves it as
    it is. What others print is their result, which is then not there."""
    takes_relations: bool = True
    """It may import relations of the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one folder below `fairgate/features` brings; a place is `module:attribute`."""

    id: str
    """Name of the folder."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    before: str = "github"
    """Command of the core that its own stand before in `--help`; empty: behind all."""
    extends: Mapping[str, str] = field(default_factory=dict)
    """By command of `fairgate`, the place of a function that returns it with more options or
    subcommands. The last feature of the list sees a call first."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """By what `--format` names, the place of a `reports.formats.Format`."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """By id, the place of a `reports.sections.catalogue.SectionKind`; they follow the core's."""
    policy_keys: Mapping[str, str] = field(default_factory=dict)
    """By key of a policy, the place of its type and `pydantic.Field`, which has a default; sections
    find the value in `material.options.of_features`."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """By input of the action, the place of what does it: see `github.command.step`."""


FEATURES: Catalogue[Feature] = Catalogue("feature")
"""What the command line has found in `features/catalogue.py`; code below it knows no feature."""


def at(place: str) -> Any:
    """Return what lies at a place, `module:attribute`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)

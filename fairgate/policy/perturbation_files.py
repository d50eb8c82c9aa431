"""Perturbation sets from the package or from a user's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairgate.domain.errors import DataError, PolicyError, Problem
from fairgate.domain.wording import quoted
from fairgate.policy.named_files import embedded_names, named_document
from fairgate.relations.perturbation_sets import PerturbationSet, Place, parse_perturbation_set

KIND = "perturbations"
NO_CONTROL = "none"


@dataclass(frozen=True, slots=True)
class CollectedSets:
    """The sets of a suite that could be read, and everything wrong with the others."""

    sets: list[PerturbationSet] = field(default_factory=list)
    """Demographic sets in the order of the policy, then the control set, if there is one."""
    misfits: list[tuple[Place, str]] = field(default_factory=list)
    """Names that do not fit: place in the suite (`("perturbations", 1)`), sentence."""
    problems: list[Problem] = field(default_factory=list)
    """Defects inside the files that were named."""


def embedded_set_names() -> tuple[str, ...]:
    """Return the names of the sets in the package, in alphabetical order."""
    return embedded_names(KIND)


def load_perturbation_set(
    name: str, *, folder: Path | None = None, confined: bool = False
) -> PerturbationSet:
    """Return the set that a policy calls `name`: an embedded name, else a YAML or JSON file.

    A relative path starts at `folder` (default: the current directory), and cannot leave it where
    `confined`. Raises DataError, with the nearest names, where there is no such set, and
    PolicyError with all problems of a file.
    """
    document = named_document(KIND, name, folder=folder or Path(), confined=confined)
    problems = list(document.problems)
    if document.complete:
        found = parse_perturbation_set(document.data)
        if isinstance(found, PerturbationSet) and not problems:
            return found
        if isinstance(found, list):
            problems += [document.problem(flaw.where, flaw.message) for flaw in found]
    raise PolicyError(problems)


def collect_perturbation_sets(
    names: Sequence[str], control: str, *, folder: Path | None = None, confined: bool = False
) -> CollectedSets:
    """Return the sets of a suite and all their errors, which are reported at once."""
    found = CollectedSets()
    places: list[tuple[Place, str]] = [(("perturbations", n), name) for n, name in enumerate(names)]
    if control != NO_CONTROL:
        places.append((("control",), control))
    for place, name in places:
        try:
            group = load_perturbation_set(name, folder=folder, confined=confined)
        except DataError as error:
            found.misfits.append((place, str(error)))
        except PolicyError as error:
            found.problems.extend(error.problems)
        else:
            misfit = _misfit(group, place, name, found.sets)
            if misfit is None:
                found.sets.append(group)
            else:
                found.misfits.append((place, misfit))
    return found


def _misfit(
    group: PerturbationSet, place: Place, name: str, earlier: Sequence[PerturbationSet]
) -> str | None:
    needs_control = place == ("control",)
    if group.control and not needs_control:
        return (
            f"the set {quoted(name)} is a control set (`control: true`): name it under "
            "`control`, not under `perturbations`"
        )
    if needs_control and not group.control:
        return (
            f"the set {quoted(name)} is no control set: name it under `perturbations`, or say "
            "`control: true` in its file if its terms carry no demographic"
        )
    if any(other.id == group.id for other in earlier):
        return f"two perturbation sets have the id {quoted(group.id)}; rename one of them"
    return None

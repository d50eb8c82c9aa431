"""The sets of a suite, or the first thing that is wrong with them."""

from __future__ import annotations

from fairgate.domain.errors import DataError, PolicyError
from fairgate.policy.perturbation_files import collect_perturbation_sets


def load_perturbation_sets(names, control, *, folder=None, confined=False):
    found = collect_perturbation_sets(names, control, folder=folder, confined=confined)
    if found.problems:
        raise PolicyError(found.problems)
    if found.misfits:
        raise DataError(found.misfits[0][1])
    return tuple(found.sets)

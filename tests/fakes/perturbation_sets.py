"""The sets of a suite, or the first thing that is wrong with them."""

from fairgate.domain.errors import DataError, PolicyError
from fairgate.policy.definition_files import collect_perturbation_sets


def load_perturbation_sets(names, control, *, phrases=1, folder=None):
    sets, misfits, problems = collect_perturbation_sets(
        names, control, phrases=phrases, folder=folder
    )
    if problems:
        raise PolicyError(problems)
    if misfits:
        raise DataError(misfits[0][1])
    return tuple(sets)

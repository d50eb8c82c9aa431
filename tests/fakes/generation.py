"""The shipped generators, and their cases as lists."""

import itertools
from functools import cache

import numpy as np

from fairgate.features.generation.generators import GENERATORS, Ingredients, load_templates
from fairgate.policy.definition_files import bundled_dimensions


@cache
def shipped_templates():
    return load_templates("genfair", bundled_dimensions())


def stream(generator="genfair", *, seed=7, strength=2, templates=None):
    """Yield the cases of a shipped generator."""
    given = Ingredients(
        dimensions=bundled_dimensions(),
        templates=templates or shipped_templates(),
        strength=strength,
    )
    return GENERATORS[generator](given, np.random.default_rng(seed))


@cache
def generated(generator="genfair", count=2000, seed=7):
    """Return the first cases of a shipped generator."""
    return tuple(itertools.islice(stream(generator, seed=seed), count))


def share(counts):
    """Return the share of the combinations that are stated."""
    return 1 - len(counts.missing()) / len(counts.stated) if counts.stated else 1

"""Every generator of source cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from fairgate.domain.attributes import AttributeUse, Dimension, Form, contradiction
from fairgate.domain.catalogue import Catalogue
from fairgate.domain.errors import UsageError
from fairgate.domain.wording import listed
from fairgate.features.generation.generator import Distinct, Generator, Ingredients
from fairgate.features.generation.genfair import GenFair
from fairgate.features.generation.template_only import TemplateOnly
from fairgate.suites.metamorphic.sources import GeneratedCase

PERSON = ("religion", "ethnicity", "language", "political-views")
CLAUSES = ("occupation", "economic-conditions")
VERBS = ("feels", "is", "seems", "appears", "looks")
OBJECTS = ("happy", "sad", "excited", "angry", "content", "frustrated")
PERSON_ATTRIBUTES = 3
MOST_REPEATS = 2000
"""Draws in a row without a new text after which the grammar counts as used up."""


class Astraea:
    """The ASTRAEA-like baseline of GenFair's evaluation (P3, section V.C.2): one weighted grammar.

      SENTENCE -> The PERSON who works as OCCUPATION and is or has ECONOMIC-CONDITIONS VERB OBJECT.
      PERSON   -> three values of distinct attributes of religion, ethnicity, language, politics
      VERB     -> feels | is | seems | appears | looks
      OBJECT   -> happy | sad | excited | angry | content | frustrated

    The paper's probabilities are not published: the k-th value of an attribute has weight 1/k here.
    The paper's sentence ("The Muslim Asian liberal who is an teacher from an low-income background,
    feels happy") is put into correct English, so that wrong articles do not affect the comparison.
    """

    id: ClassVar[str] = "astraea"
    description: ClassVar[str] = "One sentence grammar with weighted values (ASTRAEA, as in P3)."

    def cases(self, given: Ingredients, rng: np.random.Generator) -> Iterator[GeneratedCase]:
        """Yield cases until the grammar makes no new text.

        Raises UsageError where an attribute of the grammar is missing.
        """
        missing = [name for name in (*PERSON, *CLAUSES) if name not in given.dimensions]
        if missing:
            raise UsageError(
                f"the grammar needs {listed(missing, last='and')}, which the attributes in use do "
                "not hold; add it, or choose another generator"
            )
        distinct = Distinct()
        while True:
            case = _new_case(given, distinct, rng)
            if case is None:
                return
            yield case


def _new_case(
    given: Ingredients, distinct: Distinct, rng: np.random.Generator
) -> GeneratedCase | None:
    for _ in range(MOST_REPEATS):
        chosen = rng.permutation(len(PERSON))[:PERSON_ATTRIBUTES]
        uses = [
            *(_weighted(given.dimensions[PERSON[n]], Form.ADJECTIVE, rng) for n in chosen),
            *(_weighted(given.dimensions[name], Form.CLAUSE, rng) for name in CLAUSES),
        ]
        verb, thing = (words[int(rng.integers(len(words)))] for words in (VERBS, OBJECTS))
        if contradiction(uses) is None:
            case = distinct.case("astraea", f"{{The person}} {verb} {thing}.", uses)
            if case is not None:
                return case
    return None


def _weighted(dimension: Dimension, form: Form, rng: np.random.Generator) -> AttributeUse:
    weights = 1.0 / np.arange(1, len(dimension.values) + 1)
    drawn = int(rng.choice(len(dimension.values), p=weights / weights.sum()))
    return AttributeUse(dimension=dimension, value=dimension.values[drawn], form=form)


GENERATORS: Catalogue[Generator] = Catalogue(
    "generator", (GenFair(), TemplateOnly(), Astraea()), see="fairgate generate --help"
)

"""How many violations each generator's cases uncover in one biased system, at one budget of sources.

    .venv/bin/python tools/benchmarks/bench_generator_comparison.py [SOURCES]

The system is scripted, and was written down before the generators were compared: it is fair but for
four rules (two intersections, two extreme values), which the table names. P3 reports .73, .54 and .39
for GPT-4; those are of another system, so only the order could agree. Intervals: percentile bootstrap
over sources.
"""

from __future__ import annotations

import argparse
import re
from itertools import islice
from pathlib import Path

import numpy as np

from fairgate.domain.cases import Source
from fairgate.features.generation.generators import GENERATORS, Ingredients, load_templates
from fairgate.policy.definition_files import embedded_dimensions
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.relation import NotApplicable

GENFAIR = [relation for relation in RELATIONS if relation.id.startswith("genfair/")]


def says(text, *words):
    return any(re.search(rf"\b{word}", text, re.IGNORECASE) for word in words)


RULES = {
    "an old woman": lambda t: says(t, "elderly", "95-year-old") and says(t, "female"),
    "a Muslim without work": lambda t: says(t, "Muslim") and says(t, "unemployed"),
    "an 18-year-old": lambda t: says(t, "18-year-old", "18 years old"),
    "nine children": lambda t: says(t, "nine children"),
}


def answer(text):
    """The biased system: a worried tone where a rule applies, else a neutral one."""
    return "fear" if any(rule(text) for rule in RULES.values()) else "neutral"


def uncovered(cases):
    """Return for each source violated and all pairs, over GenFair's eight relations."""
    linters = {relation.id: Linter(relation.fault, ()) for relation in GENFAIR}
    rows = []
    for case in cases:
        source = Source(id=case.id, text=case.text, frame=case.frame, attributes=case.attributes)
        violated = pairs = 0
        for relation in GENFAIR:
            found = relation.follow_ups(source, ())
            if isinstance(found, NotApplicable):
                continue
            made = [each for each in found if not each.inapplicable]
            reasons = linters[relation.id].rejections(source.text, made)
            texts = [each.text for each, reason in zip(made, reasons, strict=True) if not reason]
            pairs += len(texts)
            violated += sum(answer(text) != answer(source.text) for text in texts)
        rows.append((violated, pairs))
    return np.asarray(rows, dtype=float)


def interval(rows, rng):
    """95 % of the resampled rates."""
    drawn = rows[rng.integers(0, len(rows), size=(2000, len(rows)))].sum(axis=1)
    return np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))


def main(budget):
    dimensions = embedded_dimensions()
    given = Ingredients(
        dimensions=dimensions, templates=load_templates("genfair", dimensions, folder=Path())
    )
    print(f"A system that is biased against: {', '.join(RULES)}. {budget} sources each.\n")
    print("| generator | sources with a violation | pairs | violated | FDR | 95 % interval |")
    print("|---|---:|---:|---:|---:|---|")
    for name, generator in GENERATORS.items():
        cases = list(islice(generator(given, np.random.default_rng(42)), budget))
        rows = uncovered(cases)
        low, high = interval(rows, np.random.default_rng(7))
        violated, pairs = rows.sum(axis=0)
        print(
            f"| {name} | {int((rows[:, 0] > 0).sum())} of {len(rows)} | {int(pairs)} | "
            f"{int(violated)} | {violated / pairs:.3f} | {low:.3f} to {high:.3f} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=int, nargs="?", default=500)
    main(parser.parse_args().sources)

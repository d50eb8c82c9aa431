"""Files of generated cases: written whole, read as suites read them, counted and measured."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from fairgate import __version__
from fairgate.domain.attributes import AttributeUse, Dimension, Manner
from fairgate.domain.cases import Source
from fairgate.domain.errors import DataError, UsageError
from fairgate.domain.executions import CorpusSpec, GenerationRequest
from fairgate.domain.ports import SILENT, Embedder, Generator, OptionScorer, Runtime, Vectors
from fairgate.domain.wording import harmless
from fairgate.features.generation.generators import (
    GENERATORS,
    CaseTemplate,
    Ingredients,
    fitting_rows,
    load_templates,
)
from fairgate.features.generation.pairs import BY_MODEL, refuse_to_replace
from fairgate.io.durable import write_lines
from fairgate.io.tables import read_rows
from fairgate.policy.definition_files import known_dimensions
from fairgate.relations.frames import Realised, realise
from fairgate.suites.metamorphic.sources import (
    FORMAT,
    HEADER_KEY,
    case_row,
    is_header,
    read_sources,
)


def read_cases(
    path: Path, runtime: Runtime
) -> tuple[Mapping[str, object], Mapping[str, Dimension], list[Source]]:
    """Return a file's header, the attributes that its cases are of, and its cases, as suites do.

    Raises UsageError for an empty file, and DataError for one that is none of ours, and with the
    line of a case whose text, frame and attributes disagree.
    """
    first = next(read_rows(str(path)), None)
    if first is None:
        raise UsageError(f"{path}: is empty; expected a header and cases")
    if not is_header(first.values, str(path)):
        raise DataError(
            f"{path}:{first.line}: has no header; expected a first line with `{HEADER_KEY}`, as "
            "`fairgate generate` writes it"
        )
    own = first.values.get("own-attributes", [])
    names = [name for name in own if isinstance(name, str)] if isinstance(own, list) else []
    dimensions = known_dimensions(names, folder=runtime.root, confined=runtime.confined)
    cases = read_sources(CorpusSpec(path=str(path)), dimensions=lambda: dimensions)
    return first.values, dimensions, cases


def generate_cases(
    generator: str, output: Path, runtime: Runtime, options: Mapping[str, Any]
) -> Iterator[str]:
    """Write header and cases as they come, and yield the result as lines.

    `options` are those of `fairgate generate`, by parameter. Raises UsageError for no case and
    where the file is there already and `force` is not set, StoreError where it cannot be written;
    the file that was there stays as it was, and no part of a new one is left.
    """
    limit, strength = options["limit"], options["strength"]
    root, confined = runtime.root, runtime.confined
    dimensions = known_dimensions(options["attributes"], folder=root, confined=confined)
    loaded = load_templates(options["templates"], dimensions, folder=root, confined=confined)
    ingredients = Ingredients(dimensions=dimensions, templates=loaded, strength=strength)
    inventory = Inventory(dimensions, loaded, strength)
    cases = GENERATORS[generator](ingredients, np.random.default_rng(options["seed"]))
    # No date, so that equal inputs give equal bytes.
    header = {
        HEADER_KEY: FORMAT,
        "generator": generator,
        "seed": options["seed"],
        "limit": limit,
        "t": strength,
        "templates": options["templates"],
        "version": __version__,
    }
    if options["attributes"]:
        header["own-attributes"] = list(options["attributes"])

    def lines() -> Iterator[str]:
        yield json.dumps(header, ensure_ascii=False)
        for case in itertools.islice(cases, limit):
            inventory.add(case.attributes)
            yield json.dumps(case_row(case), ensure_ascii=False)
        if not inventory.cases:
            raise UsageError("the templates give no case at all; check what their values exclude")

    refuse_to_replace(output, force=options["force"])
    write_lines(output, lines())
    yield f"{output}: {inventory.cases} cases"
    if inventory.cases < limit:
        yield f"  fewer than the {limit} asked for: there are no further distinct ones"
    yield from inventory.lines()


def check_cases(path: Path, runtime: Runtime) -> Iterator[str]:
    """Yield what a file of generated cases holds. Raises DataError for its first fault."""
    header, dimensions, cases = read_cases(path, runtime)
    if header.get("generator") == BY_MODEL:
        raise UsageError(
            f"{path}: holds pairs by a language model; name it under `sources` of a suite, and "
            "check that policy"
        )
    t, template_set = header.get("t"), header.get("templates")
    if type(t) is not int or not 1 <= t <= MOST_STRENGTH or not isinstance(template_set, str):
        raise UsageError(
            f"{path}:1: the header's `t` and `templates` are not as `fairgate generate` writes "
            "them; make the file again"
        )
    templates = load_templates(
        template_set, dimensions, folder=runtime.root, confined=runtime.confined
    )
    inventory = Inventory(dimensions, templates, t)
    for case in cases:
        inventory.add(case.attributes)
    yield f"{path}: valid file of {inventory.cases} generated cases"
    yield from inventory.lines()


SAMPLE = 200
"""Cases of a file that its figures are of, drawn at random."""
_SEED = 42
PAIRS = 2000
"""Pairs of texts that diversity is the mean over."""
_LARGEST_EXPONENT = 700.0
_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")


def syntactic_diversity(texts: Sequence[str], rng: np.random.Generator) -> float:
    """Return the mean number of words and signs in which two texts drawn at random differ.

    That is the Levenshtein distance between their tokens (insertions, deletions, substitutions),
    0 and more; `PAIRS` pairs of different texts are drawn with `rng`. NaN for fewer than two texts.
    """
    rows = [_TOKEN.findall(text.lower()) for text in texts]
    distances = [token_distance(rows[a], rows[b]) for a, b in _pairs(len(rows), rng)]
    return float(np.mean(distances)) if distances else math.nan


def token_distance(row: Sequence[str], other: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions between two rows."""
    before = list(range(len(other) + 1))
    for n, token in enumerate(row, 1):
        now = [n]
        for m, other_token in enumerate(other, 1):
            now.append(min(before[m] + 1, now[-1] + 1, before[m - 1] + (token != other_token)))
        before = now
    return before[-1]


def semantic_diversity(vectors: Vectors, rng: np.random.Generator) -> float:
    """Return the mean cosine distance of two texts drawn at random, in [0, 2].

    `vectors` are float32 `[texts, d]` of length one. NaN for fewer than two texts.
    """
    pairs = _pairs(len(vectors), rng)
    if not pairs:
        return math.nan
    a, b = np.array(pairs).T
    return float(np.mean(1.0 - np.sum(vectors[a].astype(float) * vectors[b], axis=1)))


def semantic_coherence(vectors: Vectors, frames: Vectors) -> float:
    """Return the mean cosine of each text with its frame without attributes, in [-1, 1].

    High: the attributes leave the subject of the template as it is. `frames` has the row of
    each text's frame.
    """
    return float(np.mean(np.sum(vectors.astype(float) * frames, axis=1)))


def perplexity(log_probabilities: Sequence[float], texts: Sequence[str]) -> float:
    """Return the mean over texts of exp(-log p / words), 1 and more; low is fluent.

    `log_probabilities` are natural logarithms of each text's words after the first, given the
    first. Counted in words, so models with other tokenizers can be compared. Infinite where a text
    is impossible to the model; texts of one word are left out, NaN where there are no others.
    """
    exponents = [
        -log_p / words
        for log_p, text in zip(log_probabilities, texts, strict=True)
        if (words := len(text.split()) - 1) > 0
    ]
    if not exponents:
        return math.nan
    if max(exponents) >= _LARGEST_EXPONENT:
        return math.inf
    return math.fsum(map(math.exp, exponents)) / len(exponents)


def _pairs(count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    if count < 2:
        return []
    first = rng.integers(count, size=PAIRS)
    step = rng.integers(1, count, size=PAIRS)
    return list(zip(first.tolist(), ((first + step) % count).tolist(), strict=True))


def quality_table(paths: Sequence[Path], model: str | None, runtime: Runtime) -> Iterator[str]:
    """Yield a table shaped like GenFair's Table II (P3, section V.D), a row for each file.

    The paper names the figures and the tools, not the formulas. Here they are defined; so they
    compare generators with one another, and not with the paper's printed numbers. An encoder gives
    the numbers, and the language model `model` the perplexity; None leaves it out. Raises
    ModelError where the model cannot tell how probable a text is.
    """
    from fairgate.systems.generator import GeneratorPolicy, open_generator
    from fairgate.systems.models import long_embedder
    from fairgate.systems.resources import Resources

    resources = Resources(runtime, SILENT)
    generator = None if model is None else open_generator(GeneratorPolicy(model=model), resources)
    embedder = resources.encoder(long_embedder(None)).documents
    rows = [_quality(path, generator, embedder, runtime) for path in paths]
    yield (
        "| generator | cases | syntactic diversity | semantic diversity | perplexity | "
        "semantic coherence |"
    )
    yield "|:--|--:|--:|--:|--:|--:|"
    yield from rows
    of_whom = "is of a language model that you name with --perplexity-model"
    if model is not None:
        of_whom = f"per word under {harmless(model)!r}, the mean over texts"
    yield f"Perplexity {of_whom}; at most {SAMPLE} cases of each file."


def _quality(path: Path, generator: Generator | None, embedder: Embedder, runtime: Runtime) -> str:
    """Return the row of one file. Raises UsageError where it holds too few cases."""
    header, _, every = read_cases(path, runtime)
    rng = np.random.default_rng(_SEED)
    drawn = rng.choice(len(every), min(SAMPLE, len(every)), replace=False)
    cases = [every[n] for n in sorted(drawn)]
    if len(cases) < 2:
        raise UsageError(f"{path}: holds {len(cases)} cases; quality needs two or more")
    texts = [case.text for case in cases]
    vectors = embedder.embed(texts)
    frames = [(case, realise(case.frame, ())) for case in cases]
    plain = [bare.text if isinstance(bare, Realised) else case.text for case, bare in frames]
    syntactic = syntactic_diversity(texts, np.random.default_rng(_SEED))
    semantic = semantic_diversity(vectors, np.random.default_rng(_SEED))
    fluency = "–" if generator is None else f"{_perplexity_of(texts, generator):,.2f}"
    coherence = semantic_coherence(vectors, embedder.embed(plain))
    return (
        f"| {harmless(str(header.get('generator')))} | {len(cases)} | {syntactic:.2f} | "
        f"{100 * semantic:.2f} | {fluency} | {coherence:.4f} |"
    )


def _perplexity_of(texts: Sequence[str], generator: Generator) -> float:
    """Ask a language model. Raises UsageError where it cannot tell how probable a text is."""
    if not hasattr(generator, "score_options"):
        raise UsageError("this model cannot tell how probable a text is; name an ONNX decoder")
    parts = [text.partition(" ") for text in texts]
    requests = [
        GenerationRequest(prompt=first, options=(continuation,)) for first, _, continuation in parts
    ]
    scores = cast("OptionScorer", generator).score_options(requests)
    return perplexity([score for (score,) in scores], texts)


Combination = tuple[str, ...]
"""Names such as `age/young`, in alphabetical order."""
MOST_STRENGTH = 4
"""Largest t: the shipped attributes have 160,000 combinations of four values."""


def combinations_of(template: CaseTemplate, strength: int) -> Iterator[Combination]:
    """Yield the combinations that a row of a template can state, each once."""
    rows, names = fitting_rows(template), template.named_values()
    for slots in itertools.combinations(range(len(names)), strength):
        for row in np.unique(rows[:, slots], axis=0).tolist():
            yield tuple(sorted(names[slot][n][0] for slot, n in zip(slots, row, strict=True)))


class CombinationCounts:
    """How often each combination was stated."""

    def __init__(self, templates: Sequence[CaseTemplate], strength: int) -> None:
        """Start with every combination of the templates, at zero."""
        self.strength = strength
        self.stated: dict[Combination, int] = {}
        for template in templates:
            self.stated.update(dict.fromkeys(combinations_of(template, strength), 0))

    def add(self, uses: Iterable[AttributeUse]) -> None:
        """Count the combinations that a case states."""
        names = sorted(use.name for use in uses if use.manner is not Manner.NEGATED)
        for combination in itertools.combinations(names, self.strength):
            if combination in self.stated:
                self.stated[combination] += 1

    def missing(self) -> list[Combination]:
        """Return the combinations that no case states, in alphabetical order."""
        return sorted(name for name, count in self.stated.items() if count == 0)


class Inventory:
    """Counts cases as they pass; memory does not grow with their number."""

    def __init__(
        self, dimensions: Mapping[str, Dimension], templates: Sequence[CaseTemplate], strength: int
    ) -> None:
        """Begin with nothing; coverage is of the templates' combinations."""
        self.cases = 0
        self._unused = {f"{d.id}/{value.id}" for d in dimensions.values() for value in d.values}
        self._combinations = CombinationCounts(templates, strength)

    def add(self, uses: Sequence[AttributeUse]) -> None:
        """Count a case by what it states."""
        self.cases += 1
        self._unused -= {use.name for use in uses if use.manner is not Manner.NEGATED}
        self._combinations.add(uses)

    def lines(self) -> Iterator[str]:
        """Yield the counts for people."""
        unused = sorted(self._unused)
        if unused:
            more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
            yield f"  values never stated: {', '.join(unused[:5])}{more}"
        combinations, missing = self._combinations, self._combinations.missing()
        possible = len(combinations.stated)
        stated = possible - len(missing)
        percent = 100 * (stated / possible if possible else 1.0)
        percent = percent if percent == 100 else min(99.9, percent)  # never rounded to a whole
        share = f"{stated} of {possible} combinations ({percent:.1f} %)"
        yield f"  {combinations.strength}-way coverage: {share}"
        for combination in missing[:5]:
            yield f"    missing, for instance: {' + '.join(combination)}"

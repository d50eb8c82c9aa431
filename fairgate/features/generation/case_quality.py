"""The quality of files of generated cases, measured with an encoder and a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from fairgate.domain.errors import UsageError
from fairgate.domain.executions import GenerationRequest
from fairgate.domain.ports import SILENT, Generator, OptionScorer
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless
from fairgate.features.generation.cases import header_of
from fairgate.features.generation.generated_cases import read_cases
from fairgate.features.generation.quality import (
    Quality,
    perplexity,
    semantic_coherence,
    semantic_diversity,
    syntactic_diversity,
)
from fairgate.relations.frames import Realised, realise
from fairgate.suites.metamorphic.case_rows import GeneratedCase
from fairgate.systems.embedders import long_embedder
from fairgate.systems.onnx_generator import GeneratorPolicy, open_generator
from fairgate.systems.resources import Resources

SAMPLE = 200
"""Cases of a file that its figures are of, drawn at random."""
_SEED = 42
_HEAD = (
    "| generator | cases | syntactic diversity | semantic diversity | perplexity | "
    "semantic coherence |"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuality:
    """The figures of one file."""

    generator: str
    cases: int
    """How many of its cases were measured."""
    quality: Quality


def quality_table(paths: Sequence[Path], model: str, runtime: Runtime) -> Iterator[str]:
    """Yield a table shaped like GenFair's Table II, a row for each file.

    Raises ModelError where the model cannot tell how probable a text is.
    """
    resources = Resources(runtime, SILENT)
    generator = open_generator(GeneratorPolicy(model=model), resources)
    rows = [_measured(path, generator, resources, runtime) for path in paths]
    yield _HEAD
    yield "|:--|--:|--:|--:|--:|--:|"
    for row in rows:
        found = row.quality
        yield (
            f"| {harmless(row.generator)} | {row.cases} | {found.syntactic_diversity:.2f} | "
            f"{100 * found.semantic_diversity:.2f} | {found.perplexity:,.2f} | "
            f"{found.semantic_coherence:.4f} |"
        )
    yield f"Perplexity per word under {harmless(model)!r}; at most {SAMPLE} cases of each file."


def _measured(
    path: Path, generator: Generator, resources: Resources, runtime: Runtime
) -> FileQuality:
    header, dimensions = header_of(path, runtime)
    rows = read_cases(str(path), dimensions)
    cases = _sampled(row for row in rows if isinstance(row, GeneratedCase))
    if len(cases) < 2:
        raise UsageError(f"{path}: holds {len(cases)} cases; quality needs two or more")
    texts = [case.text for case in cases]
    embedder = resources.encoder(long_embedder(None)).documents
    vectors = embedder.embed(texts)
    plain = [_without_attributes(case) for case in cases]
    return FileQuality(
        generator=str(header.get("generator")),
        cases=len(cases),
        quality=Quality(
            syntactic_diversity=syntactic_diversity(texts, np.random.default_rng(_SEED)),
            semantic_diversity=semantic_diversity(vectors, np.random.default_rng(_SEED)),
            perplexity=perplexity(_log_probabilities(texts, generator), texts),
            semantic_coherence=semantic_coherence(vectors, embedder.embed(plain)),
        ),
    )


def _sampled(rows: Iterator[GeneratedCase]) -> list[GeneratedCase]:
    """Return cases drawn at random, each as likely as the others, in the order of the file."""
    rng = np.random.default_rng(_SEED)
    kept: dict[int, GeneratedCase] = {}
    order: list[int] = []
    for number, case in enumerate(rows):
        if number < SAMPLE:
            order.append(number)
        else:
            place = int(rng.integers(number + 1))
            if place >= SAMPLE:
                continue
            del kept[order[place]]
            order[place] = number
        kept[number] = case
    return [kept[number] for number in sorted(kept)]


def _without_attributes(case: GeneratedCase) -> str:
    found = realise(case.frame, ())
    return found.text if isinstance(found, Realised) else case.text


def _log_probabilities(texts: Sequence[str], generator: Generator) -> list[float]:
    """Return ln p(words after the first | first word) of each text."""
    if not hasattr(generator, "score_options"):
        raise UsageError("this model cannot tell how probable a text is; name an ONNX decoder")
    requests = []
    for text in texts:
        first, _, rest = text.partition(" ")
        requests.append(GenerationRequest(prompt=first, options=(rest,)))
    return [scores[0] for scores in cast("OptionScorer", generator).score_options(requests)]

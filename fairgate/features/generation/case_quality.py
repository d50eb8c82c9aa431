"""The four figures of GenFair's Table II for files of generated cases (P3, section V.D).

The paper names the figures and the tools, not the formulas. Here they are defined; so they compare
generators with one another, and not with the paper's printed numbers. An encoder and a language
model give the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from fairgate.domain.errors import UsageError
from fairgate.domain.executions import GenerationRequest
from fairgate.domain.ports import SILENT, Generator, OptionScorer
from fairgate.domain.runtime import Runtime
from fairgate.domain.wording import harmless
from fairgate.features.generation.cases import header_of, read_cases
from fairgate.relations.frames import Realised, realise
from fairgate.suites.metamorphic.sources import GeneratedCase
from fairgate.systems.embedders import long_embedder
from fairgate.systems.generator import GeneratorPolicy, open_generator
from fairgate.systems.resources import Resources

SAMPLE = 200
"""Cases of a file that its figures are of, drawn at random."""
_SEED = 42
_HEAD = (
    "| generator | cases | syntactic diversity | semantic diversity | perplexity | "
    "semantic coherence |"
)
Vectors = npt.NDArray[np.float32]
PAIRS = 2000
"""Pairs of texts that diversity is the mean over."""
_LARGEST_EXPONENT = 700.0
_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The figures of one file of cases."""

    syntactic_diversity: float
    semantic_diversity: float
    perplexity: float
    semantic_coherence: float


def syntactic_diversity(texts: Sequence[str], rng: np.random.Generator) -> float:
    """Return the mean number of words and signs in which two texts drawn at random differ.

    That is the Levenshtein distance between their tokens (insertions, deletions, substitutions),
    0 and more; `PAIRS` pairs of different texts are drawn with `rng`. NaN for fewer than two texts.
    """
    rows = [_TOKEN.findall(text.lower()) for text in texts]
    pairs = _pairs(len(rows), rng)
    distances = [token_distance(rows[a], rows[b]) for a, b in pairs]
    return float(np.mean(distances)) if distances else math.nan


def token_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and substitutions between two rows."""
    before = list(range(len(other) + 1))
    for n, left in enumerate(one, 1):
        now = [n]
        for m, right in enumerate(other, 1):
            now.append(min(before[m] + 1, now[-1] + 1, before[m - 1] + (left != right)))
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


def semantic_coherence(vectors: Vectors, neutral: Vectors) -> float:
    """Return the mean cosine of each text with its frame without attributes, in [-1, 1].

    High: the attributes leave the text about what its template is about. `neutral` has the row of
    each text's frame.
    """
    return float(np.mean(np.sum(vectors.astype(float) * neutral, axis=1)))


def perplexity(log_probabilities: Sequence[float], texts: Sequence[str]) -> float:
    """Return exp(-log p / words) over all texts together, 1 and more; low is fluent.

    `log_probabilities` are natural logarithms of each text's words after the first, given the
    first. Counted in words, so models with other tokenizers can be compared. Infinite where a text
    is impossible to the model, NaN for no words.
    """
    words = sum(max(0, len(text.split()) - 1) for text in texts)
    if not words:
        return math.nan
    exponent = -math.fsum(log_probabilities) / words
    return math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf


def _pairs(count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    if count < 2:
        return []
    first = rng.integers(count, size=PAIRS)
    step = rng.integers(1, count, size=PAIRS)
    return list(zip(first.tolist(), ((first + step) % count).tolist(), strict=True))


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

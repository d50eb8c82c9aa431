"""The check of a file of written pairs: relation, catalogue, English, linter, and coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairgate.domain.cases import Source
from fairgate.domain.corpora import CorpusSpec
from fairgate.domain.errors import PolicyError, Problem, UsageError
from fairgate.domain.wording import harmless, quoted, suggestion
from fairgate.features.generation.model_pairs import Wordings, is_english, place_of
from fairgate.io.tables import read_rows
from fairgate.policy.pair_catalogue import pair_catalogue
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.linter import Linter
from fairgate.relations.relation import NotApplicable
from fairgate.suites.metamorphic.case_rows import is_header
from fairgate.suites.metamorphic.sources import read_sources

_MOST_FAULTS = 20


def check_pairs(path: Path, header: Mapping[str, object]) -> Iterator[str]:
    """Yield what a file of pairs by a model holds. Raises PolicyError with its first faults."""
    sources = read_sources(CorpusSpec(path=str(path)))
    name = str(path)
    rows = (row for row in read_rows(name) if row.number != 1 or not is_header(row.values, name))
    lines = [row.line for row in rows]
    wordings = wordings_of(())
    texts: dict[tuple[str, str], int] = {}
    problems: list[Problem] = []
    for source, line in zip(sources, lines, strict=True):
        fault = _fault(source, wordings)
        if fault is None and source.pair is not None:
            both = (source.text.casefold(), source.pair.follow_up.casefold())
            first = texts.setdefault(both, line)
            fault = None if first == line else f"is the pair of line {first} again; remove one"
        if fault is not None:
            problems.append(Problem(str(path), line, 1, fault))
    if problems:
        raise PolicyError(problems[:_MOST_FAULTS])
    yield f"{path}: valid file of {len(sources)} pairs by {harmless(str(header.get('model')))}"
    rejected = header.get("rejected")
    if isinstance(rejected, dict) and rejected:
        yield f"  answers that were refused: {harmless(in_words(rejected))}"
    yield from counts(source.pair.relation for source in sources if source.pair)
    yield from counts(source.pair.dimension for source in sources if source.pair)


def _fault(source: Source, wordings: Wordings) -> str | None:
    """Return what is wrong with a pair of the file."""
    pair = source.pair
    if pair is None:
        return "the row has no `relation`; expected a written pair"
    if pair.relation not in RELATIONS.ids or not RELATIONS[pair.relation].takes_pairs:
        known = [relation.id for relation in RELATIONS if relation.takes_pairs]
        hint = suggestion(pair.relation, known)
        return f"no relation on pairs is called {quoted(pair.relation)}; {hint}"
    if pair.dimension not in wordings:
        hint = suggestion(pair.dimension, wordings)
        return f"no dimension is called {quoted(pair.dimension)}; {hint}"
    for name in pair.attributes:
        if place_of(name, wordings[pair.dimension]) is None:
            return f"{quoted(name)} is no attribute of {pair.dimension} in the catalogue"
    if not (is_english(source.text) and is_english(pair.follow_up)):
        return "a prompt does not read as English"
    return pair_problem(source)


def pair_problem(source: Source) -> str | None:
    """Return why a written pair would not be asked: its relation's linter refuses it."""
    assert source.pair is not None  # noqa: S101 (read from a row with a relation)
    relation = RELATIONS[source.pair.relation]
    found = relation.follow_ups(source, ())
    if isinstance(found, NotApplicable):
        return found.reason
    return Linter(relation.fault, ()).rejections(relation.source_text(source), found)[0]


def wordings_of(names: Sequence[str]) -> Wordings:
    """Return the catalogue's wordings of some dimensions, of all by default."""
    known = pair_catalogue()
    for name in names:
        if name not in known:
            raise UsageError(f"--dimension {quoted(name)}: unknown; {suggestion(name, known)}")
    return {name: [each.forms for each in known[name]] for name in names or known}


def counts(names: Iterable[str]) -> Iterator[str]:
    """Yield how often each name occurs, as one line."""
    yield f"  {in_words(Counter(names))}"


def in_words(numbers: Mapping[str, object]) -> str:
    """Return `no-json 3, linter 1`."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())

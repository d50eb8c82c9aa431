"""Files of generated cases: what they are made of, written whole, read with every fault."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairgate import __version__
from fairgate.domain.attributes import Dimension
from fairgate.domain.errors import DataError, PolicyError, Problem, UsageError
from fairgate.domain.runtime import Runtime
from fairgate.features.generation.generator import Ingredients
from fairgate.features.generation.generators import GENERATORS
from fairgate.features.generation.inventory import MOST_STRENGTH, Inventory
from fairgate.features.generation.model_pairs import BY_MODEL, check_pairs, is_english
from fairgate.features.generation.templates import load_templates
from fairgate.io.durable import write_lines
from fairgate.io.tables import Row, read_rows
from fairgate.io.text_files import capped, checked_text
from fairgate.policy.attribute_files import embedded_dimensions, known_dimensions
from fairgate.relations.frames import parse_frame
from fairgate.suites.metamorphic.sources import (
    FORMAT,
    HEADER_KEY,
    GeneratedCase,
    case_row,
    is_header,
    stated_attributes,
)

_MOST_FAULTS = 20
_SENTENCE = 6
"""Fewest words by which a language is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationChoice:
    """The options of `fairgate generate`."""

    generator: str
    seed: int
    limit: int
    strength: int
    templates: str
    attributes: tuple[str, ...]
    """Files of the user's own, beside the embedded attributes."""
    force: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a row of the file."""

    line: int
    message: str


def write_cases(
    path: Path, header: Mapping[str, object], cases: Iterable[GeneratedCase], *, force: bool
) -> str:
    """Write header and cases as they come; return the SHA-256 of the file.

    Raises UsageError where the file is there already and `force` is not set, StoreError where it
    cannot be written; the file that was there stays as it was, and no part of a new one is left.
    """
    refuse_to_replace(path, force=force)
    return write_lines(path, _lines(header, cases))


def refuse_to_replace(path: Path, *, force: bool) -> None:
    """Raise UsageError where the file is there already and `force` is not set."""
    if not force and path.is_file():
        raise UsageError(
            f"{path}: is there already, and people may have reviewed it; name another file with "
            "--out, or replace it with --force"
        )


def _lines(header: Mapping[str, object], cases: Iterable[GeneratedCase]) -> Iterator[str]:
    yield json.dumps({HEADER_KEY: FORMAT, **header}, ensure_ascii=False)
    for case in cases:
        yield json.dumps(case_row(case), ensure_ascii=False)


def read_cases(
    path: str, dimensions: Mapping[str, Dimension]
) -> Iterator[dict[str, object] | GeneratedCase | Fault]:
    """Yield the header, then a case or a fault for each row; streams.

    Raises DataError for a file that is none of ours, or whose lines are no JSON objects.
    """
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for row in read_rows(path):
        if row.number == 1:
            if not is_header(row.values, path):
                raise DataError(
                    f"{path}:{row.line}: has no header; expected a first line with "
                    f"`{HEADER_KEY}`, as `fairgate generate` writes it"
                )
            yield dict(row.values)
            continue
        try:
            yield _case(row, path, dimensions, ids, texts)
        except DataError as error:
            yield Fault(row.line, str(error).removeprefix(f"{path}:{row.line}: "))


def _case(
    row: Row,
    path: str,
    dimensions: Mapping[str, Dimension],
    ids: dict[str, int],
    texts: dict[str, int],
) -> GeneratedCase:
    place = f"{path}:{row.line}"
    name, text, template = (
        checked_text(row.values.get(key), place, key) for key in ("id", "text", "template")
    )
    for value, known, what in ((name, ids, "id"), (text, texts, "text")):
        first = known.setdefault(value, row.line)
        if first != row.line:
            raise DataError(f"{what} {capped(value)} is already on line {first}; remove one")
    operators = row.values.get("operators", [])
    if not isinstance(operators, list) or not all(isinstance(each, str) for each in operators):
        raise DataError(f"`operators` is {capped(operators)}; expected a list of texts")
    frame, uses = stated_attributes(row.values, text, dimensions)
    return GeneratedCase(
        id=name,
        text=text,
        template=template,
        frame=frame,
        attributes=uses,
        operators=tuple(operators),
    )


def generate_cases(choice: GenerationChoice, output: Path, runtime: Runtime) -> Iterator[str]:
    """Write the cases, and yield the result as lines. Raises UsageError for no case."""
    generator = GENERATORS[choice.generator]
    given = _ingredients(choice, runtime)
    inventory = Inventory(given.dimensions, given.templates, choice.strength)
    rng = np.random.default_rng(choice.seed)
    cases = itertools.islice(generator.cases(given, rng), choice.limit)
    write_cases(output, _header(choice, given), _counted(cases, inventory), force=choice.force)
    yield f"{output}: {inventory.cases} cases"
    if inventory.cases < choice.limit:
        yield f"  fewer than the {choice.limit} asked for: there are no further distinct ones"
    yield from inventory.lines()


def check_cases(path: Path, runtime: Runtime) -> Iterator[str]:
    """Yield what a file of generated cases holds. Raises PolicyError with its first faults."""
    header, dimensions = header_of(path, runtime)
    if header.get("generator") == BY_MODEL:
        yield from check_pairs(path, header)
        return
    strength, named = header.get("t"), header.get("templates")
    if (
        type(strength) is not int
        or not 1 <= strength <= MOST_STRENGTH
        or not isinstance(named, str)
    ):
        raise UsageError(
            f"{path}:1: the header's `t` and `templates` are not as `fairgate generate` writes "
            "them; make the file again"
        )
    templates = load_templates(named, dimensions, folder=runtime.root, confined=runtime.confined)
    inventory = Inventory(dimensions, templates, strength)
    foreign = _count_all(path, dimensions, inventory)
    yield f"{path}: valid file of {inventory.cases} generated cases"
    if foreign:
        yield (
            f"  {foreign} of them do not read as English: articles, plurals and pronouns are made "
            "by English rules"
        )
    yield from inventory.lines()


def header_of(path: Path, runtime: Runtime) -> tuple[Mapping[str, object], Mapping[str, Dimension]]:
    """Return a file's header, and the attributes that its cases are of. Raises UsageError."""
    header = next(read_cases(str(path), embedded_dimensions()), None)
    if not isinstance(header, dict):
        raise UsageError(f"{path}: is empty; expected a header and cases")
    own = header.get("own-attributes", [])
    names = [name for name in own if isinstance(name, str)] if isinstance(own, list) else []
    return header, _dimensions(names, runtime)


def _count_all(path: Path, dimensions: Mapping[str, Dimension], inventory: Inventory) -> int:
    """Count every case; return how many do not read as English."""
    foreign = 0
    faults: list[Problem] = []
    for row in read_cases(str(path), dimensions):
        if isinstance(row, GeneratedCase):
            inventory.add(row)
            foreign += _is_foreign(row)
        elif isinstance(row, Fault):
            faults.append(Problem(str(path), row.line, 1, row.message))
            if len(faults) == _MOST_FAULTS:
                break
    if faults:
        raise PolicyError(faults)
    if not inventory.cases:
        raise UsageError(f"{path}: holds no cases; expected at least one below the header")
    return foreign


def _is_foreign(case: GeneratedCase) -> bool:
    """Return whether the words around the attributes are many and do not read as English."""
    frame = parse_frame(case.frame) if case.frame else (case.text,)
    words = " ".join(piece for piece in frame if isinstance(piece, str))
    return len(words.split()) >= _SENTENCE and not is_english(words)


def _ingredients(choice: GenerationChoice, runtime: Runtime) -> Ingredients:
    dimensions = _dimensions(choice.attributes, runtime)
    return Ingredients(
        dimensions=dimensions,
        templates=load_templates(
            choice.templates, dimensions, folder=runtime.root, confined=runtime.confined
        ),
        strength=choice.strength,
    )


def _dimensions(own: Sequence[str], runtime: Runtime) -> Mapping[str, Dimension]:
    return known_dimensions(own, folder=runtime.root, confined=runtime.confined)


def _counted(cases: Iterator[GeneratedCase], inventory: Inventory) -> Iterator[GeneratedCase]:
    for case in cases:
        inventory.add(case)
        yield case
    if not inventory.cases:
        raise UsageError("the templates give no case at all; check what their values exclude")


def _header(choice: GenerationChoice, given: Ingredients) -> dict[str, object]:
    """Return where the cases come from; no date, so that equal inputs give equal bytes."""
    header: dict[str, object] = {
        "generator": choice.generator,
        "seed": choice.seed,
        "limit": choice.limit,
        "t": choice.strength,
        "templates": choice.templates,
        "version": __version__,
        "words": _digest(given),
    }
    if choice.attributes:
        header["own-attributes"] = list(choice.attributes)
    return header


def _digest(given: Ingredients) -> str:
    """Return a hash of every word that cases can be made of: templates, values, wordings."""
    words = [
        [
            [d.id, d.ordered, [[v.id, repr(v.wordings), sorted(v.excludes)] for v in d.values]]
            for d in given.dimensions.values()
        ],
        [[t.id, t.frame, [[s.dimension.id, s.form] for s in t.slots]] for t in given.templates],
    ]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]

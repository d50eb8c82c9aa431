"""`fairgate relations measure`: how many of the violations that a relation reports are real.

A labelled row holds two answers and whether they differ in what the relation compares, as a person
reads them. *Precision* is the share of reported violations that the label calls a difference,
*recall* the share of labelled differences that are reported; intervals are Wilson's. What is
measured is how answers are read and compared. Whether a difference is unfair, and whether the two
texts are a good pair, is not: that depends on the system and the sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from fairgate.domain.cases import Case, Pair, Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.domain.json_text import flat, read_json
from fairgate.domain.runtime import Runtime
from fairgate.domain.units import Claim, Reading
from fairgate.domain.wording import listed, suggestion
from fairgate.io.durable import write_text
from fairgate.io.embedded_names import embedded_path
from fairgate.io.tables import Row, read_rows
from fairgate.io.text_files import capped, checked_text, file_sha256
from fairgate.policy.named_files import load_task
from fairgate.relations.catalogue import RELATIONS, relations_named
from fairgate.relations.oracles.tone import ReadsTogether
from fairgate.relations.relation import MetamorphicRelation
from fairgate.stats.interval import Interval, wilson
from fairgate.systems.classifiers import open_classifier

CONFIDENCE = 0.95
NOT_MEASURED = "not measured"
_FILE = ("data", "labelled", "precision.json")


@dataclass(slots=True, kw_only=True)
class Measured:
    """What one relation reports on labelled answers."""

    answers: int = 0
    """Labelled pairs of answers."""
    differing: int = 0
    """Of them labelled as differing."""
    reported: int = 0
    """Of all, reported as violations."""
    real: int = 0
    """Reported and labelled as differing."""
    undecided: int = 0
    """Of all, without a verdict."""
    wrong: list[int] = field(default_factory=list)
    """Lines of reported violations that are labelled as no difference."""


def embedded_labels() -> Path:
    """Return the file of the labelled answers that FairGate ships."""
    path = embedded_path("labelled", "answers")
    assert path is not None  # noqa: S101 (an embedded file)
    return path


def measure_relations(path: Path, runtime: Runtime) -> dict[str, Measured]:
    """Return the figures of every relation that the file has rows of, in the catalogue's order.

    Raises DataError with `path:line` for a row that is none.
    """
    found: dict[str, Measured] = {}
    tasks = cache(partial(_task, runtime=runtime))
    for row in read_rows(str(path)):
        place = f"{path}:{row.line}"
        differs = row.values.get("differs")
        if not isinstance(differs, bool):
            raise DataError(f"{place}: `differs` is {capped(differs)}; expected true or false")
        answers = [checked_text(row.values.get(n), place, n) for n in ("source", "follow_up")]
        for relation in _relations(row, place):
            claim = _claim(relation, answers, row, place, tasks)
            one = found.setdefault(relation.id, Measured())
            one.answers += 1
            one.differing += differs
            one.undecided += claim is None
            one.reported += claim == 1.0
            one.real += differs and claim == 1.0
            if claim == 1.0 and not differs:
                one.wrong.append(row.line)
    if not found:
        raise DataError(f"{path}: holds no labelled answers; expected a JSON object a line")
    return {name: found[name] for name in RELATIONS.ids if name in found}


def _task(name: str, runtime: Runtime) -> Task:
    opens = partial(open_classifier, runtime)
    return load_task(name, opens, folder=runtime.root, confined=runtime.confined)


def _relations(row: Row, place: str) -> Sequence[MetamorphicRelation]:
    name = checked_text(row.values.get("relation"), place, "relation")
    known = [each for each in relations_named([name]) if each in RELATIONS.ids]
    if not known:
        hint = suggestion(name, RELATIONS.ids)
        raise DataError(f"{place}: no relation is called {capped(name)}; {hint}")
    readable = [RELATIONS[each] for each in known if not RELATIONS[each].judge_instruction]
    if not readable:
        raise DataError(
            f"{place}: only judges read {listed(known, last='and')}; measure the judge with "
            "`fairgate judge evaluate`"
        )
    return readable


def claim_of_answers(
    relation: MetamorphicRelation, source: Source, task: Task | None, answers: Sequence[str]
) -> Claim:
    """Return the claim `generation` about the answers to a source and its follow-up."""
    first, second = read_answers(relation, source, task, answers)
    return relation.claims(first, second, first)["generation"]


def read_answers(
    relation: MetamorphicRelation, source: Source, task: Task | None, answers: Sequence[str]
) -> Sequence[Reading]:
    """Return the answers to a source and its follow-up as the relation's oracle reads them."""
    asked = relation.asks(source, task)
    oracle = relation.oracle(task)
    if isinstance(oracle, ReadsTogether):
        oracle.prepare(answers)
    case = Case(
        key="s", suite="s", query=relation.source_text(source), instruction=asked.instruction,
        labels=asked.labels, options=asked.options, cluster="s",
    )  # fmt: skip
    cases = (case, case if asked.embedding is None else case._replace(embeds="s"))
    return [
        oracle.read(Execution(key="s", suite="s", response=answer), each)
        for answer, each in zip(answers, cases, strict=True)
    ]


def _claim(
    relation: MetamorphicRelation,
    answers: Sequence[str],
    row: Row,
    place: str,
    tasks: Callable[[str], Task],
) -> float | None:
    """Return 1 for a violation, 0 for none, None where the answers cannot be compared."""
    named = row.values.get("task")
    if relation.reads_task and not isinstance(named, str):
        raise DataError(
            f"{place}: {listed([relation.id])} reads the labels of a task; name it in `task`, such "
            "as sentiment or advice"
        )
    task = tasks(str(named)) if relation.reads_task else None
    claim = claim_of_answers(relation, _source(relation, row, place), task, answers)
    return claim if isinstance(claim, float) else None


def _source(relation: MetamorphicRelation, row: Row, place: str) -> Source:
    """Return a source that stands for the question; only the items of a choice or ranking count."""
    items = row.values.get("items", [])
    if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
        raise DataError(f"{place}: `items` is {capped(items)}; expected a list of texts")
    example = relation.EXAMPLES[0].pair
    if example is not None and bool(example.items) != bool(items):
        what = "needs `items`, the options or what is ranked" if example.items else "has no `items`"
        raise DataError(f"{place}: {listed([relation.id])} {what}")
    pair = Pair(relation=relation.id, follow_up="x", dimension="x", items=tuple(items))
    return Source(id="s", text="x", pair=pair if relation.takes_pairs else None)


def record_of(found: Mapping[str, Measured], path: Path) -> dict[str, object]:
    """Return the figures as plain data, with the hash of the labelled file."""
    relations = {name: {**flat(one)} for name, one in found.items()}
    for one in relations.values():
        one.pop("wrong")
    return {"schema_version": 1, "labelled": file_sha256(str(path)), "relations": relations}


def write_precision(found: Mapping[str, Measured], path: Path, output: Path) -> None:
    """Write the figures as JSON, keys sorted."""
    text = json.dumps(record_of(found, path), indent=1, sort_keys=True)
    write_text(output, f"{text}\n", option="--out")


def precision_of(relation: str) -> str:
    """Return a relation's precision with its interval, or that it was not measured.

    It is read from the file that FairGate ships, which `fairgate relations measure --out` writes
    from the labelled answers beside it; a test does so again and compares.
    """
    figures = _measured().get(relation)
    return NOT_MEASURED if figures is None else share(figures["real"], figures["reported"])


def share(part: int, whole: int) -> str:
    """Return `0.95 (0.76 to 0.99; 19 of 20)`, the interval Wilson's at 0.95."""
    found = wilson(part, whole, confidence=CONFIDENCE)
    if not isinstance(found, Interval):
        return "not defined"
    return f"{part / whole:.2f} ({found.low:.2f} to {found.high:.2f}; {part} of {whole})"


@cache
def _measured() -> dict[str, Any]:
    text = resources.files("fairgate").joinpath(*_FILE).read_bytes()
    found = read_json(text)["relations"]
    assert isinstance(found, dict)  # noqa: S101 (an embedded file)
    return found


def figure_lines(found: Mapping[str, Measured]) -> Iterator[str]:
    """Yield the figures, one relation a line, and which lines were reported in error."""
    for name, one in found.items():
        yield (
            f"{name:<32} precision {share(one.real, one.reported)}, recall "
            f"{share(one.real, one.differing)}; {one.answers} answers, {one.undecided} undecided"
        )
        if one.wrong:
            yield f"{'':<32} reported, but labelled as no difference: line {one.wrong[0]}" + (
                f" and {len(one.wrong) - 1} more" if one.wrong[1:] else ""
            )

"""How many of the violations that a relation reports are real, on labelled answers.

    .venv/bin/python tools/recipes/relation_precision.py [ANSWERS.jsonl] > precision.json

A row (JSON Lines; default: the answers that FairGate ships) is a pair of answers: {"relation",
"source", "follow_up", "differs", "task"?, "items"?}. `relation` is an id or a family, `differs`
whether a person reads a difference that the relation compares. *Precision* is the share of reported
violations that the label calls a difference, *recall* the share of labelled differences that are
reported. What is measured is how answers are read and compared. Whether a difference is unfair, and
whether the two texts are a good pair, is not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from fairgate.domain.cases import Case, Pair, Source, Task
from fairgate.domain.errors import DataError
from fairgate.domain.executions import Execution
from fairgate.domain.json_text import flat
from fairgate.domain.ports import Runtime
from fairgate.domain.units import Reading
from fairgate.domain.wording import listed, suggestion
from fairgate.io.tables import Row, capped, checked_text, file_sha256, read_rows
from fairgate.policy.definition_files import read_task, task_from_policy
from fairgate.relations.catalogue import RELATIONS, relations_named
from fairgate.relations.relation import MetamorphicRelation, Varies
from fairgate.systems.classifiers import open_classifier

ANSWERS = Path(__file__).parents[2] / "fairgate/data/labelled/answers.jsonl"


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


def measure_relations(path: Path, runtime: Runtime) -> dict[str, Measured]:
    """Return the figures of every relation that the file has rows of, in the catalogue's order.

    Raises DataError with `path:line` for a row that is none.
    """
    measured: dict[str, Measured] = {}
    opens = partial(open_classifier, runtime)
    tasks = cache(lambda name: task_from_policy(read_task(name, folder=runtime.root), opens))
    for row in read_rows(str(path)):
        location = f"{path}:{row.line}"
        differs = row.values.get("differs")
        if not isinstance(differs, bool):
            raise DataError(f"{location}: `differs` is {capped(differs)}; expected true or false")
        answers = [checked_text(row.values.get(n), location, n) for n in ("source", "follow_up")]
        for relation in _relations(row, location):
            claim = _claim(relation, answers, row, location, tasks)
            figures = measured.setdefault(relation.id, Measured())
            figures.answers += 1
            figures.differing += differs
            figures.undecided += claim is None
            figures.reported += claim == 1.0
            figures.real += differs and claim == 1.0
            if claim == 1.0 and not differs:
                figures.wrong.append(row.line)
    if not measured:
        raise DataError(f"{path}: holds no labelled answers; expected a JSON object a line")
    return {name: measured[name] for name in RELATIONS.ids if name in measured}


def _relations(row: Row, location: str) -> Sequence[MetamorphicRelation]:
    name = checked_text(row.values.get("relation"), location, "relation")
    relations = [relation for relation in relations_named([name]) if relation in RELATIONS.ids]
    if not relations:
        hint = suggestion(name, RELATIONS.ids)
        raise DataError(f"{location}: no relation is called {capped(name)}; {hint}")
    readable = [
        RELATIONS[relation] for relation in relations if not RELATIONS[relation].judge_instruction
    ]
    if not readable:
        raise DataError(
            f"{location}: only judges read {listed(relations, last='and')}; measure the judge with "
            "`fairgate judge evaluate`"
        )
    return readable


def read_answers(
    relation: MetamorphicRelation, source: Source, task: Task | None, answers: Sequence[str]
) -> Sequence[Reading]:
    """Return the answers to a source and its follow-up as the relation's oracle reads them."""
    question = relation.asks(source, task)
    oracle = relation.oracle(task)
    if prepare := getattr(oracle, "prepare", None):
        prepare(answers)
    case = Case(
        key="s", suite="s", query=relation.source_text(source), instruction=question.instruction,
        labels=question.labels, options=question.options, cluster="s",
    )  # fmt: skip
    cases = (case, case if question.embedding is None else case._replace(embeds="s"))
    return [
        oracle.read(Execution(response=answer), case_read)
        for answer, case_read in zip(answers, cases, strict=True)
    ]


def _claim(
    relation: MetamorphicRelation,
    answers: Sequence[str],
    row: Row,
    location: str,
    tasks: Callable[[str], Task],
) -> float | None:
    """Return 1 for a violation, 0 for none, None where the answers cannot be compared."""
    task_name = row.values.get("task")
    if relation.reads_task and not isinstance(task_name, str):
        raise DataError(
            f"{location}: {listed([relation.id])} reads a task's labels; name one in `task`, such "
            "as sentiment or advice"
        )
    task = tasks(str(task_name)) if relation.reads_task else None
    first, second = read_answers(relation, _source(relation, row, location), task, answers)
    claim = relation.claims(first, second, first)["generation"]
    return claim if isinstance(claim, float) else None


def _source(relation: MetamorphicRelation, row: Row, location: str) -> Source:
    """Return a source that stands for the question; only the items of a choice or ranking count."""
    items = row.values.get("items", [])
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise DataError(f"{location}: `items` is {capped(items)}; expected a list of texts")
    needs_items = any(pair.items for pair in relation.EXAMPLES[0].pairs)
    if relation.varies is Varies.PAIRS and needs_items != bool(items):
        what = "needs `items`, the options or what is ranked" if needs_items else "has no `items`"
        raise DataError(f"{location}: {listed([relation.id])} {what}")
    pair = Pair(relation=relation.id, follow_up="x", dimension="x", items=tuple(items))
    return Source(id="s", text="x", pairs=(pair,) if relation.varies is Varies.PAIRS else ())


def record_of(measured: Mapping[str, Measured], path: Path) -> dict[str, object]:
    """Return the figures as plain data, with the hash of the labelled file."""
    relations = {
        name: {part: value for part, value in flat(figures).items() if part != "wrong"}
        for name, figures in measured.items()
    }
    return {"schema_version": 1, "labelled": file_sha256(str(path)), "relations": relations}


def main() -> None:
    """Print the figures as JSON; what is reported wrongly goes to stderr."""
    path = Path(sys.argv[1]) if sys.argv[1:] else ANSWERS
    measured = measure_relations(path, Runtime())
    print(json.dumps(record_of(measured, path), indent=1, sort_keys=True))
    for name, figures in measured.items():
        if figures.wrong:
            lines = ", ".join(map(str, figures.wrong))
            print(f"{name}: reported, but labelled as no difference: {lines}", file=sys.stderr)


if __name__ == "__main__":
    main()

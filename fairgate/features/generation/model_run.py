"""`fairgate generate model`: written pairs by a generator of a policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairgate import __version__
from fairgate.domain.cases import Case, Source, TestPlan
from fairgate.domain.errors import DataError, ModelError, PolicyError, UsageError
from fairgate.domain.ports import Progress
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Strict
from fairgate.domain.wording import listed
from fairgate.features.generation.cases import refuse_to_replace
from fairgate.features.generation.model_pairs import (
    BY_MODEL,
    PairBrief,
    Refusal,
    Refused,
    Wordings,
    briefs,
    counted,
    counts,
    in_words,
    names_catalogued,
    pair_problem,
    read_answer,
    wordings_of,
)
from fairgate.io.durable import write_lines
from fairgate.policy.parse import parse_policy, validated
from fairgate.policy.yaml_text import load_yaml, read_yaml_file
from fairgate.relations.catalogue import RELATIONS, relations_named
from fairgate.relations.relation import MetamorphicRelation
from fairgate.suites.metamorphic.sources import FORMAT, HEADER_KEY, written_pair
from fairgate.systems.catalogue import policy_parts
from fairgate.systems.generator import GeneratorField
from fairgate.systems.local import LocalPolicy, OpenLocal, model_name
from fairgate.systems.resources import Resources

CALLS_A_PAIR = 3
"""The model is asked at most so many times as pairs are wanted."""
_SUITE = "generate"


class _GeneratorFile(Strict):
    generator: GeneratorField


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The options of `fairgate generate model`."""

    policy: Path
    relations: tuple[str, ...]
    dimensions: tuple[str, ...]
    seed: int
    limit: int
    force: bool


def generate_pairs(
    choice: ModelChoice,
    output: Path,
    runtime: Runtime,
    progress: Progress,
) -> Iterator[str]:
    """Ask the model for pairs and write the file; yield lines: what is asked, then the result.

    Raises UsageError for names that are not known, ModelError where no answer gives a pair; then
    nothing is written.
    """
    refuse_to_replace(output, force=choice.force)
    relations = _relations(choice.relations)
    wordings = wordings_of(choice.dimensions)
    generator = _generator(choice.policy)
    most = CALLS_A_PAIR * choice.limit
    name = model_name(generator)
    yield f"asks {name} up to {most:,} times for {choice.limit:,} pairs"
    model = OpenLocal(None, generator, Resources(runtime, progress))
    wanted = briefs(relations, wordings, np.random.default_rng(choice.seed))
    accepted = _Accepted(wordings)
    asked = 0
    while asked < most and len(accepted.rows) < choice.limit:
        missing = choice.limit - len(accepted.rows)
        batch = [next(wanted) for _ in range(min(missing, most - asked))]
        cases = [_case(brief, asked + n) for n, brief in enumerate(batch)]
        found = model.execute(TestPlan(cases=cases, units=()), progress)
        for brief, case in zip(batch, cases, strict=True):
            accepted.add(found[_SUITE, case.key].response or "", brief)
        asked += len(batch)
    if not accepted.rows:
        raise ModelError(_nothing(name, asked, accepted.refused))
    header = {
        HEADER_KEY: FORMAT,
        "generator": BY_MODEL,
        "model": name,
        "seed": choice.seed,
        "limit": choice.limit,
        "relations": [relation.id for relation in relations],
        "dimensions": list(wordings),
        "answers": asked,
        "rejected": counted(accepted.refused),
        "version": __version__,
        "words": _digest(relations, wordings),
    }
    write_lines(output, (json.dumps(row, ensure_ascii=False) for row in (header, *accepted.rows)))
    yield f"{output}: {len(accepted.rows)} pairs of {asked} answers; read them all"
    yield from _rejected_lines(accepted.refused)
    if len(accepted.rows) < choice.limit:
        yield f"  fewer than the {choice.limit} asked for: the model was asked {asked} times"
    yield from counts(str(row["relation"]) for row in accepted.rows)
    yield from counts(str(row["dimension"]) for row in accepted.rows)


class _Accepted:
    """The pairs so far, and why answers were refused."""

    def __init__(self, wordings: Wordings) -> None:
        self.rows: list[dict[str, object]] = []
        self.refused: list[Refused] = []
        self._wordings = wordings
        self._texts: set[tuple[str, ...]] = set()

    def add(self, answer: str, brief: PairBrief) -> None:
        """Take the pair of an answer, or note why there is none."""
        found = read_answer(answer, brief, self._wordings)
        if not isinstance(found, Refused):
            found = self._pair(found, brief)
        if isinstance(found, Refused):
            self.refused.append(found)
        else:
            self.rows.append(found)

    def _pair(self, columns: Mapping[str, object], brief: PairBrief) -> dict[str, object] | Refused:
        texts = tuple(" ".join(str(columns[n]).casefold().split()) for n in ("prompt", "follow_up"))
        if texts in self._texts or texts[::-1] in self._texts:
            return Refused(Refusal.DUPLICATE, "the pair was written before")
        digest = hashlib.sha256("\0".join((brief.relation.id, *texts)).encode()).hexdigest()[:8]
        short = brief.relation.id.partition("/")[2].partition("-")[0]
        row: dict[str, object] = {
            "id": f"{short}-{brief.dimension}-{digest}",
            "relation": brief.relation.id,
            "dimension": brief.dimension,
            **columns,
        }
        try:
            source = _source(row)
        except DataError as error:
            return Refused(Refusal.WRONG_FIELDS, str(error))
        fault = pair_problem(source)
        if fault is not None:
            return Refused(Refusal.LINTER, fault)
        self._texts.add(texts)
        return row


def _source(row: Mapping[str, object]) -> Source:
    pair = written_pair(row, "the answer")
    return Source(id=str(row["id"]), text=str(row["prompt"]), pair=pair)


def _relations(names: Sequence[str]) -> list[MetamorphicRelation]:
    """Return the relations asked for, by default all whose pairs name catalogued attributes."""
    every = wordings_of(())
    able = [each for each in RELATIONS if each.takes_pairs and names_catalogued(each, every)]
    if not names:
        return able
    found = [RELATIONS[name] for name in relations_named(names)]
    chosen = [relation for relation in found if relation in able]
    exact = [name for name in names if name in RELATIONS.ids and RELATIONS[name] not in able]
    if exact or not chosen:
        raise UsageError(
            f"--relation {' '.join(exact or names)}: is no relation, makes its follow-ups itself, "
            f"or names people, whom no catalogue has; expected {listed([each.id for each in able])}"
        )
    return chosen


def _generator(path: Path) -> GeneratorField:
    """Return the generator of a policy, or of a YAML file with `generator` alone."""
    text = read_yaml_file(path)
    document = load_yaml(text, str(path))
    if not (isinstance(document.data, dict) and "system" in document.data):
        found, problems = validated(document, _GeneratorFile)
        if found is None or problems:
            raise PolicyError(problems)
        return found.generator
    parsed = parse_policy(text, str(path), policy_parts())
    system = parsed.policy.system
    if not isinstance(system, LocalPolicy):
        raise PolicyError(
            [
                parsed.document.problem(
                    ("system",),
                    "has no `generator` that could write pairs; name a policy with a local system, "
                    "or a YAML file with `generator` alone",
                )
            ]
        )
    return system.generator


def _case(brief: PairBrief, number: int) -> Case:
    return Case(
        key=f"{number:06d}",
        suite=_SUITE,
        query=brief.question(),
        instruction=brief.instruction,
        labels=(),
        cluster=f"{number:06d}",
        retriever=None,
    )


def _nothing(name: str, asked: int, refused: Sequence[Refused]) -> str:
    first = refused[0].detail
    return (
        f"{name}: none of {asked} answers holds a pair ({in_words(counted(refused))}; the first "
        f"one: {first}); nothing was written: try a larger model, or more `max_new_tokens` in "
        "`decoding`"
    )


def _rejected_lines(refused: Sequence[Refused]) -> Iterator[str]:
    """Yield how many answers were refused for each reason, with the first of each."""
    for why, count in counted(refused).items():
        first = next(one.detail for one in refused if one.why == why)
        yield f"  {count} refused, {why}: {first}"


def _digest(relations: Sequence[MetamorphicRelation], wordings: Wordings) -> str:
    """Return a hash of every word that the model can be asked with, but for the drawn ones."""
    shown = [[relation.id, relation.title, relation.description] for relation in relations]
    forms = [[name, *(list(each) for each in known)] for name, known in wordings.items()]
    return hashlib.sha256(json.dumps([shown, forms]).encode()).hexdigest()[:16]

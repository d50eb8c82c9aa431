"""Whether the answers of a run show anything about the system: constant ones do not (SPEC 3).

A system that gives every source the same answer, or whose answers do not depend on the sources,
violates nothing and is no evidence of fairness: a prompt without its text has the same effect. Such
a run has no verdict, unless the policy says `constant_answers: allow`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fairgate.domain.units import Judged, Reading, Unit
from fairgate.domain.wording import quoted
from fairgate.policy.schema import Policy
from fairgate.relations.catalogue import RELATIONS
from fairgate.relations.oracles.oracle import Oracle
from fairgate.stats.agreement import alike_within_groups, commonest, within_groups

MOST_ALIKE = 0.98
"""Answers are constant where at least this share of them is equal."""
LEAST_AGREEMENT = 0.05
"""Answers follow their sources where Fleiss' kappa within sources, over the source itself and its
neutral phrases, is above this, with equal answers or with those that the oracle calls the same (two
rankings of nearly one order). Chance alone gives 0; the shipped policies are far above."""

_ADVICE = (
    "such answers show nothing: read some of them in the report; if they are intended, set "
    "`constant_answers: allow` in the policy"
)
_SOURCE = "source"
"""Role of the case that names no identity (`Unit.asks`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """One readable answer of a suite."""

    suite: str
    about: str
    """What the answer should depend on: the source, or the correct answer of a question item."""
    value: str
    shown: str = ""
    """How the value was shown to the model: the letter of an option, where letters were shown."""
    is_open: bool = False
    """Whether any words are an answer: that two differ says nothing then."""
    is_plain: bool = True
    """Whether no identity is named: variation in such answers is not bias."""
    reading: Reading | None = field(default=None, compare=False)
    reader: str = ""
    """What read it: relations that share an answer read it by oracles of their own."""
    oracle: Oracle | None = field(default=None, compare=False)
    """What says whether two answers are the same; None where only equal ones are."""


def constant_answers(answers: Iterable[ReadAnswer]) -> list[str]:
    """Return a sentence for each suite whose readable answers show nothing."""
    return [f"{where}; {_ADVICE}" for where in _showing_nothing(answers)]


def allowed_constant_answers(judged: Iterable[Judged], policy: Policy) -> list[str]:
    """Return the same as notices, where the policy lets such answers have a verdict."""
    if policy.constant_answers == "refuse":
        return []
    return [
        f"{where}; the policy allows it, but such answers show nothing"
        for where in _showing_nothing(readable_answers(judged))
    ]


def _showing_nothing(answers: Iterable[ReadAnswer]) -> list[str]:
    """Return what is constant of the suites in which no oracle reads anything else."""
    suites: dict[str, dict[str, list[ReadAnswer]]] = {}
    for answer in answers:
        suites.setdefault(answer.suite, {}).setdefault(answer.reader, []).append(answer)
    found = {name: list(map(_constant, groups.values())) for name, groups in suites.items()}
    return [f"suite {name}: {'; '.join(dict.fromkeys(w))}" for name, w in found.items() if all(w)]


def _constant(answers: Sequence[ReadAnswer]) -> str:
    plain = _plain(answers)
    for values, what in (
        ([one.value for one in answers], "readable answers are"),
        ([one.value for one in plain], "readable answers to texts that name no identity are"),
        ([one.shown for one in answers if one.shown], "readable answers say"),
    ):
        value, count, total = commonest(values)
        if total and count >= MOST_ALIKE * total:
            return f"{count:,} of {total:,} {what} {quoted(value)}, whatever was asked"
    agreement = within_groups((one.about, one.value) for one in plain if not one.is_open)
    follows = agreement if not isinstance(agreement, float) else max(agreement, _alike(plain))
    if isinstance(follows, float) and follows <= LEAST_AGREEMENT:
        return (
            "the answers do not follow what was asked: those to one source agree no more than "
            f"those to different ones (kappa {follows:.2f}, above {LEAST_AGREEMENT:g} asked for)"
        )
    return ""


def _alike(answers: Sequence[ReadAnswer]) -> float:
    """Return the agreement within sources by the oracles' own `same`; -1 where it adds nothing."""
    known = {one.value: one for one in answers if one.oracle is not None and not one.is_open}

    def same(left: str, right: str) -> bool:
        one, other = known[left], known[right]
        assert one.oracle and one.reading and other.reading  # noqa: PT018, S101
        return one.oracle.same(one.reading, other.reading)

    found = alike_within_groups(
        ((one.about, one.value) for one in answers if one.value in known), same
    )
    return -1.0 if found is None else found


def _plain(answers: Sequence[ReadAnswer]) -> Sequence[ReadAnswer]:
    """Return the answers in which only the source can make a difference; all without controls."""
    plain = [one for one in answers if one.is_plain]
    return plain if len({one.about for one in plain}) < len(plain) else answers


def readable_answers(judged: Iterable[Judged]) -> list[ReadAnswer]:
    """Return every readable answer once by oracle; a source's own is shared by its pairs."""
    found: dict[tuple[str, str], dict[str, ReadAnswer]] = {}
    alike: dict[tuple[object, ...], ReadAnswer] = {}
    readers: dict[str, str] = {}
    for one in judged:
        unit, readings = one.unit, one.readings
        if unit.follows is None:
            continue
        about, is_open = unit.follows or unit.cluster, bool(unit.verdicts)
        is_control = unit.is_control
        relation = unit.dimensions.get("relation", "")
        reader = readers.get(relation)
        if reader is None:
            reader = readers[relation] = _reader(relation)
        of_reader = found.setdefault((unit.suite, reader), {})
        for role, key in unit.asks.items():
            reading = readings[role]
            if reading.value is None:
                continue
            is_plain = is_control or role == _SOURCE
            name = unit.suite, reader, about, is_open, is_plain, reading.value, reading.shown
            known = alike.get(name)
            if known is None:
                known = alike[name] = _answer(unit, reading, is_plain=is_plain)
            of_reader[key] = known
    return [answer for of_reader in found.values() for answer in of_reader.values()]


def _answer(unit: Unit, reading: Reading, *, is_plain: bool) -> ReadAnswer:
    is_open = bool(unit.verdicts)
    return ReadAnswer(
        suite=unit.suite,
        about=unit.follows or unit.cluster,
        value=reading.shown if is_open else str(reading.value),
        shown="" if is_open else reading.shown,
        is_open=is_open,
        is_plain=is_plain,
        reading=reading,
        reader=_reader(unit.dimensions.get("relation", "")),
        oracle=_oracle(unit.dimensions.get("relation", "")),
    )


def _reader(name: str) -> str:
    """Return what tells a relation's oracle from those that read otherwise."""
    relation = RELATIONS.get(name)
    if relation is None:
        return name
    return type(relation).oracle.__qualname__ if relation.reads_task else relation.oracle(None).id


def _oracle(name: str) -> Oracle | None:
    """Return what reads a relation's answers, where it has an oracle of its own."""
    relation = RELATIONS.get(name)
    return None if relation is None or relation.reads_task else relation.oracle(None)

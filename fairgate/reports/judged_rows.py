"""What reports need to know of judged cases: the one place in reports that knows their form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairgate.domain.outcomes import GateResult
from fairgate.domain.units import Judged, Reading, Reason, Value
from fairgate.suites.metamorphic.judge import CONTROLS
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.question_items.plan import ANSWER

Claim = bool | Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """A source and a follow-up, judged."""

    suite: str
    key: str
    source: str
    """Key of the source's case."""
    relation: str
    category: str
    term: str
    phrase: str
    """What names the identity in the text."""
    names_speaker: bool
    """Whether the follow-up is the source's text with a speaker (its noun phrase) before it."""
    is_control: bool
    source_answer: Reading
    answer: Reading
    majority: str | None
    claims: Mapping[str, Claim]
    """`generation`, `controlled`, `retrieval`."""
    scores: Mapping[str, float | None]
    """`mean_distance`, `label_changes`, `rrs`, `overlap`; None where it is not decided."""

    main: str
    """The claim that tells who is affected: `controlled` in a suite with a control arm."""

    @property
    def claim(self) -> Claim:
        """Return whether the answer changed, by the suite's main claim."""
        return self.claims[self.main]


def in_words(value: Value) -> str:
    """Return what an oracle read as readers see it: a label, a score, a ranking in its order."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else value


_VERDICTS = ("generation", "controlled", "retrieval")
_SCORES = {
    "mean_distance": "mean-distance",
    "label_changes": "label-changes",
    "rrs": "rrs",
    "overlap": "overlap",
}


def pair_rows(result: GateResult) -> Iterator[PairRow]:
    """Yield every judged pair in the order of the plan."""
    suites = set(pair_suites(result))
    controlled = {judged.unit.suite for judged in result.judged if judged.unit.is_control}
    for judged in result.judged:
        unit = judged.unit
        if unit.suite not in suites:
            continue
        majority = judged.readings[CONTROLS].value
        yield PairRow(
            suite=unit.suite,
            key=unit.key,
            source=unit.asks[SOURCE],
            relation=unit.dimensions["relation"],
            category=unit.dimensions["category"],
            term=unit.dimensions["term"],
            phrase=unit.names.get("noun_phrase") or unit.dimensions["term"],
            names_speaker="noun_phrase" in unit.names,
            is_control=unit.is_control,
            source_answer=judged.readings[SOURCE],
            answer=judged.readings[FOLLOW_UP],
            majority=None if majority is None else in_words(majority),
            main="controlled" if unit.suite in controlled else "generation",
            claims={name: _verdict(judged.claims[name]) for name in _VERDICTS},
            scores={name: _score(name, judged.claims[claim]) for name, claim in _SCORES.items()},
        )


def _verdict(claim: float | Reason) -> Claim:
    return claim if isinstance(claim, Reason) else claim == 1.0


def _score(name: str, claim: float | Reason) -> float | None:
    if isinstance(claim, Reason):
        return None
    return round(claim, 6) if name == "rrs" else claim


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A question item as it was asked, judged."""

    suite: str
    key: str
    item: str
    """Key of the item, whatever the setting."""
    category: str
    template: str
    cluster: str
    condition: str
    alignment: str | None
    setting: str
    retriever: str
    top_k: int
    instruction: str
    bias: float | Reason
    """1: the stereotype, -1: against it, 0: unknown."""
    is_correct: bool | Reason
    letter: str | None
    stereotypes: float | None
    """Share of stereotypical documents among those shown."""
    margin: float | None


def question_rows(result: GateResult) -> Iterator[QuestionRow]:
    """Yield every judged question item in the order of the plan."""
    suites = set(question_suites(result))
    for judged in result.judged:
        unit, levels = judged.unit, judged.unit.dimensions
        if unit.suite not in suites:
            continue
        reading = judged.readings[ANSWER]
        right = levels["alignment"] or "unknown"
        shares = judged.claims["stereotypes"]
        yield QuestionRow(
            suite=unit.suite,
            key=unit.key,
            item=unit.names["item"],
            category=levels["category"],
            template=unit.names["template"],
            cluster=unit.cluster,
            condition=levels["condition"],
            alignment=levels["alignment"] or None,
            setting=levels["setting"],
            retriever=levels["retriever"],
            top_k=int(levels["k"] or 0),
            instruction=levels["instruction"],
            bias=judged.decision,
            is_correct=reading.reason or reading.value == right,
            letter=reading.shown or None,
            stereotypes=None if isinstance(shares, Reason) else shares,
            margin=reading.margin,
        )


def other_rows(result: GateResult) -> Iterator[Judged]:
    """Yield the judged units of suites that are of another kind, in the order of the plan."""
    known = {*pair_suites(result), *question_suites(result)}
    yield from (judged for judged in result.judged if judged.unit.suite not in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a term of a suite is called, and what it belongs to."""

    name: str
    category: str
    is_control: bool


def identities(result: GateResult, suite: str) -> dict[str, Identity]:
    """Return the terms of a suite in the order of the plan."""
    found: dict[str, Identity] = {}
    for unit in result.plan.units:
        term = unit.dimensions.get("term")
        if unit.suite == suite and term is not None and term not in found:
            found[term] = Identity(
                name=unit.names.get("noun_phrase") or term,
                category=unit.dimensions["category"],
                is_control=unit.is_control,
            )
    return found


def pair_suites(result: GateResult) -> list[str]:
    """Return the suites that are judged pair by pair, in the order of the policy."""
    return result.suites_of("metamorphic")


def question_suites(result: GateResult) -> list[str]:
    """Return the suites of question items, in the order of the policy."""
    return result.suites_of("bbq")


def planned_pairs(result: GateResult, suite: str) -> tuple[int, int]:
    """Return how many sources a suite has, and how many pairs."""
    units = result.plan.units_of(suite)
    return len({unit.cluster for unit in units}), len(units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many units of one arm of a suite have a claim decided, and why the others have not."""

    suite: str
    claim: str
    is_control: bool
    planned: int
    reasons: Counter[Reason]

    @property
    def decided(self) -> int:
        """Return how many are decided: all that are planned, less those with a reason."""
        return self.planned - self.reasons.total()


def counts(result: GateResult, claims: Sequence[str]) -> list[Count]:
    """Return the counts of each suite's decisive claim and of `claims`, arm by arm."""
    planned: Counter[tuple[str, str, bool]] = Counter()
    reasons: dict[tuple[str, str, bool], Counter[Reason]] = {}
    for judged in result.judged:
        names = (judged.decisive, *(name for name in claims if name in judged.claims))
        for name in dict.fromkeys(names):
            where = (judged.unit.suite, name, judged.unit.is_control)
            planned[where] += 1
            value = judged.claims[name]
            found = reasons.setdefault(where, Counter())
            if isinstance(value, Reason):
                found[value] += 1
    return [
        Count(suite=suite, claim=claim, is_control=arm, planned=planned[where], reasons=why)
        for where, why in reasons.items()
        for suite, claim, arm in [where]
    ]


def undecided(result: GateResult) -> Counter[Reason]:
    """Return how many cases were not decided, by reason."""
    decisions = [judged.decision for judged in result.judged]
    return Counter(decision for decision in decisions if isinstance(decision, Reason))


def unit(result: GateResult) -> str:
    """Return what was planned: pairs, or cases where there are suites of other kinds."""
    return "pair" if len(pair_suites(result)) == len(result.kinds) else "case"

"""What reports need to know of judged cases: the one place in reports that knows their form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairgate.domain.outcomes import GateResult
from fairgate.domain.units import Judged, Reading, Reason, Value
from fairgate.suites.metamorphic.judge import CONTROLS
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.question_items.plan import ANSWER

Claim = bool | Reason


@dataclass(frozen=True, slots=True)
class PairRow:
    """A source and a follow-up, judged: what reports ask of them, looked up when it is asked."""

    judged: Judged
    main: str
    """The claim that tells who is affected: `controlled` in a suite with a control arm."""

    @property
    def suite(self) -> str:
        """Return the suite's name."""
        return self.judged.unit.suite

    @property
    def key(self) -> str:
        """Return the key of the follow-up's case."""
        return self.judged.unit.key

    @property
    def source(self) -> str:
        """Return the key of the source's case."""
        return self.judged.unit.asks[SOURCE]

    @property
    def relation(self) -> str:
        """Return the id of the relation."""
        return self.judged.unit.dimensions["relation"]

    @property
    def category(self) -> str:
        """Return what the term belongs to."""
        return self.judged.unit.dimensions["category"]

    @property
    def term(self) -> str:
        """Return the identity, or the neutral wording."""
        return self.judged.unit.dimensions["term"]

    @property
    def phrase(self) -> str:
        """Return what names the identity in the text."""
        return self.judged.unit.names.get("noun_phrase") or self.term

    @property
    def names_speaker(self) -> bool:
        """Return whether the follow-up is the source's text with a speaker before it."""
        return "noun_phrase" in self.judged.unit.names

    @property
    def is_control(self) -> bool:
        """Return whether the pair belongs to the placebo arm."""
        return self.judged.unit.is_control

    @property
    def source_answer(self) -> Reading:
        """Return the answer to the source."""
        return self.judged.readings[SOURCE]

    @property
    def answer(self) -> Reading:
        """Return the answer to the follow-up."""
        return self.judged.readings[FOLLOW_UP]

    @property
    def majority(self) -> str | None:
        """Return what most control answers of the source say; None where that is not decided."""
        value = self.judged.readings[CONTROLS].value
        return None if value is None else in_words(value)

    @property
    def claim(self) -> Claim:
        """Return whether the answer changed, by the suite's main claim."""
        return self.verdict(self.main)

    def verdict(self, name: str) -> Claim:
        """Return a claim that is a verdict: one of `VERDICTS`."""
        claim = self.judged.claims[name]
        return claim if isinstance(claim, Reason) else claim == 1.0

    def score(self, name: str) -> float | None:
        """Return a claim that is a number, one of `SCORES`; None where it is not decided."""
        claim = self.judged.claims[name]
        if isinstance(claim, Reason):
            return None
        return round(claim, 6) if name == "rrs" else claim


def in_words(value: Value) -> str:
    """Return what an oracle read as readers see it: a label, a score, a ranking in its order."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else value


VERDICTS = ("generation", "controlled", "retrieval")
SCORES = ("mean-distance", "label-changes", "rrs", "overlap")


def pair_rows(result: GateResult) -> Iterator[PairRow]:
    """Yield every judged pair in the order of the plan."""
    suites = set(pair_suites(result))
    controlled = {judged.unit.suite for judged in result.judged if judged.unit.is_control}
    for judged in result.judged:
        suite = judged.unit.suite
        if suite in suites:
            yield PairRow(judged, "controlled" if suite in controlled else "generation")


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
    for judged, many in _alike(result):
        names = (judged.decisive, *(name for name in claims if name in judged.claims))
        for name in dict.fromkeys(names):
            where = (judged.unit.suite, name, judged.unit.is_control)
            planned[where] += many
            value = judged.claims[name]
            found = reasons.setdefault(where, Counter())
            if isinstance(value, Reason):
                found[value] += many
    return [
        Count(suite=suite, claim=claim, is_control=arm, planned=planned[where], reasons=why)
        for where, why in reasons.items()
        for suite, claim, arm in [where]
    ]


def _alike(result: GateResult) -> Iterator[tuple[Judged, int]]:
    """Yield units with the same claims in one arm of a suite once, and how many they are."""
    found: dict[tuple[object, ...], Judged] = {}
    many: dict[tuple[object, ...], int] = {}
    for judged in result.judged:
        unit = judged.unit
        name = (unit.suite, unit.is_control, judged.decisive, id(judged.claims))
        known = many.get(name)
        if known is None:
            found[name] = judged
        many[name] = (known or 0) + 1
    return ((judged, many[name]) for name, judged in found.items())


def undecided(result: GateResult) -> Counter[Reason]:
    """Return how many cases were not decided, by reason."""
    decisions = [judged.decision for judged in result.judged]
    return Counter(decision for decision in decisions if isinstance(decision, Reason))


def unit(result: GateResult) -> str:
    """Return what was planned: pairs, or cases where there are suites of other kinds."""
    return "pair" if len(pair_suites(result)) == len(result.kinds) else "case"

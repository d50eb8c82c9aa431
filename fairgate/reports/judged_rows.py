"""What reports need to know of judged cases: the one place in reports that knows their form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairgate.domain.outcomes import GateResult
from fairgate.domain.verdicts import JudgedPair, Reading, Reason

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
    is_control: bool
    source_answer: Reading
    answer: Reading
    majority: str | None
    claims: Mapping[str, Claim]
    """`generation`, `controlled`, `retrieval`."""
    scores: Mapping[str, float | None]
    """`mean_distance`, `label_changes`, `rrs`, `overlap`; None where it is not decided."""

    @property
    def claim(self) -> Claim:
        """Return whether the answer changed, by the controlled claim where it is decided."""
        controlled = self.claims["controlled"]
        return self.claims["generation"] if isinstance(controlled, Reason) else controlled


def pair_rows(result: GateResult) -> Iterator[PairRow]:
    """Yield every judged pair in the order of the plan."""
    for judged in result.judged:
        pair = judged.pair
        yield PairRow(
            suite=pair.suite,
            key=pair.key,
            source=pair.source,
            relation=pair.relation,
            category=pair.category,
            term=pair.term,
            phrase=pair.noun_phrase or pair.term,
            is_control=pair.control,
            source_answer=judged.source,
            answer=judged.follow_up,
            majority=judged.majority,
            claims={
                "generation": judged.generation,
                "controlled": judged.controlled,
                "retrieval": judged.retrieval,
            },
            scores=_scores(judged),
        )


def _scores(judged: JudgedPair) -> dict[str, float | None]:
    distance, changes = _decided(judged.mean_distance), _decided(judged.label_changes)
    known = distance is not None and changes is not None
    return {
        "mean_distance": distance,
        "label_changes": changes,
        "rrs": round((distance or 0.0) + (changes or 0.0), 6) if known else None,
        "overlap": _decided(judged.overlap),
    }


def _decided(value: float | Reason) -> float | None:
    return None if isinstance(value, Reason) else value


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
    bias: int | Reason
    """1: the stereotype, -1: against it, 0: unknown."""
    is_correct: bool | Reason
    letter: str | None
    stereotypes: float | None
    """Share of stereotypical documents among those shown."""
    margin: float | None


def question_rows(result: GateResult) -> Iterator[QuestionRow]:
    """Yield every judged question item in the order of the plan."""
    for judged in result.judged_items:
        case, item = judged.case, judged.case.item
        shares = judged.stereotypes
        yield QuestionRow(
            suite=case.suite,
            key=case.key,
            item=item.key,
            category=item.category,
            template=item.template,
            cluster=item.cluster,
            condition=str(item.condition),
            alignment=None if item.alignment is None else str(item.alignment),
            setting=case.setting,
            retriever=case.retriever,
            top_k=case.top_k,
            instruction=case.instruction,
            bias=judged.bias,
            is_correct=judged.is_correct,
            letter=None if judged.letter is None else "ABC"[judged.letter],
            stereotypes=None if isinstance(shares, Reason) else shares,
            margin=judged.margin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a term of a suite is called, and what it belongs to."""

    name: str
    category: str
    is_control: bool


def identities(result: GateResult, suite: str) -> dict[str, Identity]:
    """Return the terms of a suite in the order of the plan."""
    found: dict[str, Identity] = {}
    for pair in result.plan.pairs:
        if pair.suite == suite and pair.term not in found:
            name = pair.noun_phrase or pair.term
            found[pair.term] = Identity(name=name, category=pair.category, is_control=pair.control)
    return found


def pair_suites(result: GateResult) -> list[str]:
    """Return the suites that are judged pair by pair, in the order of the plan."""
    return list(result.plan.tasks)


def question_suites(result: GateResult) -> list[str]:
    """Return the suites of question items, in the order of the plan."""
    return list(dict.fromkeys(judged.case.suite for judged in result.judged_items))


def planned_pairs(result: GateResult, suite: str) -> tuple[int, int]:
    """Return how many sources a suite has, and how many pairs."""
    pairs = [pair for pair in result.plan.pairs if pair.suite == suite]
    return len({pair.source for pair in pairs}), len(pairs)


def undecided(result: GateResult) -> Counter[Reason]:
    """Return how many cases were not decided, by reason."""
    decisions = [
        *(judged.generation for judged in result.judged),
        *(judged.choice for judged in result.judged_items),
    ]
    return Counter(decision for decision in decisions if isinstance(decision, Reason))


def unit(result: GateResult) -> str:
    """Return what was planned: pairs, or cases where there are question items."""
    return "case" if result.judged_items else "pair"

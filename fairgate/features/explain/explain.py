"""Everything about one pair of a run: its answers, its documents, and one sentence on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairgate.domain.cases import Case, crossed_key, first_asked
from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Document
from fairgate.domain.units import Judged, Reason, Unit, Value
from fairgate.domain.wording import quoted, suggestion
from fairgate.gate.gate import GateInput, GateRun
from fairgate.relations.oracles.judge import code_of, read_judgement
from fairgate.suites.metamorphic.documents import document_key
from fairgate.suites.metamorphic.judge import CONTROLS, is_violated
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.suites.suite import Suite, VectorsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedAnswer:
    """One answer: to which case, its text, and how it was read."""

    key: str
    what: str
    """In plain words: `the source's text with the follow-up's documents`."""
    response: str | None
    label: Value | None
    reason: Reason | None
    margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedDocuments:
    """Two documents that the optimal matching pairs."""

    source_rank: int
    source: Document
    follow_up_rank: int
    follow_up: Document
    distance: float | None
    """Between their embeddings, as RRS measures it; None where there are none."""


def aligned(run: GateRun, item: Judged, suite: Suite, vectors: VectorsOf) -> list[AlignedDocuments]:
    """Return the documents of a pair, matched as RRS matches them; none where one list is empty."""
    lists = []
    for role in (SOURCE, FOLLOW_UP):
        execution = run.executions.get((suite.id, item.unit.asks[role]))
        if execution is None or not execution.documents:
            return []
        lists.append(execution.documents)
    left, right = lists
    costs = _costs(left, right, str(suite.must_match().get("distance", "")), vectors)
    matched = _matched(left, right, costs)
    return [
        AlignedDocuments(
            source_rank=i + 1,
            source=left[i],
            follow_up_rank=j + 1,
            follow_up=right[j],
            distance=None if costs is None else round(float(costs[i, j]), 6) + 0.0,
        )
        for i, j in matched
    ]


def _costs(
    left: Sequence[Document], right: Sequence[Document], distance: str, vectors: VectorsOf
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    found = vectors([*left, *right])
    if found is None:
        return None
    unit = found.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    dots = unit[: len(left)] @ unit[len(left) :].T
    costs = 1.0 - dots if distance == "cosine" else np.sqrt(np.maximum(2.0 - 2.0 * dots, 0.0))
    same = [[document_key(a) == document_key(b) for b in right] for a in left]
    return np.where(np.asarray(same, dtype=bool), 0.0, costs)


def _matched(
    left: Sequence[Document],
    right: Sequence[Document],
    costs: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
) -> list[tuple[int, int]]:
    if costs is None:
        return [(i, i) for i in range(min(len(left), len(right)))]
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything about one pair."""

    suite: str
    key: str
    noun_phrase: str
    instruction: str
    before: str
    """The beginning that the texts of source and follow-up share."""
    changed: str
    """What the follow-up's text has and the source's lacks."""
    removed: str
    """What the source's text has and the follow-up's lacks."""
    after: str
    documents: Sequence[AlignedDocuments]
    mean_distance: float | None
    answers: Sequence[ExplainedAnswer]
    """Source, follow-up."""
    crossed: Sequence[ExplainedAnswer]
    """Answers of the second wave; empty where the pair was not crossed."""
    verdicts: Sequence[ExplainedAnswer]
    """What each judge called the pair, its explanation as the response; empty without judges."""
    controls: Sequence[ExplainedAnswer]
    majority: str | None
    sentence: str


def explain_case(
    run: GateRun, given: GateInput, key: str, *, suite: str | None, vectors: VectorsOf
) -> Explanation:
    """Return the explanation of the pair `key`. Raises UsageError where there is no such pair."""
    item = _find(run, key, suite)
    unit = item.unit
    asked = (*given.plan.cases, *(case for case in run.added if case.embeds is not None))
    cases = {case.key: case for case in asked if case.suite == unit.suite}
    source, follow_up = (cases[unit.asks[role]] for role in (SOURCE, FOLLOW_UP))
    before, removed, changed, after = difference(source.query, follow_up.query)
    answers = _Answers(run, unit)
    controls = [
        answers.of(other.unit.asks[FOLLOW_UP], other.unit.names.get("noun_phrase", ""))
        for other in run.result.judged_of(unit.suite)
        if other.unit.is_control
        and other.unit.asks[SOURCE] == unit.asks[SOURCE]
        and other.unit.dimensions["relation"] == unit.dimensions["relation"]
    ]
    crossed = answers.crossed(source.key, follow_up.key)
    distance = item.claims["mean-distance"]
    expected = item.readings[CONTROLS].value
    return Explanation(
        suite=unit.suite,
        key=key,
        noun_phrase=unit.names.get("noun_phrase", ""),
        instruction=source.instruction,
        before=before,
        changed=changed,
        removed=removed,
        after=after,
        documents=aligned(run, item, given.suites[unit.suite], vectors),
        mean_distance=None if isinstance(distance, Reason) else distance,
        answers=[answers.of(source.key, "source"), answers.of(follow_up.key, "follow-up")],
        crossed=crossed,
        verdicts=[
            answers.judged(case)
            for case in run.added
            if case.suite == unit.suite and first_asked(case.key) in unit.verdicts
        ],
        controls=controls,
        majority=None if expected is None else str(expected),
        sentence=sentence(item, controls, crossed),
    )


def _find(run: GateRun, key: str, suite: str | None) -> Judged:
    judged = [item for item in run.result.judged if suite in (None, item.unit.suite)]
    found = [item for item in judged if item.unit.key == key]
    if len({item.unit.suite for item in found}) > 1:
        suites = sorted({item.unit.suite for item in found})
        raise UsageError(
            f"{quoted(key)} is a case of {len(suites)} suites; add --suite {suites[0]}"
        )
    pairs = [item for item in judged if FOLLOW_UP in item.unit.asks]
    if found and found[0] not in pairs:
        raise UsageError(
            f"{quoted(key)} is a question item, and only pairs are explained; its answer stands in "
            "rows.jsonl and executions.jsonl of the run"
        )
    if found:
        return found[0]
    own = [item for item in pairs if item.unit.asks[SOURCE] == key]
    if own:
        changed = [item.unit.key for item in own if is_violated(item)]
        which = ", ".join((changed or [item.unit.key for item in own])[:5])
        what = "changed answers" if changed else "no changed answer"
        raise UsageError(
            f"{quoted(key)} is a source with {len(own)} follow-ups and {what}; name a follow-up, "
            f"for example {which}"
        )
    keys = [item.unit.key for item in pairs]
    raise UsageError(f"the run has no case {quoted(key)}; {suggestion(key, keys[:3000])}")


def difference(source: str, follow_up: str) -> tuple[str, str, str, str]:
    """Return common beginning, what the source has, what the follow-up has, and common end."""
    end = 0
    shorter = min(len(source), len(follow_up))
    while end < shorter and source[-1 - end] == follow_up[-1 - end]:
        end += 1
    start = 0
    while start < shorter - end and source[start] == follow_up[start]:
        start += 1
    return (
        source[:start],
        source[start : len(source) - end],
        follow_up[start : len(follow_up) - end],
        source[len(source) - end :],
    )


class _Answers:
    """Finds answers of one suite and how they were read."""

    def __init__(self, run: GateRun, unit: Unit) -> None:
        self._executions = run.executions
        self._suite = unit.suite
        self._readings = run.readings[unit.suite]
        self._relation = unit.dimensions["relation"]

    def of(self, key: str, what: str) -> ExplainedAnswer:
        execution = self._executions.get((self._suite, key))
        reading = self._readings.one(key, self._relation)
        return ExplainedAnswer(
            key=key,
            what=what,
            response=execution.response if execution else None,
            label=reading.value,
            reason=reading.reason,
            margin=reading.margin,
        )

    def judged(self, case: Case) -> ExplainedAnswer:
        """Return a judge's verdict, with why; its whole answer where that holds no verdict."""
        found = self.of(case.key, f"judge {(case.judge or 0) + 1}")
        verdict = read_judgement(found.response or "", code_of(case.query))
        if verdict is None:
            return found
        severity = f" ({verdict.severity})" if verdict.severity else ""
        return replace(found, label=f"{verdict.verdict}{severity}", response=verdict.explanation)

    def crossed(self, source: str, follow_up: str) -> list[ExplainedAnswer]:
        wanted = (
            (crossed_key(source, follow_up), "source's text, follow-up's documents"),
            (crossed_key(follow_up, source), "follow-up's text, source's documents"),
        )
        return [self.of(key, what) for key, what in wanted if self._readings.is_answered(key)]


def sentence(
    item: Judged, controls: Sequence[ExplainedAnswer], crossed: Sequence[ExplainedAnswer]
) -> str:
    """Return what happened, in words without statistics."""
    who = item.unit.names.get("noun_phrase") or item.unit.dimensions["term"]
    if isinstance(item.decision, Reason):
        return f"There is no verdict for this pair: it is {item.decision}."
    source, answer = item.readings[SOURCE].value, item.readings[FOLLOW_UP].value
    if "noun_phrase" not in item.unit.names:
        holds = "holds" if item.decision == 0.0 else "is violated"
        asked = item.unit.dimensions.get("relation", item.unit.suite)
        changed = (
            f'{asked} {holds} for {who}: the source reads "{source}", the follow-up "{answer}".'
        )
    elif item.decision == 0.0:
        changed = f'The answer stays "{answer}" when the speaker is "{who}".'
    else:
        changed = f'The answer changes from "{source}" to "{answer}" when the speaker is "{who}".'
    return " ".join([changed, *_beside_controls(item, controls), *_path(item, crossed)])


def _beside_controls(item: Judged, controls: Sequence[ExplainedAnswer]) -> list[str]:
    """Return how the answer compares with the neutral speakers'; a control is left out itself."""
    if item.claims["controlled"] != 1.0 and item.decision != 1.0:
        return []
    own = item.unit.key
    read = [answer.label for answer in controls if answer.label is not None and answer.key != own]
    if not read:
        return []
    other = "other " if item.unit.is_control else ""
    speakers = f"{len(read)} {other}neutral speaker{'' if len(read) == 1 else 's'}"
    agree = sum(label == item.readings[CONTROLS].value for label in read)
    if 2 * agree <= len(read):
        return [_disagreement(item, Counter(read), speakers)]
    if item.claims["controlled"] == 1.0:
        ending = "" if other else ", so this is not what most speakers get"
        return [f'For {agree} of {speakers} it is "{item.readings[CONTROLS].value}"{ending}.']
    so_does = f'So does it for {agree} of {speakers} ("{item.readings[CONTROLS].value}")'
    return [f"{so_does}: the prefix as such changes it{'' if other else ', not this demographic'}."]


def _disagreement(item: Judged, labels: Mapping[Value, int], speakers: str) -> str:
    """Describe the neutral speakers' answers where none has more than half of them."""
    ranked = sorted(labels.items(), key=lambda found: (-found[1], str(found[0])))
    counts = ", ".join(f'{count} "{label}"' for label, count in ranked)
    counted = (
        f'what counts as their answer is "{item.readings[CONTROLS].value}"'
        if item.readings[CONTROLS].value
        else "so they have no answer to compare this one with"
    )
    return f"The {speakers} do not agree ({counts}); {counted}."


def _path(item: Judged, crossed: Sequence[ExplainedAnswer]) -> list[str]:
    if item.decision != 1.0 or len(crossed) < 2:
        return []
    documents, text = (answer.label for answer in crossed)
    if documents is None or text is None:
        return ["A crossed answer cannot be read, so the path is unknown."]
    by_documents, by_text = (
        documents != item.readings[SOURCE].value,
        text != item.readings[SOURCE].value,
    )
    if by_documents and by_text:
        return ["Either the other documents or the other wording alone changes it."]
    if by_documents:
        return ["The documents that were retrieved for the follow-up change it, not its wording."]
    if by_text:
        return ["The wording changes it in the generator, whichever documents are shown."]
    return ["Neither the documents nor the wording alone changes it: it takes both, or was chance."]

"""Everything about one pair of a run, and one plain sentence that says what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Document
from fairgate.domain.verdicts import JudgedPair, Reason
from fairgate.domain.wording import quoted, suggestion
from fairgate.engine.gate import GateInput, GateRun
from fairgate.engine.judge import document_key, read_answers
from fairgate.engine.ports import Vectors

VectorsOf = Callable[[Sequence[Document]], Vectors | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedDocuments:
    """Documents that the optimal matching puts side by side."""

    source_rank: int
    source: Document
    follow_up_rank: int
    follow_up: Document
    distance: float | None
    """Between their embeddings, as RRS measures it; None where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer: to which case, what was said, how it was read."""

    key: str
    what: str
    """In plain words: `the source's text with the follow-up's documents`."""
    response: str | None
    label: str | None
    reason: Reason | None
    margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One pair, told."""

    suite: str
    key: str
    noun_phrase: str
    instruction: str
    before: str
    """What the follow-up's text begins with that is also in the source's."""
    changed: str
    """What the follow-up's text has and the source's lacks."""
    removed: str
    """What the source's text has and the follow-up's lacks."""
    after: str
    documents: Sequence[AlignedDocuments]
    mean_distance: float | None
    answers: Sequence[Said]
    """Source, follow-up."""
    crossed: Sequence[Said]
    """Answers of the second wave; empty where the pair was not crossed."""
    controls: Sequence[Said]
    majority: str | None
    sentence: str


def explain_case(
    run: GateRun, given: GateInput, key: str, *, suite: str | None, vectors: VectorsOf
) -> Explanation:
    """Return the explanation of the pair `key`. Raises UsageError where there is no such pair."""
    item = _find(run, key, suite)
    pair = item.pair
    cases = {c.key: c for c in given.plan.cases if c.suite == pair.suite}
    source, follow_up = cases[pair.source], cases[pair.key]
    before, removed, changed, after = difference(source.query, follow_up.query)
    say = _Speaker(run, given, pair.suite)
    controls = [
        say.of(other.pair.key, other.pair.noun_phrase)
        for other in run.result.judged
        if other.pair.control and (other.pair.suite, other.pair.source) == (pair.suite, pair.source)
    ]
    answers = [say.of(pair.source, "source"), say.of(pair.key, "follow-up")]
    crossed = say.crossed(item)
    documents = _aligned(run, item, given, vectors)
    return Explanation(
        suite=pair.suite,
        key=pair.key,
        noun_phrase=pair.noun_phrase,
        instruction=source.instruction,
        before=before,
        changed=changed,
        removed=removed,
        after=after,
        documents=documents,
        mean_distance=item.mean_distance if isinstance(item.mean_distance, float) else None,
        answers=answers,
        crossed=crossed,
        controls=controls,
        majority=item.majority,
        sentence=sentence(item, controls, crossed),
    )


def _find(run: GateRun, key: str, suite: str | None) -> JudgedPair:
    judged = [item for item in run.result.judged if suite in (None, item.pair.suite)]
    found = [item for item in judged if item.pair.key == key]
    if len({item.pair.suite for item in found}) > 1:
        suites = sorted({item.pair.suite for item in found})
        raise UsageError(
            f"{quoted(key)} is a case of {len(suites)} suites; add --suite {suites[0]}"
        )
    if found:
        return found[0]
    own = [item for item in judged if item.pair.source == key]
    if own:
        changed = [item.pair.key for item in own if item.is_violated]
        which = ", ".join((changed or [item.pair.key for item in own])[:5])
        what = "changed answers" if changed else "no changed answer"
        raise UsageError(
            f"{quoted(key)} is a source with {len(own)} follow-ups and {what}; name a follow-up, "
            f"for example {which}"
        )
    if any(item.case.key == key for item in run.result.judged_items):
        raise UsageError(
            f"{quoted(key)} is a question item, and only pairs are explained; its answer stands in "
            "rows.jsonl and executions.jsonl of the run"
        )
    keys = [item.pair.key for item in judged]
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


class _Speaker:
    """Finds and reads answers of one suite."""

    def __init__(self, run: GateRun, given: GateInput, suite: str) -> None:
        self._executions = run.executions
        self._suite = suite
        self._task = given.plan.tasks[suite]
        self._margin = given.options[suite].unstable_margin

    def of(self, key: str, what: str) -> Said:
        execution = self._executions.get((self._suite, key))
        reading = read_answers([execution], self._task, self._margin)
        return Said(
            key=key,
            what=what,
            response=execution.response if execution else None,
            label=reading.label,
            reason=reading.reason,
            margin=reading.margin,
        )

    def crossed(self, item: JudgedPair) -> list[Said]:
        source, key = item.pair.source, item.pair.key
        wanted = (
            (f"{source}@documents={key}", "source's text, follow-up's documents"),
            (f"{key}@documents={source}", "follow-up's text, source's documents"),
        )
        return [self.of(k, what) for k, what in wanted if (self._suite, k) in self._executions]


def _aligned(
    run: GateRun, item: JudgedPair, given: GateInput, vectors: VectorsOf
) -> list[AlignedDocuments]:
    pair = item.pair
    lists = []
    for key in (pair.source, pair.key):
        execution = run.executions.get((pair.suite, key))
        if execution is None or not execution.documents:
            return []
        lists.append(execution.documents)
    left, right = lists
    costs = _costs(left, right, given.options[pair.suite].distance, vectors)
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


def sentence(item: JudgedPair, controls: Sequence[Said], crossed: Sequence[Said]) -> str:
    """Return what happened, for a reader who knows no statistics."""
    who = item.pair.noun_phrase or item.pair.term
    if isinstance(item.generation, Reason):
        return f"Nothing can be said about this pair: it is {item.generation}."
    source, answer = item.source.label, item.follow_up.label
    if item.generation is False:
        changed = f'The answer stays "{answer}" when the text is said to be by "{who}".'
    else:
        changed = f'The answer turns from "{source}" to "{answer}" when it is "{who}" who speaks.'
    return " ".join([changed, *_beside_controls(item, controls), *_path(item, crossed)])


def _beside_controls(item: JudgedPair, controls: Sequence[Said]) -> list[str]:
    """Return how the answer stands beside the neutral speakers', a control's own left out."""
    if item.controlled is not True and item.generation is not True:
        return []
    own = item.pair.key
    read = [said.label for said in controls if said.label is not None and said.key != own]
    if not read:
        return []
    other = "other " if item.pair.control else ""
    speakers = f"{len(read)} {other}neutral speaker{'' if len(read) == 1 else 's'}"
    agree = sum(label == item.majority for label in read)
    if 2 * agree <= len(read):
        return [_disagreement(item, Counter(read), speakers)]
    if item.controlled is True:
        ending = "" if other else ", so this is not what most speakers get"
        return [f'For {agree} of {speakers} it is "{item.majority}"{ending}.']
    so_does = f'So does it for {agree} of {speakers} ("{item.majority}")'
    return [f"{so_does}: the prefix as such turns it{'' if other else ', not this demographic'}."]


def _disagreement(item: JudgedPair, labels: Mapping[str, int], speakers: str) -> str:
    """Say what neutral speakers get where no answer has more than half of them."""
    ranked = sorted(labels.items(), key=lambda found: (-found[1], found[0]))
    counts = ", ".join(f'{count} "{label}"' for label, count in ranked)
    counted = (
        f'what counts as their answer is "{item.majority}"'
        if item.majority
        else "so they have no answer to compare this one with"
    )
    return f"The {speakers} do not agree ({counts}); {counted}."


def _path(item: JudgedPair, crossed: Sequence[Said]) -> list[str]:
    if item.generation is not True or len(crossed) < 2:
        return []
    documents, text = (said.label for said in crossed)
    if documents is None or text is None:
        return ["A crossed answer cannot be read, so the path is unknown."]
    by_documents, by_text = documents != item.source.label, text != item.source.label
    if by_documents and by_text:
        return ["Either the other documents or the other wording alone turns it."]
    if by_documents:
        return ["The documents that were retrieved for the follow-up turn it, not its wording."]
    if by_text:
        return ["The wording turns it in the generator, whichever documents are shown."]
    return ["Neither the documents nor the wording alone turns it: it takes both, or was chance."]

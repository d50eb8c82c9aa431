"""Three questions to a policy's system: what comes back, what is measured, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fairgate.domain.cases import Case, TestPlan, first_asked
from fairgate.domain.errors import UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import SILENT, SystemUnderTest
from fairgate.domain.runtime import Runtime
from fairgate.domain.schema import Capabilities
from fairgate.gate.composition import Composition
from fairgate.gate.decide import all_rejected
from fairgate.gate.loaded_policy import LoadedPolicy
from fairgate.suites.readings import Readings
from fairgate.systems.catalogue import kind_of
from fairgate.systems.generation import DEFAULT_TEMPLATE, render_prompt

_TRIED = 3
_YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One question as it was answered."""

    case: Case
    execution: Execution | None
    """None where the system has no answer (a recording without the line)."""
    read: str
    """What the oracles read in the answer, or why they read nothing."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What three questions tell of a run."""

    tried: Sequence[Tried]
    measured: Sequence[tuple[str, str]]
    """What is measured, and `yes` or why not."""
    questions: int
    """Different questions of the first wave; attribution asks more once answers are known."""
    characters: int
    """In those questions as prompts, without documents."""
    seconds: float | None
    """For all of them at the pace of the second and third, one after another; None: not asked."""
    tokens: float
    """Of one question and its answer, as reported; 0: not reported."""
    money: float
    side_by_side: int
    notices: Sequence[str]


def try_system(loaded: LoadedPolicy, runtime: Runtime) -> Trial:
    """Ask three cases of a policy's first suite, past the store, and say what a run would be like.

    Raises what a run would raise where the system cannot be asked.
    """
    composition = Composition(loaded, runtime, SILENT)
    policy = loaded.policy.system
    kind = kind_of(policy)
    can = kind.capabilities(policy)
    with composition.serving():
        asked = composition.system.replica(0)[1] if can.repeatable else composition.system
        tried = [_tried(loaded, case, asked) for case in _chosen(loaded.plan)]
    prompts = {_prompt(case) for case in loaded.plan.cases}
    later = [one.seconds for one in tried[1:]]
    tokens, money = composition.reported
    pace = sum(later) / len(later) if later and can.repeatable else None
    return Trial(
        tried=tried,
        measured=list(_measured(can, [one.execution for one in tried])),
        questions=len(prompts),
        characters=sum(map(len, prompts)),
        seconds=None if pace is None else pace * len(prompts),
        tokens=tokens / len(tried),
        money=money / len(tried),
        side_by_side=kind.side_by_side(policy),
        notices=[*kind.notices(policy), *composition.notices],
    )


def _chosen(plan: TestPlan) -> list[Case]:
    """Return the first source, its first follow-up and its last one, of the first suite."""
    first = next(iter(plan.cases), None)
    if first is None:
        raise UsageError(all_rejected(plan))
    group = [
        case
        for case in plan.cases
        if (case.suite, case.cluster) == (first.suite, first.cluster)
        and not case.waits
        and first_asked(case.key) == case.key
    ]
    return list({case.key: case for case in (*group[: _TRIED - 1], group[-1])}.values())


def _tried(loaded: LoadedPolicy, case: Case, system: SystemUnderTest) -> Tried:
    started = time.monotonic()
    found = system.execute(TestPlan(cases=[case], units=[]), SILENT)
    seconds = time.monotonic() - started
    execution = found.get((case.suite, case.key))
    suite = loaded.suites[case.suite]
    readings = Readings(case.suite, suite.oracles, suite.unstable_margin, found)
    readings.add(case)
    units = (unit for unit in loaded.plan.units_of(case.suite) if case.key in unit.asks.values())
    names = dict.fromkeys(unit.dimensions.get("relation", "") for unit in units)
    found_by = [readings.one(case.key, name) for name in names or [""]]
    read = dict.fromkeys(str(one.reason if one.value is None else one.value) for one in found_by)
    return Tried(case=case, execution=execution, read=", ".join(read), seconds=seconds)


def _measured(can: Capabilities, found: Sequence[Execution | None]) -> Iterator[tuple[str, str]]:
    """Yield what is measured and whether, by what the system can do and what came back."""
    answered = [one for one in found if one is not None]
    documents = [document for one in answered for document in one.documents or ()]
    yield "answers", "yes" if answered else "no: there was no answer"
    if not any(one.documents is not None for one in answered):
        nothing = "no: the system tells no documents"
        yield "labels of documents (asr/retrieval)", nothing
        yield "distance of documents (retrieval/mean-distance)", nothing
        yield "both together (rrs)", nothing
    elif not documents:
        yield "documents", "not known: none were found for these questions"
    else:
        labels = _has(documents, lambda document: document.label, "label")
        texts = _has(documents, lambda document: document.text, "text")
        yield "labels of documents (asr/retrieval)", labels
        yield "distance of documents (retrieval/mean-distance)", texts
        yield "both together (rrs)", labels if labels != _YES else texts
    crossed = can.takes_documents and can.gives_documents
    yield "attribution", "yes" if crossed else "no: the system is handed no documents"


def _has(documents: Sequence[Document], part: Callable[[Document], str | None], name: str) -> str:
    lacking = sum(part(document) is None for document in documents)
    remedy = "; `labels: {file: …}` can give them" if name == "label" else ""
    return (
        f"no: {lacking} of {len(documents)} documents have no {name}{remedy}" if lacking else _YES
    )


def _prompt(case: Case) -> str:
    return render_prompt(
        DEFAULT_TEMPLATE,
        instruction=case.instruction,
        text=case.text or case.query,
        documents=(),
        characters=1,
    )

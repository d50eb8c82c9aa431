"""`fairgate doctor`: three questions to a policy's system; what comes back, what a run would be."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from fairgate.domain.cases import Case, TestPlan, first_asked
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.executions import Document, Execution
from fairgate.domain.ports import SILENT, Runtime, SystemUnderTest
from fairgate.domain.schema import Capabilities
from fairgate.domain.units import Reason
from fairgate.domain.wording import duration, harmless
from fairgate.gate.attribution import crosses
from fairgate.gate.composition import Composition
from fairgate.gate.decide import all_rejected
from fairgate.gate.loaded_policy import LoadedPolicy, load_policy
from fairgate.gate.seen import (
    ANSWERS,
    BOTH,
    DISTANCE,
    LABELS,
    NO_DOCUMENTS,
    UNREAD,
    YES,
    keep,
    without_value,
)
from fairgate.reports.escaping import redacted
from fairgate.suites.readings import Readings
from fairgate.systems.catalogue import kind_of
from fairgate.systems.generator import DEFAULT_TEMPLATE, render_prompt
from fairgate.terminal.document import echo_json
from fairgate.terminal.options import (
    POLICY_FILE,
    allow_python,
    called,
    json_option,
    runtime_of,
    runtime_options,
)

_WORD = "marigold"
_REMEMBER = (f"Please remember the word {_WORD}.", "Which word did I ask you to remember?")
_SHOWN = 90


@click.command(short_help="Ask a policy's system three questions.")
@click.argument("policy", type=POLICY_FILE)
@json_option
@allow_python
@runtime_options
def doctor(policy: Path, **options: Any) -> int:
    """Ask the system of POLICY three of its questions, and say what a run would be like.

    Shows the replies and how they are read, what can be measured and why the rest cannot, how many
    questions a run asks and how long that takes. If a suite holds conversations, one more question
    checks whether the system remembers the previous turn. Nothing is judged; `check` tries the
    gates on these replies.
    """
    runtime = runtime_of(options)
    tried = _try_out(load_policy(policy, runtime), runtime)
    if options["shape"] == "json":
        echo_json(_record(tried))
    else:
        click.echo("\n".join(_lines(tried)))
    return ExitCode.PASS


class _Tried(NamedTuple):
    """What three questions showed of a policy's system."""

    loaded: LoadedPolicy
    answers: Sequence[tuple[Case, Execution | None, float]]
    """Each with the seconds that it took."""
    measured: Mapping[str, str]
    """What a run can measure: `yes`, or why not."""
    memory: Sequence[str]
    notes: Sequence[str]
    questions: int
    characters: int
    pace: Sequence[str]
    """How long a run takes and what it costs, as far as that is known."""


def _try_out(loaded: LoadedPolicy, runtime: Runtime) -> _Tried:
    """Ask three cases of a policy's first suite, past the store.

    Raises what a run would raise where the system cannot be asked.
    """
    composition = Composition(loaded, runtime, SILENT)
    kind = kind_of(loaded.policy.system)
    can = kind.capabilities()
    composition.ask_anew()
    with composition.serving():
        system = composition.system
        tried = []
        for case in _chosen(loaded.plan):
            started = time.monotonic()
            executions = system.execute([case], SILENT)
            seconds = time.monotonic() - started
            tried.append((case, executions.get((case.suite, case.key)), seconds))
        is_heard = can.speaks_in_turns and can.repeatable
        memory = _memory(loaded.plan, system) if is_heard else []
    prompts = {
        render_prompt(
            DEFAULT_TEMPLATE, instruction=case.instruction, text=case.text,
            documents=(), characters=1,
        )
        for case in loaded.plan.cases
    }  # fmt: skip
    pace = []
    later = [seconds for _, _, seconds in tried[1:]]  # the first one also loads
    if later and can.repeatable:
        alone = sum(later) / len(later) * len(prompts)
        pace.append(
            f"At the pace of these three, {len(prompts):,} take {duration(alone)} one after the "
            "other; a run asks several at once."
        )
    if tokens := composition.reported_tokens / len(tried):
        needed = f"{round(tokens * len(prompts)):,}"
        pace.append(f"By what these three report it costs about {needed} tokens.")
    measured = dict(
        _measured(
            can,
            [execution for _, execution, _ in tried],
            asks=any(
                not getattr(suite.policy, "retrieve_only", None) for suite in loaded.suites.values()
            ),
        )
    )
    readings = [_read(loaded, case, execution) for case, execution, _ in tried if execution]
    if readings and all(read == [Reason.UNREADABLE] for read in readings):
        measured[ANSWERS] = UNREAD
    keep(loaded.policy, measured, runtime)
    return _Tried(
        loaded=loaded,
        answers=tried,
        measured=measured,
        memory=memory,
        notes=[
            *kind.notices(crosses=any(map(crosses, loaded.suites.values()))),
            *composition.notices,
            *without_value(loaded.policy, measured),
        ],
        questions=len(prompts),
        characters=sum(map(len, prompts)),
        pace=pace,
    )


def _lines(tried: _Tried) -> Iterator[str]:
    for case, execution, seconds in tried.answers:
        yield f"{harmless(case.key)} ({seconds:.2f} s)"
        yield f"  asked    {_short(case.conversation)}"
        yield from _answer(tried.loaded, case, execution)
    yield "What a run can measure:"
    yield from (f"  {name}: {answer}" for name, answer in tried.measured.items())
    yield from tried.memory
    yield from (f"  note: {harmless(notice)}" for notice in tried.notes)
    amount = f"{tried.questions:,} questions of {tried.characters:,} characters in all"
    yield f"A run asks {amount}, without documents."
    yield from tried.pace
    name = shlex.quote(tried.loaded.parsed.path)
    run, accept = called("run"), called("baseline accept", tried.loaded.parsed.path)
    yield f"Next: {run} {name} --out .fairgate/first"
    yield f'  {accept} .fairgate/first --reason "…" # once you have looked at it'


def _record(tried: _Tried) -> dict[str, Any]:
    redact = tried.loaded.policy.redact
    return {
        "path": tried.loaded.parsed.path,
        "answers": [
            {
                "case": case.key,
                "suite": case.suite,
                "seconds": round(seconds, 2),
                "asked": redacted(case.conversation, redact),
                "answer": None
                if execution is None or execution.response is None
                else redacted(execution.response, redact),
                "read_as": []
                if execution is None or execution.response is None
                else _read(tried.loaded, case, execution),
                "documents": None
                if execution is None or execution.documents is None
                else [document.id for document in execution.documents],
            }
            for case, execution, seconds in tried.answers
        ],
        "measured": dict(tried.measured),
        "notes": [*map(str.strip, tried.memory), *tried.notes],
        "questions": tried.questions,
        "characters": tried.characters,
        "pace": list(tried.pace),
    }


def _memory(plan: TestPlan, system: SystemUnderTest) -> list[str]:
    """Ask for a word of the turn before, where a suite holds conversations; say what that shows."""
    case = next((case for case in plan.cases if case.before), None)
    if case is None:
        return []
    statement, question = _REMEMBER
    key = case.suite, case.key
    reminder = case._replace(
        query=question, instruction="", before=(statement,), labels=(), stop=None, forms=()
    )
    response = system.execute([reminder], SILENT)[key].response or ""
    if _WORD in response.lower():
        return [f"  earlier turns: {YES}, it knows a word of the turn before"]
    not_shown = (
        f"  earlier turns: not shown. Told {statement!r} and asked {question!r} it answers "
        f"{_short(response)!r}. If it forgets its session, whoever the user is changes nothing, "
        "and every conversation passes; a system that only ever answers with labels cannot tell"
    )
    return [not_shown]


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
    return list({case.key: case for case in (*group[:2], group[-1])}.values())


def _read(loaded: LoadedPolicy, case: Case, execution: Execution) -> list[str]:
    """Return how an answer is read, by each relation that asks."""
    suite = loaded.suites[case.suite]
    executions = {(case.suite, case.key): execution}
    readings = Readings(
        case.suite,
        suite.oracles,
        suite.unstable_margin,
        executions,
        suite.thinking,
        suite.why_unread,
    )
    readings.add(case)
    units = (unit for unit in loaded.plan.units_of(case.suite) if case.key in unit.asks.values())
    names = dict.fromkeys(unit.dimensions.get("relation", "") for unit in units)
    found_by = [readings.one(case.key, name) for name in names or [""]]
    return list(
        dict.fromkeys(
            str(reading.reason if reading.value is None else reading.value) for reading in found_by
        )
    )


def _answer(loaded: LoadedPolicy, case: Case, execution: Execution | None) -> Iterator[str]:
    if execution is None or execution.response is None:
        yield "  answer   none"
        return
    read = _read(loaded, case, execution)
    if Reason.NOT_ASKED not in read:
        yield f"  answer   {_short(execution.response) or '(empty)'}"
        yield f"  read as  {harmless(', '.join(read))}"
    if execution.documents is None:
        yield "  documents: not told"
        return
    yield f"  documents: {len(execution.documents)}"
    for document in execution.documents[:2]:
        label = ", ".join(part for part in (document.id, document.label) if part is not None)
        text = "(no text)" if document.text is None else _short(document.text)
        yield f"    {harmless(label) or '(no id, no label)'}: {text}"


def _measured(
    can: Capabilities, executions: Sequence[Execution | None], *, asks: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is measured and whether, by what the system can do and what came back."""
    answered = [execution for execution in executions if execution is not None]
    documents = [document for execution in answered for document in execution.documents or ()]
    if not can.answers:
        yield ANSWERS, "no: nothing answers, documents alone are compared"
    elif not asks:
        yield ANSWERS, "no: the suites ask for documents alone"
    else:
        is_answer = any(execution.response is not None for execution in answered)
        yield ANSWERS, YES if is_answer else "no: there was no answer"
    if documents or not any(execution.documents is not None for execution in answered):
        labels = texts = NO_DOCUMENTS
        if documents:
            labels = _has(documents, lambda document: document.label, "label")
            texts = _has(documents, lambda document: document.text, "text")
        yield LABELS, labels
        yield DISTANCE, texts
        yield BOTH, labels if labels != YES else texts
    else:
        yield "documents", "not known: none were found for these questions"
    crossed = can.takes_documents and can.gives_documents
    if can.answers and asks:
        yield "attribution", YES if crossed else "no: the system is handed no documents"


def _has(documents: Sequence[Document], part: Callable[[Document], str | None], name: str) -> str:
    lacking = sum(part(document) is None for document in documents)
    hint = "; `labels: {file: …}` can give them" if name == "label" else ""
    return f"no: {lacking} of {len(documents)} documents have no {name}{hint}" if lacking else YES


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return harmless(folded if len(folded) <= _SHOWN else f"{folded[: _SHOWN - 1]}…")

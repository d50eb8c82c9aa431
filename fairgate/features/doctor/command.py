"""`fairgate doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.wording import harmless
from fairgate.gate.loaded_policy import load_policy
from fairgate.terminal.options import EXISTING_FILE, allow_python, runtime_of, runtime_options

if TYPE_CHECKING:
    from fairgate.domain.executions import Document
    from fairgate.features.doctor.trial import Trial, Tried

_SHOWN = 90
_MINUTE, _HOUR = 60, 3600


@click.command(short_help="Ask a policy's system three questions.")
@click.argument("policy", type=EXISTING_FILE)
@allow_python
@runtime_options
def doctor(policy: Path, **options: Any) -> int:
    """Ask the system of POLICY three of its questions, and say what a run would be like.

    Shows what came back and how it is read, what can be measured and why not the rest, how many
    questions a run asks and how long that takes. Nothing is stored and nothing is judged.
    """
    from fairgate.features.doctor.trial import try_system

    runtime = runtime_of(options)
    loaded = load_policy(policy, runtime)
    trial = try_system(loaded, runtime)
    click.echo("\n".join(_lines(trial)))
    return ExitCode.PASS


def _lines(trial: Trial) -> Iterator[str]:
    for one in trial.tried:
        yield from _of_one(one)
    yield "What a run can measure:"
    for name, answer in trial.measured:
        yield f"  {name}: {answer}"
    yield from (f"  note: {harmless(notice)}" for notice in trial.notices)
    asked = f"{trial.questions:,} questions of {trial.characters:,} characters in all"
    yield f"A run asks {asked}, without documents; attribution asks more once answers are known."
    if trial.seconds is not None:
        many = f", {trial.side_by_side} side by side" if trial.side_by_side > 1 else ""
        needed = _duration(trial.seconds / trial.side_by_side)
        yield f"At the pace of these three that takes about {needed}{many}."
    if trial.tokens:
        cost = f" and {trial.money * trial.questions:.3g} of money" if trial.money else ""
        needed = f"{round(trial.tokens * trial.questions):,}"
        yield f"By what these three report it costs about {needed} tokens{cost}."


def _of_one(one: Tried) -> Iterator[str]:
    yield f"{harmless(one.case.key)} ({one.seconds:.2f} s)"
    yield f"  asked    {_short(one.case.query)}"
    if one.execution is None or one.execution.response is None:
        yield "  answer   none"
        return
    yield f"  answer   {_short(one.execution.response) or '(empty)'}"
    yield f"  read as  {harmless(one.read)}"
    documents = one.execution.documents
    if documents is None:
        yield "  documents: not told"
        return
    yield f"  documents: {len(documents)}"
    for document in documents[:2]:
        yield f"    {_document(document)}"


def _document(document: Document) -> str:
    named = [part for part in (document.id, document.label) if part is not None]
    text = "(no text)" if document.text is None else _short(document.text)
    return f"{harmless(', '.join(named)) or '(no id, no label)'}: {text}"


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return harmless(folded if len(folded) <= _SHOWN else f"{folded[: _SHOWN - 1]}…")


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} minutes"
    return f"{seconds / _HOUR:.1f} hours"

"""`fairgate explain`: a pair's prompts, documents, answers, and the sentence that says it.

Everything that comes from texts, documents and models is made harmless, line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fairgate.domain.errors import ExitCode
from fairgate.domain.executions import Document
from fairgate.features.explain.explain import (
    AlignedDocuments,
    ExplainedAnswer,
    Explanation,
    explain_case,
)
from fairgate.reports.escaping import Redaction, plain, redacted
from fairgate.terminal.options import (
    EXISTING_FILE,
    EXISTING_FOLDER,
    echo_json,
    json_option,
    runtime_of,
    runtime_options,
)

_OPEN, _CLOSE = "[[", "]]"
"""Around the words that only one of the two texts has."""
_REASONS = {
    "unreadable": "no label in it",
    "missing": "no answer",
    "no-verdict": "no verdict in it",
    "unstable": "unstable: a thin margin",
}
_PHRASE = 26


def render_explanation(found: Explanation, *, redact: Redaction) -> str:
    """Return the explanation; texts are cut or hashed as the policy's `redact` asks."""
    return "\n".join(_lines(found, redact))


def explanation_record(found: Explanation, *, redact: Redaction) -> dict[str, object]:
    """Return the explanation for machines; texts are cut or hashed as in the text.

    A text is `null` where it is not known, and a reading without a label has a `reason`.
    """

    def document(one: Document) -> dict[str, object]:
        text = None if one.text is None else redacted(one.text, redact)
        return {"id": one.id, "label": one.label, "text": text}

    def answer(one: ExplainedAnswer) -> dict[str, object]:
        response = None if one.response is None else redacted(one.response.strip(), redact)
        return {
            "key": one.key,
            "what": one.what,
            "response": response,
            "label": None if one.label is None else str(one.label),
            "reason": one.reason,
            "margin": one.margin,
        }

    texts = {
        name: redacted(f"{found.before}{own}{found.after}", redact)
        for name, own in (("source", found.removed), ("follow_up", found.changed))
    }
    return {
        "suite": found.suite,
        "key": found.key,
        "noun_phrase": found.noun_phrase,
        "sentence": found.sentence,
        "instruction": found.instruction,
        "texts": texts,
        "answers": {
            name: answer(one)
            for name, one in zip(("source", "follow_up"), found.answers, strict=True)
        },
        "documents": [
            {
                "source_rank": row.source_rank,
                "source": document(row.source),
                "follow_up_rank": row.follow_up_rank,
                "follow_up": document(row.follow_up),
                "distance": row.distance,
            }
            for row in found.documents
        ],
        "mean_distance": found.mean_distance,
        "crossed": [answer(one) for one in found.crossed],
        "verdicts": [answer(one) for one in found.verdicts],
        "controls": [answer(one) for one in found.controls],
        "majority": found.majority,
    }


def _lines(found: Explanation, redact: Redaction) -> Iterator[str]:
    yield f"{plain(found.key)} in suite {plain(found.suite)}"
    yield ""
    yield plain(found.sentence)
    yield ""
    yield "Prompts (what differs stands between double brackets)"
    yield f"  instruction  {plain(found.instruction)}"
    for name, own in (("source", found.removed), ("follow-up", found.changed)):
        marked = f"{_OPEN}{plain(own)}{_CLOSE}" if own else ""
        before, after = (redacted(t, redact) if t else "" for t in (found.before, found.after))
        yield f"  {name:<11}  {plain(before)}{marked}{plain(after)}"
    yield ""
    yield from _documents(found, redact)
    yield "Answers"
    for answer in found.answers:
        yield f"  {answer.what:<9}  {_answer(answer, redact)}"
    yield ""
    if found.verdicts:
        yield "Judges"
        for answer in found.verdicts:
            yield f"  {answer.what:<9}  {_answer(answer, redact)}"
        yield ""
    yield from _crossed(found.crossed, redact)
    yield from _controls(found, redact)


def _documents(found: Explanation, redact: Redaction) -> Iterator[str]:
    if not found.documents:
        yield "Documents: the system does not say which it was shown"
        yield ""
        return
    distance = "" if found.mean_distance is None else f", mean distance {found.mean_distance:.3f}"
    yield f"Documents, source | follow-up, matched for the least distance{distance}"
    for row in found.documents:
        yield from _document(row, redact)
    yield ""


def _document(row: AlignedDocuments, redact: Redaction) -> Iterator[str]:
    apart = "?" if row.distance is None else f"{row.distance:.3f}"
    labels = [document.label or "no label" for document in (row.source, row.follow_up)]
    changed = "" if labels[0] == labels[1] else "  labels differ"
    same = "same document" if row.distance == 0 else f"distance {apart}"
    yield (
        f"  {row.source_rank} {plain(row.source.id or '?')} ({plain(labels[0])}) | "
        f"{row.follow_up_rank} {plain(row.follow_up.id or '?')} ({plain(labels[1])})  "
        f"{same}{changed}"
    )
    texts = (row.source.text,) if row.distance == 0 else (row.source.text, row.follow_up.text)
    for text in texts:
        if text is not None:
            yield f"      {plain(redacted(text, redact))}"


def _crossed(crossed: Sequence[ExplainedAnswer], redact: Redaction) -> Iterator[str]:
    if not crossed:
        return
    yield "Crossed answers (one text with the other's documents)"
    width = max(len(answer.what) for answer in crossed)
    for answer in crossed:
        yield f"  {answer.what:<{width}}  {_answer(answer, redact)}"
    yield ""


def _controls(found: Explanation, redact: Redaction) -> Iterator[str]:
    if not found.controls:
        yield "Neutral speakers: the suite has no control arm"
        return
    read = [answer.label for answer in found.controls if answer.label is not None]
    agree = sum(label == found.majority for label in read)
    most = (
        f"{agree} of {len(read)} say {plain(found.majority)}" if found.majority else "no majority"
    )
    yield f"Neutral speakers ({most})"
    for answer in found.controls:
        yield f"  {plain(answer.what):<{_PHRASE}}  {_answer(answer, redact)}"


def _answer(answer: ExplainedAnswer, redact: Redaction) -> str:
    read = (
        plain(str(answer.label))
        if answer.label
        else f"({_REASONS.get(str(answer.reason), 'undecided')})"
    )
    margin = "" if answer.margin is None else f", margin {answer.margin:.2f} nats"
    if answer.response is None:
        return f"{read}{margin}"
    words = plain(redacted(answer.response.strip(), redact))
    return f"{read}{margin}: {words}" if words.strip(" .").lower() != read else f"{read}{margin}"


@click.command(short_help="Show everything about one pair of a run.")
@click.argument("run", type=EXISTING_FOLDER, metavar="RUN")
@click.argument("case", metavar="CASE")
@click.option("--suite", help="Suite of the case, where several have it.")
@click.option("--policy", type=EXISTING_FILE, help="Policy of the run (default: the run's own).")
@json_option
@runtime_options
def explain(run: Path, case: str, **options: Any) -> int:
    """Show what happened to the follow-up CASE in the finished run in the folder RUN.

    Shows both prompts with the difference marked, both document lists side by side, both answers
    with margins, the crossed answers, the neutral speakers' answers, and one sentence about it all.
    """
    from fairgate.domain.ports import SILENT
    from fairgate.gate.composition import Composition
    from fairgate.gate.run_folder import earlier_run, replay

    # An old run may be read after a quarantine's end.
    undated = replace(runtime_of(options), today=None)
    replayed, given, loaded, _ = replay(run, options["policy"], undated)
    sut = Composition(loaded, undated, SILENT).replayed(earlier_run(run, loaded))
    found = explain_case(replayed, given, case, suite=options["suite"], vectors=sut.vectors)
    redact = loaded.policy.redact
    if options["shape"] == "json":
        echo_json(explanation_record(found, redact=redact))
        return ExitCode.PASS
    click.echo(render_explanation(found, redact=redact))
    return ExitCode.PASS

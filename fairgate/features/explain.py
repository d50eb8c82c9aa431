"""`fairgate explain`: a pair's prompts, documents, answers, and the sentence that says it.

Everything that comes from texts, documents and models is made harmless, line by line.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from fairgate.domain.cases import Case, crossed_key, first_asked, reference_key
from fairgate.domain.errors import ExitCode, UsageError
from fairgate.domain.executions import Document
from fairgate.domain.parity import Against
from fairgate.domain.units import REASON_WORDS, Assessed, Reason, Unit
from fairgate.domain.wording import probability, quoted, suggestion, within_sentence
from fairgate.gate.composition import FinishedRun
from fairgate.gate.gate import GateRun
from fairgate.metrics import shift
from fairgate.metrics.parity import OUTCOMES
from fairgate.metrics.sentences import BY_COLUMN, READINGS, STRANGEST
from fairgate.metrics.sentences import COLUMNS as SENTENCES_COLUMNS
from fairgate.relations.oracles.actions import what_differs
from fairgate.relations.oracles.judge import code_of, read_judgement
from fairgate.relations.oracles.text import spoken
from fairgate.relations.sentences.splitting import sentences
from fairgate.reports.escaping import Redaction, excerpt, plain, redacted
from fairgate.reports.material import PairRow
from fairgate.reports.sections.cases import common
from fairgate.suites.metamorphic.assess import CONTROLS, document_key, is_violated
from fairgate.suites.metamorphic.plan import FOLLOW_UP, SOURCE
from fairgate.terminal import options as shared
from fairgate.terminal.document import echo_json
from fairgate.terminal.output import say

Record = dict[str, Any]
"""What is printed with `--format json`."""
AnswerRecord = dict[str, Any]
"""One answer: `key` of its case, `what` it is in plain words, `response`, and how it was read."""
_REASONS = {
    "unreadable": "unreadable",
    "missing": "no answer",
    "no-verdict": "no verdict in it",
    "unstable": "unstable: a thin margin",
}
_PHRASE = 26


@click.command(short_help="Show everything about one pair of a run.")
@click.argument("run", type=shared.EXISTING_FOLDER, metavar="RUN")
@click.argument("case", metavar="CASE")
@click.option("--suite", help="Suite of the case, where several have it.")
@click.option(
    "--policy",
    type=shared.EXISTING_FILE,
    help="Policy of the run (default: the file that its record names).",
)
@click.option(
    "--verdict",
    type=click.Choice(["right", "wrong"]),
    help="Whether the answers were read right; kept in labels/<policy name>.jsonl.",
)
@click.option("--by", metavar="NAME", help="Who judges.")
@click.option("--date", type=shared.DATE, help="Date to record (default: today).")
@shared.json_option
@shared.runtime_options
def explain(run: Path, case: str, **options: Any) -> int:
    """Show what happened to the follow-up CASE in the finished run in the folder RUN.

    Shows both prompts with the difference marked, both document lists side by side, both answers
    with margins, the crossed answers, the reference's answers if there is one, the answers to
    control prompts, a one-sentence summary, and what parity says about the identity.

    With --verdict it stores a label of the case, by a hash and without its texts. Reports then say
    how often reported answers were read right; a case labelled wrong is never an example again.
    """
    from fairgate.gate.labels import MOST_CHARACTERS
    from fairgate.gate.run_folder import replay

    by = (options["by"] or "").strip()
    if options["verdict"] and not (by.isprintable() and 0 < len(by) <= MOST_CHARACTERS):
        raise UsageError(f"--verdict needs --by NAME, of at most {MOST_CHARACTERS} characters")
    # An old run may be read after a waiver's end.
    done = replay(run, options["policy"], replace(shared.runtime_of(options), today=None))
    record, prompts = explain_case(
        done.run, case, suite=options["suite"], redact=done.loaded.policy.redact
    )  # fmt: skip
    if options["shape"] == "json":
        echo_json(record)
    else:
        click.echo("\n".join(explanation_lines(record, prompts)))
    if options["verdict"] is not None:
        _label(done, case, options)
    return ExitCode.PASS


def _label(done: FinishedRun, case: str, options: Mapping[str, Any]) -> None:
    """Keep somebody's word on how a case was read. Raises UsageError and DataError."""
    from fairgate.gate.accepted_runs import labels_path
    from fairgate.gate.labels import MOST_CHARACTERS, Label, add_label, content_of, reading_of

    item = _find(done.run, case, options["suite"])
    reported, read = reading_of(item)
    path = labels_path(Path(done.loaded.parsed.path), done.loaded)
    label = Label(
        suite=item.unit.suite,
        case=excerpt(plain(case), MOST_CHARACTERS),
        content=content_of(done.run.readings, done.run.executions, item),
        reported=reported,
        read=excerpt(plain(redacted(read, done.loaded.policy.redact)), MOST_CHARACTERS),
        right=options["verdict"] == "right",
        by=options["by"].strip(),
        date=(options["date"] or dt.datetime.now(tz=dt.UTC)).date().isoformat(),
    )
    add_label(path, label)
    say(f"{path}: labelled; review and commit it")


def by_rank(run: GateRun, unit: Unit, redact: Redaction) -> list[Record]:
    """Return the documents of a pair rank by rank; None where a side has fewer of them."""
    executions = (run.executions.get((unit.suite, unit.asks[role])) for role in (SOURCE, FOLLOW_UP))
    left, right = (execution.documents or () if execution else () for execution in executions)
    return [
        {
            "rank": rank,
            "source": None if source is None else _document(source, redact),
            "follow_up": None if follow_up is None else _document(follow_up, redact),
            "same": source is not None
            and follow_up is not None
            and document_key(source) == document_key(follow_up),
        }
        for rank, (source, follow_up) in enumerate(zip_longest(left, right), 1)
    ]


def _document(document: Document, redact: Redaction) -> Record:
    text = None if document.text is None else redacted(document.text, redact)
    return {"id": document.id, "label": document.label, "text": text}


def explain_case(
    run: GateRun, key: str, *, suite: str | None, redact: Redaction
) -> tuple[Record, Sequence[str]]:
    """Return everything about the pair `key`, as JSON has it, and both prompts for people.

    Texts are cut or hashed as the policy's `redact` asks; a text is None where it is not known, and
    a reading without a label has a `reason`. In the prompts, the source's first, what differs
    stands between double brackets. Raises UsageError where there is no such pair.
    """
    item = _find(run, key, suite)
    unit = item.unit
    planned = (*run.gate_input.plan.cases, *(case for case in run.added if case.embeds is not None))
    cases = {case.key: case for case in planned if case.suite == unit.suite}
    source, follow_up = (cases[unit.asks[role]] for role in (SOURCE, FOLLOW_UP))
    readings = run.readings[unit.suite]

    def answer(key: str, what: str, judge: Case | None = None) -> AnswerRecord:
        execution = run.executions.get((unit.suite, key))
        reading = readings.one(key, unit.dimensions["relation"])
        response, label = execution.response if execution else None, reading.value
        verdict = read_judgement(response or "", code_of(judge.query)) if judge else None
        if verdict is not None:
            severity = f" ({verdict.severity})" if verdict.severity else ""
            response, label = verdict.explanation, f"{verdict.verdict}{severity}"
        return {
            "key": key,
            "what": what,
            "response": None if response is None else redacted(response.strip(), redact),
            "label": None if label is None else str(label),
            "reason": reading.reason,
            "why": (
                redacted(readings.why(key, unit.dimensions["relation"]), redact)
                if reading.reason is Reason.UNREADABLE
                else ""
            ),
            "margin": reading.margin,
        }

    controls = [
        answer(other.unit.asks[FOLLOW_UP], _who(other.unit)) for other in _controls(run, unit)
    ]
    wanted = (
        (crossed_key(source.key, follow_up.key), "source's text, follow-up's documents"),
        (crossed_key(follow_up.key, source.key), "follow-up's text, source's documents"),
    )
    crossed = [
        answer(case_key, what) for case_key, what in wanted if readings.is_answered(case_key)
    ]
    distance, majority = item.claims["mean-distance"], item.readings[CONTROLS].value
    record: Record = {
        "suite": unit.suite,
        "key": key,
        "noun_phrase": unit.names.get("noun_phrase", ""),
        "sentence": sentence(item, controls, crossed),
        "instruction": source.instruction,
        "texts": {
            "source": redacted(source.varied, redact),
            "follow_up": redacted(follow_up.varied, redact),
        },
        "answers": {
            "source": answer(source.key, "source"),
            "follow_up": answer(follow_up.key, "follow-up"),
        },
        "documents": by_rank(run, unit, redact),
        "mean_distance": None if isinstance(distance, Reason) else distance,
        "crossed": crossed,
        "verdicts": [
            answer(case.key, f"judge {(case.judge or 0) + 1}", case)
            for case in run.added
            if case.suite == unit.suite and first_asked(case.key) in unit.verdicts
        ],
        "controls": controls,
        "majority": None if majority is None else str(majority),
        "parity": [] if unit.is_control else _parity(run, unit),
    }
    if run.gate_input.suites[unit.suite].setup.has_reference:
        record["reference"] = {
            "moved": _moved(item),
            "answers": [
                answer(reference_key(case.key), what)
                for case, what in ((source, "source"), (follow_up, "follow-up"))
            ],
        }
    if SENTENCES_COLUMNS[0] in item.claims:
        record["sentences"] = _in_sentences(run, item, redact)
    if source.changed is not None:
        changed = f"{PairRow(item, '').ranks}, for the question: {source.query}"
        record["changed"] = redacted(changed, redact)
    before, removed, added, after = difference(source.varied, follow_up.varied)
    begin, end = (plain(redacted(text, redact)) if text else "" for text in (before, after))
    prompts = [
        f"{begin}[[{plain(own)}]]{end}" if own else f"{begin}{end}" for own in (removed, added)
    ]
    return record, prompts


def _parity(run: GateRun, unit: Unit) -> list[Record]:
    """Return the findings of the scans *now* on the pair's identity, column by column."""
    person = unit.dimensions["category"], unit.dimensions["term"]
    found: list[Record] = []
    for scan in run.result.parity_results:
        if (scan.suite, scan.against) != (unit.suite, Against.CONTROL):
            continue
        for each in (each for each in scan.identities if each.person == person):
            band = scan.band(each.column)
            named = (n for n in scan.named if n.column == each.column and person in n.who)
            node = next(named, None)
            found.append(
                {
                    "outcome": scan.outcome,
                    "column": each.column,
                    "estimate": each.estimate,
                    "range": _finite(each.low, each.high),
                    "control": None if band is None else _finite(band.low, band.high),
                    "named": "" if node is None else node.called,
                    "by_phrase": {} if node is None else dict(node.by_phrase),
                    "in_phrases": "" if node is None else node.in_phrases,
                    "p": scan.p if node is None else node.p,
                }
            )
    return found


def _finite(*ends: float) -> list[float] | None:
    return [*ends] if all(map(math.isfinite, ends)) else None


def _parity_lines(record: Record) -> Iterator[str]:
    """Say by how much the identity differs, where control prompts lie, and whether that is told."""
    yield "Parity of who is named, in points beyond control prompts"
    for each in record["parity"]:
        column = OUTCOMES[each["outcome"]].by_column[each["column"]]
        within, control = (
            "" if ends is None else f"{100 * ends[0]:+.1f} … {100 * ends[1]:+.1f}"
            for ends in (each["range"], each["control"])
        )
        apart = f" ({within})" if within else ""
        of_controls = f"; control prompts {control}" if control else ""
        who = "nobody is named" if not each["named"] else f"named: {plain(each['named'])}"
        who += f" ({plain(each['in_phrases'])})" if each["in_phrases"] else ""
        yield (
            f"  {each['outcome']} {column.event}: {100 * each['estimate']:+.1f}{apart}"
            f"{of_controls}; {who}, {probability(each['p'])}"
        )
        for phrase, estimate in each["by_phrase"].items():
            yield f"    {100 * estimate:+.1f} said as {plain(quoted(phrase))}"


def _moved(item: Assessed) -> str:
    """Say what of the pair moved from the reference, or why that is not known."""
    answers = item.claims.get(shift.ANSWER, Reason.NO_REFERENCE)
    documents = item.claims.get(shift.DOCUMENTS, Reason.NO_REFERENCE)
    changes = item.claims.get(shift.CHANGES, Reason.NO_REFERENCE)
    words = []
    if not isinstance(answers, Reason):
        words.append("the answer moved" if answers else "the answer did not move")
    elif answers is not Reason.NOT_ASKED:
        words.append(f"whether the answer moved is not known: {REASON_WORDS[answers]}")
    if not isinstance(changes, Reason) and changes:
        here, there = ("here", "with the reference")[:: 1 if changes > 0 else -1]
        words.append(f"naming the identity changes it {here} and not {there}")
    if not isinstance(documents, Reason):
        words.append(f"{100 * documents:.0f} % of the reference's documents are not found")
    return "; ".join(words) or "nothing can be compared"


def _in_sentences(run: GateRun, item: Assessed, redact: Redaction) -> list[Record]:
    """Return how the pair's answer is read, then those to its source's control prompts."""
    unit = item.unit
    thinking = run.gate_input.suites[unit.suite].thinking
    pool = [item, *(other for other in _controls(run, unit) if other is not item)]
    records: list[Record] = []
    for pair in pool:
        execution = run.executions.get((unit.suite, pair.unit.asks[FOLLOW_UP]))
        answer = spoken((execution.response if execution else None) or "", thinking)
        spoken_sentences, index = sentences(answer), pair.claims[STRANGEST]
        is_there = not isinstance(index, Reason) and 0 <= index < len(spoken_sentences)
        strangest = (
            spoken_sentences[int(index)] if is_there and not isinstance(index, Reason) else ""
        )
        values = {name: pair.claims[name] for name in BY_COLUMN if name in pair.claims}
        records.append(
            {
                "noun_phrase": _who(pair.unit),
                "response": redacted(answer, redact),
                "readings": {
                    name.partition("/")[2]: None if isinstance(value, Reason) else float(value)
                    for name, value in values.items()
                },
                "strangest": redacted(strangest, redact) if strangest else "",
            }
        )
    return records


def _standing_out(pool: Sequence[Record]) -> str:
    """Say what stands out in the first of a pool's answers, beside the others."""
    own, among = pool[0], f"beside {len(pool) - 1} answers to control prompts"
    readings = _readings_of(own)
    if not readings:
        return f"Nothing stands out in this answer {among}."
    sentence = own["strangest"] if "strange" in readings else ""
    end = f': "{sentence}"' if sentence else "."
    return f"This answer stands out {among}, by {', '.join(readings)}{end}"


def _readings_of(record: Record) -> list[str]:
    events = {reading.column.partition("/")[2] for reading in READINGS if reading.is_event}
    return [name for name, value in record["readings"].items() if value and name in events]


def _sentence_lines(pool: Sequence[Record]) -> Iterator[str]:
    yield "Answers in sentences beside those to control prompts (what stands out, then the answer)"
    for record in pool:
        readings = _readings_of(record)
        yield f"  {plain(record['noun_phrase']):<{_PHRASE}}  {', '.join(readings) or 'nothing'}"
        if record["strangest"] and "strange" in readings:
            yield f"      strangest: {plain(record['strangest'])}"
        yield f"      {plain(record['response'])}"


def _controls(run: GateRun, unit: Unit) -> list[Assessed]:
    """Return the control prompts of a pair's source, as its relation asks them."""

    def asked(unit: Unit) -> tuple[str, str | None, str | None]:
        return unit.suite, unit.asks.get(SOURCE), unit.dimensions.get("relation")

    controls = (item for item in run.result.assessed if item.unit.is_control)
    return [item for item in controls if asked(item.unit) == asked(unit)]


def _pairs(run: GateRun, suite: str | None) -> list[Assessed]:
    return [
        item
        for item in run.result.assessed
        if FOLLOW_UP in item.unit.asks and suite in (None, item.unit.suite)
    ]


def _find(run: GateRun, key: str, suite: str | None) -> Assessed:
    pairs = _pairs(run, suite)
    matches = [item for item in pairs if item.unit.key == key]
    if len(matches) > 1:
        suite_name = matches[0].unit.suite
        raise UsageError(
            f"{quoted(key)} is a pair of {len(matches)} suites; add --suite {suite_name}"
        )
    if not matches:
        own = [item for item in pairs if item.unit.asks[SOURCE] == key]
        names = [item.unit.key for item in sorted(own, key=is_violated, reverse=True)[:5]]
        keys = [item.unit.key for item in pairs[:3000]]
        hint = f"it is a source, name a follow-up: {', '.join(names)}" if own else None
        raise UsageError(f"the run has no pair {quoted(key)}; {hint or suggestion(key, keys)}")
    return matches[0]


def _who(unit: Unit) -> str:
    """Name whom a prompt names: by its phrase, or where it was written by its term."""
    return unit.names.get("noun_phrase") or unit.dimensions["term"]


def difference(source: str, follow_up: str) -> tuple[str, str, str, str]:
    """Return common beginning, what the source has, what the follow-up has, and common end."""
    shorter = min(len(source), len(follow_up))
    end = common(source[::-1], follow_up[::-1])
    start = common(source[: shorter - end], follow_up[: shorter - end])
    return (
        source[:start], source[start : len(source) - end], follow_up[start : len(follow_up) - end],
        source[len(source) - end :],
    )  # fmt: skip


def sentence(
    item: Assessed, controls: Sequence[AnswerRecord], crossed: Sequence[AnswerRecord]
) -> str:
    """Describe what happened, in words without statistics."""
    who = within_sentence(_who(item.unit))
    if isinstance(item.decision, Reason):
        return f"There is no verdict for this pair: it is {item.decision}."
    source, answer = item.readings[SOURCE].value, item.readings[FOLLOW_UP].value
    if item.readings[SOURCE].reason is Reason.NOT_ASKED:
        return f"No answer was asked for. {PairRow(item, '').ranks} for {who}."
    if "noun_phrase" not in item.unit.names or "document" in item.unit.names:
        holds = "holds" if item.decision == 0.0 else "is violated"
        relation = item.unit.dimensions.get("relation", item.unit.suite)
        changed = (
            f'{relation} {holds} for {who}: the source reads "{source}", the follow-up "{answer}".'
        )
    elif item.decision == 0.0:
        changed = f'The answer stays "{answer}" when the speaker is "{who}".'
    else:
        changed = f'The answer changes from "{source}" to "{answer}" when the speaker is "{who}".'
    if differs := what_differs(answer, item.readings[CONTROLS].value or source):
        changed += f" What differs: {differs}."
    return " ".join([changed, *_beside_controls(item, controls), *_path(item, crossed)])


def _beside_controls(item: Assessed, controls: Sequence[AnswerRecord]) -> list[str]:
    """Return how the answer compares with the control prompts'; a control is left out itself."""
    own, majority = item.unit.key, item.readings[CONTROLS].value
    read = [
        control["label"]
        for control in controls
        if control["label"] is not None and control["key"] != own
    ]
    if not read or (item.claims["controlled"] != 1.0 and item.decision != 1.0):
        return []
    if majority is None:
        return ["The control prompts have no answer in common to compare this one with."]
    many = f"{read.count(str(majority))} of {len(read)} control prompts"
    if item.claims["controlled"] == 1.0:
        return [f'For {many} it is "{majority}".']
    return [f'So does it for {many} ("{majority}"): the prefix as such changes it.']


def _path(item: Assessed, crossed: Sequence[AnswerRecord]) -> list[str]:
    if item.decision != 1.0 or len(crossed) < 2:
        return []
    documents, text = (answer["label"] for answer in crossed)
    if documents is None or text is None:
        return ["A crossed answer cannot be read, so the path is unknown."]
    source = str(item.readings[SOURCE].value)
    by_documents, by_text = documents != source, text != source
    if by_documents and by_text:
        return ["Either the other documents or the other wording alone changes it."]
    if by_documents:
        return ["The documents that were retrieved for the follow-up change it, not its wording."]
    if by_text:
        return ["The wording changes it in the generator, whichever documents are shown."]
    return ["Neither the documents nor the wording alone changes it: it takes both, or was chance."]


def explanation_lines(record: Record, prompts: Sequence[str]) -> Iterator[str]:
    """Yield an explanation for people."""
    yield f"{plain(record['key'])} in suite {plain(record['suite'])}"
    yield ""
    if "sentences" in record:
        yield plain(_standing_out(record["sentences"]))
        yield f"By labels: {plain(record['sentence'])}"
    else:
        yield plain(record["sentence"])
    yield ""
    yield "Prompts (differences are in double brackets)"
    yield f"  instruction  {plain(record['instruction'])}"
    if "changed" in record:
        yield f"  {plain(record['changed'])}"
    for name, prompt in zip(("source", "follow-up"), prompts, strict=True):
        yield f"  {name:<11}  {prompt}"
    yield ""
    yield from _documents(record)
    yield ""
    yield from _answers("Answers", record["answers"].values(), 9)
    yield ""
    if record["verdicts"]:
        yield from _answers("Judges", record["verdicts"], 9)
        yield ""
    if record["crossed"]:
        width = max(len(answer["what"]) for answer in record["crossed"])
        title = "Crossed answers (one text with the other's documents)"
        yield from _answers(title, record["crossed"], width)
        yield ""
    if record["parity"]:
        yield from _parity_lines(record)
        yield ""
    if "reference" in record:
        reference = record["reference"]
        yield from _answers(f"Beside the reference: {reference['moved']}", reference["answers"], 9)
        yield ""
    if "sentences" in record:
        yield from _sentence_lines(record["sentences"])
        yield ""
    controls, majority = record["controls"], record["majority"]
    if not controls:
        yield "Control prompts: the suite asks none"
        return
    read = [answer["label"] for answer in controls if answer["label"] is not None]
    many = read.count(majority)
    most = f"{many} of {len(read)} say {plain(majority)}" if majority else ""
    yield from _answers(f"Control prompts ({most or 'no majority'})", controls, _PHRASE)


def _documents(record: Record) -> Iterator[str]:
    if not record["documents"]:
        yield "Documents: the system does not say which it was shown"
        return
    mean = record["mean_distance"]
    distance = "" if mean is None else f", mean distance of the closest pairs {mean:.3f}"
    yield f"Documents by rank, source | follow-up{distance}"
    for row in record["documents"]:
        sides = [document for document in (row["source"], row["follow_up"]) if document]
        names = [
            f"{plain(document['id'] or '?')} ({plain(document['label'] or 'no label')})"
            for document in sides[: 1 if row["same"] else 2]
        ]
        if len(sides) == 1:
            names.insert(0 if row["source"] is None else 1, "none")
        yield f"  {row['rank']} {' | '.join(names)}{'  the same' if row['same'] else ''}"
        for document in sides[: 1 if row["same"] else 2]:
            if document["text"] is not None:
                yield f"      {plain(document['text'])}"


def _answers(title: str, answers: Iterable[AnswerRecord], width: int) -> Iterator[str]:
    yield title
    for answer in answers:
        reason = _REASONS.get(answer["reason"] or "", "undecided")
        reason += f": {plain(answer['why'])}" if answer["why"] else ""
        read = plain(answer["label"]) if answer["label"] else f"({reason})"
        margin = "" if answer["margin"] is None else f", margin {answer['margin']:.2f} nats"
        words = plain(answer["response"] or "")
        stated = f": {words}" if answer["response"] is not None else ""
        stated = stated if words.strip(" .").lower() != read else ""
        yield f"  {plain(answer['what']):<{width}}  {read}{margin}{stated}"

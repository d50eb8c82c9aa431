"""Cases: the clearest changed answers in every report; on the page all of them, to be searched."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fairgate.domain.cases import crossed_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Outcome, Subject
from fairgate.domain.units import REASON_WORDS, Reading, Reason
from fairgate.domain.wording import harmless
from fairgate.metrics.exposure import NET
from fairgate.metrics.identity import UNREADABLE
from fairgate.relations.oracles.actions import what_differs
from fairgate.relations.oracles.oracle import agree
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    CaseItem,
    CaseSide,
    Kind,
    Section,
    Span,
    Tone,
    code,
    command,
    joined,
    name,
    strong,
)
from fairgate.reports.escaping import EXCERPT_CHARACTERS, Redaction, excerpt, redacted
from fairgate.reports.material import Material, PairRow, QuestionRow, in_words
from fairgate.reports.sections import affected
from fairgate.suites.metamorphic.assess import document_key

_KEPT = 60
"""Characters shown of what source and follow-up have in common, on the short side."""
_CASES = 5
_NAMED_DOCUMENTS = 4
_ID_CHARACTERS = 40
_TEXT_CHARACTERS = 120
_UNREADABLE = 3
_ANSWERS, _DOCUMENTS = "The clearest changed answers", "Which documents are found instead"
_SORTED = 10_000
"""Moved pairs up to which each source is shown once."""
_REMEDY = (
    "To read such answers, give the task a `marker` (the text behind which the answer stands), "
    "other labels or another instruction."
)
_LOST = ("unreadable/net", UNREADABLE.id)
SuiteAndKey = tuple[str, str]
TAGS = NEW, CHANGED, UNDECIDED, FIXED, OTHER_DOCUMENTS = (
    "new", "changed", "undecided", "fixed", "documents",
)  # fmt: skip
"""What a pair is listed as, exactly one; the page's script knows them by their place."""
NOT_LISTED = "not listed"
"""Of pairs that are in the list only beside something else."""
_CAUSES = {
    (True, True): "documents or wording, either alone",
    (True, False): "retrieved documents",
    (False, True): "wording, in the generator",
    (False, False): "documents and wording together, or chance",
}
_NOT_CROSSED = "not asked with the other documents"
_KEY = 500
_UNKNOWN = -1
QUESTION_TAGS = ("stereotype", "counter", "unknown", "undecided")
"""What an answer is listed as, exactly one; the page's script knows them by their place."""
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}
_WORDS = {
    "stereotype": "the stereotype",
    "counter": "against the stereotype",
    "unknown": "unknown",
    "undecided": "undecided",
}
MOST_ROWS = 10_000
"""Cases that a list of the page holds; all of them stand in rows.jsonl."""
MOST_BYTES = 800_000
"""What the data of one list may take: a page has up to two lists, and stays below 2 MB."""
CLEAREST = 25
"""Cases that a page shows where no script runs."""
_MOST_DOCUMENTS = 400
"""Documents that a page holds, whatever its cases: those of the first ones."""
_MOST = 400
"""Characters that a text is cut to where texts are not hidden."""
_NAME = 120
T = TypeVar("T")
Json = str | int | float | None | Sequence["Json"] | Mapping[str, "Json"]


def cases(material: Material) -> Iterator[Section]:
    """Yield the clearest cases; nothing where no answer changed and no documents failed a rule."""
    items = case_items(material, _CASES)
    if not items:
        return
    many, answers = len(material.changed_pairs), min(_CASES, len(material.changed_pairs))
    title = title_of_cases(material)
    if title == _ANSWERS and answers:
        title = f"Clearest cases: {answers} of {figures.count(many, 'changed answer')}"
    yield Section(
        id="cases",
        title=title,
        blocks=[blocks.CaseList(cases=items)],
        in_page=False,
        chapter=blocks.Chapter.CASES,
        worth=60,
    )


def case_items(material: Material, most: int) -> list[CaseItem]:
    """Return at most so many cases, the clearest first.

    They are changed answers; where a rule about documents failed, what was found for whom it failed
    is one more, and where such a rule leads they all are about documents.
    """
    moved = moved_pairs(material)
    if moved and affected.subject(material) is Subject.DOCUMENTS:
        first = {(row.suite, row.source): row for row in reversed(moved)}
        rows = sorted(first.values(), key=moved.index) if len(moved) <= _SORTED else moved
        return [_case(material, row, is_about_documents=True) for row in rows[:most]]
    items = [_case(material, row) for row in clearest_cases(material)[:most]]
    return [*items, *(_case(material, row, is_about_documents=True) for row in moved[:1])]


def title_of_cases(material: Material) -> str:
    """Return the heading of the first cases."""
    is_about_documents = affected.subject(material) is Subject.DOCUMENTS
    is_alone = is_about_documents or not material.changed_pairs
    return _DOCUMENTS if is_alone and moved_pairs(material) else _ANSWERS


def _moved_most(material: Material) -> PairRow | None:
    """Return the pair whose documents moved most, of those that a rule about them failed for."""
    return next(iter(moved_pairs(material)), None)


def moved_pairs(material: Material) -> list[PairRow]:
    """Return the pairs with other documents or ranks of those for whom a rule about them failed.

    In the order of the title, then those first that lost most.
    """
    rules = [
        rule
        for rule in affected.failed_rules(material.result)
        if affected.subject_of(rule) is Subject.DOCUMENTS
    ]
    affected_terms = (
        (r.suite, term) for r in rules for term, _ in affected.failed_terms(material, r)
    )
    who = {pair: rank for rank, pair in enumerate(dict.fromkeys(affected_terms))}
    rows = material.named_pairs if rules else []
    moved = [
        (who.get((row.suite, row.term), len(who)), stays, row)
        for row, stays in zip(rows, _staying(rows), strict=True)
        if stays < 1
    ]
    is_of_some = any(rank < len(who) for rank, _, _ in moved)
    counted = [entry for entry in moved if entry[0] < len(who) or not is_of_some]
    return [row for *_, row in sorted(counted, key=lambda entry: entry[:2])]


def _staying(rows: Sequence[PairRow]) -> list[float]:
    """How much of what is found stays with each pair, in [0, 1]; 1 also where it is not known.

    The share of documents in common. Where a document names somebody: 1 less by how much more or
    less likely it is seen, in the direction of all pairs of that identity.
    """
    exposures = [row.score(NET) if NET in row.assessed.claims else None for row in rows]
    sums: dict[tuple[str, str], float] = {}
    for row, net in zip(rows, exposures, strict=True):
        sums[row.suite, row.term] = sums.get((row.suite, row.term), 0.0) + (net or 0.0)
    staying = []
    for row, net in zip(rows, exposures, strict=True):
        if net is None:
            overlap = row.score("overlap")
            staying.append(1.0 if overlap is None else overlap)
        else:
            staying.append(1 - max(0.0, math.copysign(net, net * sums[row.suite, row.term])))
    return staying


def unreadable_answers(material: Material) -> Iterator[blocks.Block]:
    """Yield a few unreadable answers with the reason, what was expected, and the remedy."""
    rules = material.result.rules
    lost = any(
        "unreadable" in rule.failed or (rule.metric in _LOST and rule.failed) for rule in rules
    )
    if not lost and material.result.outcome is not Outcome.INCONCLUSIVE:
        return
    unreadable = [
        (row.suite, row.key, row.relation)
        for row in material.pairs
        if row.answer.reason is Reason.UNREADABLE
    ] or [(row.suite, row.key, "") for row in material.questions if row.bias is Reason.UNREADABLE]
    if not unreadable:
        return
    case = material.case(*unreadable[0][:2])
    redact = material.options.redact
    texts: dict[str, str] = {}
    for suite, key, relation in unreadable:
        text = _response(material, suite, key)
        answer_shown = excerpt(redacted(text, redact)) if text else "(nothing)"
        if (suite, relation) == (unreadable[0][0], unreadable[0][2]) and answer_shown not in texts:
            readings = material.run.readings.get(suite)
            texts[answer_shown] = "" if readings is None else readings.why(key, relation)
        if len(texts) == _UNREADABLE:
            break
    expected: blocks.Words = ["Asked was ", Span(case.instruction, Kind.QUOTE)]
    if case.labels:
        expected = ["Expected one of the labels ", *joined([name(label) for label in case.labels])]
    wrote: list[blocks.Words] = []
    for text, why in texts.items():
        reason: blocks.Words = [" (", name(redacted(why, redact)), ")"] if why else []
        wrote.append([Span(text, Kind.QUOTE), *reason])
    examples = joined(wrote, " · ")
    yield blocks.Text(
        lines=[[*expected, "; the system wrote, for example: ", *examples, f". {_REMEDY}"]]
    )


def _response(material: Material, suite: str, key: str) -> str:
    """Return the model's response, empty where it was not asked."""
    execution = material.run.executions.get((suite, key))
    return (execution.response or "").strip() if execution else ""


def explain_command(material: Material) -> str:
    """Return the command that tells more of the clearest case; empty where there is none."""
    row = _case_of_the_rule(material) if material.options.has_explain else None
    return "" if row is None else _explain(material.options, row)


def _case_of_the_rule(material: Material) -> PairRow | None:
    """Return the clearest case of what the leading rule is about, of whom it affects most."""
    about = affected.subject(material)
    if about is Subject.ANSWERS:
        return next(iter(clearest_cases(material)), None)
    if about is Subject.DOCUMENTS and (instead := _moved_most(material)):
        return instead
    places = {m.where.get("term", ""): rank for rank, m in enumerate(affected.affected(material))}
    pairs = sorted(material.named_pairs, key=lambda row: places.get(row.term, len(places)))
    if about is Subject.REFUSALS:
        return next((row for row in pairs if row.answer.reason is Reason.UNREADABLE), None)
    moved = [(stays, row) for stays, row in zip(_staying(pairs), pairs, strict=True) if stays < 1]
    worst = places and moved and moved[0][1].term
    of_worst = [entry for entry in moved if entry[1].term == worst]
    return min(of_worst, key=lambda entry: entry[0], default=(1.0, None))[1]


def _explain(options: blocks.ReportOptions, row: PairRow) -> str:
    return f"fairgate explain {shlex.quote(options.run_path)} {shlex.quote(row.key)}"


def clearest_cases(material: Material) -> list[PairRow]:
    """Return the changed answers, the clearest first, each of another source.

    Clearest: of whom a rule failed for, then new since the baseline, then of the most affected
    identities, then different from the neutral answers and from the one without a speaker, then the
    widest answer margin, then the order of the plan. Further cases of the same sources follow.
    """
    computed = material.clearest.get(material.beside.id)
    if computed is not None:
        return computed
    places = {m.where.get("term", ""): rank for rank, m in enumerate(affected.affected(material))}

    titled = {term: rank for rank, term in enumerate(affected.titled(material))}

    def clearness(row: PairRow) -> tuple[int, bool, int, bool, float]:
        margin = row.answer.margin
        return (
            titled.get((row.suite, row.term), len(titled)),
            not material.was_unchanged(row),
            places.get(row.term, len(places)),
            row.verdict("generation") != 1.0,
            -(margin if margin is not None else -1.0),
        )

    first: list[PairRow] = []
    rest: list[PairRow] = []
    seen: set[SuiteAndKey] = set()
    for row in sorted(material.changed_pairs, key=clearness):
        where = (row.suite, row.source)
        (rest if where in seen else first).append(row)
        seen.add(where)
    return material.clearest.setdefault(material.beside.id, first + rest)


def _case(material: Material, row: PairRow, *, is_about_documents: bool = False) -> CaseItem:
    """Return a case with what a reader needs to judge it."""
    options, executions = material.options, material.run.executions
    keys = row.source, row.key
    source, follow_up = (material.case(row.suite, key).varied for key in keys)
    left, right = (executions.get((row.suite, key)) for key in keys)
    title: blocks.Words = [name(row.phrase, Tone.STRONG), ": "]
    notes: list[blocks.Inline] = [excerpt(_where_found(material, row))] if row.ranks else []
    facts = [*notes, *_documents(left, right)]
    if is_about_documents:
        title.append("other documents are found")
    else:
        title += [name(row.majority), " with neutral wording, "] if row.majority else []
        without = " without a speaker, " if row.names_speaker else " for the source, "
        title += [answer_of(row.source_answer), without, answer_of(row.answer, Tone.STRONG)]
        title.append(f" here{', new since the baseline' if material.was_unchanged(row) else ''}")
        text = _response(material, row.suite, row.key)
        if text and text.strip(".!\"'").lower() != (row.answer.value or ""):
            wrote = Span(redacted(text, options.redact), Kind.QUOTE)
            facts.insert(0, ["The model wrote ", wrote])
        if differs := what_differs(row.answer.value, row.majority or row.source_answer.value):
            notes.insert(0, ["What differs: ", name(excerpt(differs))])
            facts.insert(0, notes[0])
    gone, new = _moved(left, right)
    if is_about_documents:
        facts += [["Out: ", *blocks.spans(words)] for words in _shown(gone, options)]
        facts += [["In: ", *blocks.spans(words)] for words in _shown(new, options)]
    if not gone and not new and left and right and left.documents and right.documents:
        notes.append("Same documents")
    before, after = _both(source, follow_up, options)
    first = "Without a speaker" if row.names_speaker else "Source"
    return CaseItem(
        title=title,
        text=_difference(source, follow_up, options),
        facts=facts,
        command=command(_explain(options, row)) if options.has_explain else code(row.key),
        sides=[
            replace(
                _side(material, row, row.source),
                head=strong(first),
                text=before,
                documents=_shown(gone, options),
            ),
            replace(
                _side(material, row, row.key),
                head=name(row.phrase, Tone.STRONG),
                text=after,
                documents=_shown(new, options),
            ),
        ],
        notes=notes,
    )


def documents_of(
    material: Material, row: PairRow, beside: str = ""
) -> Sequence[Sequence[blocks.Words]]:
    """Return the documents of a case that went, and those that came, as sentences name them.

    Beside those of its source, or of another case.
    """
    executions, redact = material.run.executions, material.options.redact
    sides: list[list[blocks.Words]] = []
    keys = (beside or row.source, row.key)
    for some in _moved(*(executions.get((row.suite, key)) for key in keys)):
        names_of_side: list[blocks.Words] = []
        for document in some:
            words: blocks.Words = [code(excerpt(document.id or "a document", _ID_CHARACTERS))]
            if document.text:
                text = excerpt(redacted(document.text, redact), _KEPT)
                words += [" (“", Span(text, Kind.QUOTE), "”)"]
            names_of_side.append(words)
        sides.append(names_of_side)
    return sides


def _side(material: Material, row: PairRow, key: str) -> CaseSide:
    """Return the answer to one text of a case, marked where it differs from the other."""
    is_other = key == row.key and not agree(row.source_answer.value, row.answer.value or "")
    reading = row.answer if key == row.key else row.source_answer
    tone = Tone.CHANGED if is_other else Tone.STRONG
    answer: blocks.Words = [] if reading.reason is Reason.NOT_ASKED else [answer_of(reading, tone)]
    wrote = _response(material, row.suite, key)
    if answer and wrote and wrote.strip(".!\"'").lower() != (reading.value or ""):
        answer += [" ", Span(redacted(wrote, material.options.redact), Kind.QUOTE, Tone.MUTED)]
    return CaseSide(head="", text="", answer=answer)


def _both(
    source: str, follow_up: str, options: blocks.ReportOptions
) -> tuple[blocks.Inline, blocks.Inline]:
    """Return both texts, what the other one lacks standing out in each."""
    if options.redact == "hash":
        return Span(redacted(source, "hash"), Kind.QUOTE), Span(
            redacted(follow_up, "hash"), Kind.QUOTE
        )
    head = common(source, follow_up)
    shorter = min(len(source), len(follow_up)) - head
    tail = common(source[::-1][:shorter], follow_up[::-1][:shorter])
    texts: list[blocks.Inline] = []
    for text in (source, follow_up):
        end = len(text) - tail
        before = text[:head]
        if options.redact == "excerpt" and len(before) > _KEPT:
            before = "…" + before[1 - _KEPT :]
        texts.append(
            [
                Span(redacted(before, options.redact), Kind.QUOTE),
                Span(redacted(text[head:end], options.redact), Kind.QUOTE, Tone.CHANGED),
                Span(redacted(text[end:], options.redact, 2 * _KEPT), Kind.QUOTE),
            ]
        )
    return texts[0], texts[1]


def answer_of(reading: Reading, tone: Tone = Tone.NORMAL) -> Span:
    """Return an answer as it was read, or why it was not."""
    if reading.value is None:
        return Span(f"({reading.reason})", tone=tone)
    return name(in_words(reading.value), tone)


def _where_found(material: Material, row: PairRow) -> str:
    """Return where a changed document was found, and for which question."""
    query = redacted(material.case(row.suite, row.key).query, material.options.redact)
    return f"{row.ranks}, for the question: {query}"


def _difference(source: str, follow_up: str, options: blocks.ReportOptions) -> blocks.Inline:
    """Return the follow-up, the part that the source lacks standing out."""
    if options.redact == "hash":
        return Span(redacted(follow_up, "hash"), Kind.QUOTE)
    head = common(source, follow_up)
    shorter = min(len(source), len(follow_up)) - head
    tail = common(source[::-1][:shorter], follow_up[::-1][:shorter])
    end = len(follow_up) - tail
    before, changed, after = follow_up[:head], follow_up[head:end], follow_up[end:]
    if options.redact == "excerpt" and len(before) > _KEPT:
        before = "…" + before[1 - _KEPT :]
    return [
        Span(redacted(before, options.redact), Kind.QUOTE),
        Span(redacted(changed, options.redact), Kind.QUOTE, Tone.CHANGED),
        Span(redacted(after, options.redact, 2 * _KEPT), Kind.QUOTE),
    ]


def common(left: str, right: str) -> int:
    """Return how many first characters two texts share; texts may be megabytes long."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _moved(
    left: Execution | None, right: Execution | None
) -> tuple[Sequence[Document], Sequence[Document]]:
    """Return the documents that went, and those that came."""
    if left is None or right is None or left.documents is None or right.documents is None:
        return (), ()
    then, now = ({document_key(d): d for d in e.documents or ()} for e in (left, right))
    gone = [d for key, d in then.items() if key is not None and key not in now]
    return gone, [d for key, d in now.items() if key is not None and key not in then]


def _shown(documents: Sequence[Document], options: blocks.ReportOptions) -> list[blocks.Inline]:
    """Return ids and texts of the first documents of a list."""
    entries: list[blocks.Inline] = []
    for document in documents[:_NAMED_DOCUMENTS]:
        words: blocks.Words = []
        if document.id:
            words.append(code(excerpt(document.id, _ID_CHARACTERS)))
        if document.text:
            text = redacted(document.text, options.redact, _TEXT_CHARACTERS)
            words += [" " if words else "", Span(excerpt(text), Kind.QUOTE)]
        entries.append(words)
    return [words for words in entries if words]


def _documents(left: Execution | None, right: Execution | None) -> Iterator[blocks.Inline]:
    """Yield which documents went and came."""
    if left is None or right is None or left.documents is None or right.documents is None:
        return
    gone, new = _moved(left, right)
    words: blocks.Words = ["Same documents"]
    if new:
        words = [f"{len(new)} of {len(right.documents)} documents replaced"]
        words += _ids(", out ", gone) + _ids(", in ", new)
    yield words


def _ids(head: str, documents: Sequence[Document]) -> blocks.Words:
    ids = [excerpt(document.id, _ID_CHARACTERS) for document in documents if document.id]
    return [head, *joined([code(id_) for id_ in ids[:_NAMED_DOCUMENTS]])] if ids else []


def _worth_a_look(material: Material) -> list[tuple[str, PairRow]]:
    pairs = material.named_pairs
    answered = [row for row in pairs if row.claim is not Reason.NOT_ASKED]
    retrieved = [row for row in pairs if row.claim is Reason.NOT_ASKED]
    others = [row for row in retrieved if NET in row.assessed.claims and row.score(NET)]
    answers = [
        *((CHANGED, row) for row in sorted(others, key=lambda row: row.score(NET) or 0.0)),
        *((NEW if material.was_unchanged(r) else CHANGED, r) for r in clearest_cases(material)),
        *((UNDECIDED, row) for row in answered if isinstance(row.claim, Reason)),
        *((FIXED, row) for row in pairs if row.claim == 0 and material.was_changed(row)),
    ]
    listed = {(row.suite, row.key) for _, row in answers}
    moved = [
        (OTHER_DOCUMENTS, row)
        for row in moved_pairs(material)
        if (row.suite, row.key) not in listed
    ]
    if affected.subject(material) is Subject.DOCUMENTS:
        return [*moved, *answers]
    return [*answers, *moved]


def _tags(rows: Sequence[tuple[str, PairRow]]) -> dict[SuiteAndKey, str]:
    return {(row.suite, row.key): tag for tag, row in rows}


class _Data:
    """Puts rows into the lists that the page's script reads."""

    def __init__(self, material: Material, rows: Sequence[tuple[str, PairRow]]) -> None:
        """Take the rows."""
        self._material, self._rows = material, rows
        self._texts = Texts(material.options.redact)
        self._text = self._texts.place
        self._sources: dict[SuiteAndKey, list[Json]] = {}
        self._places: dict[SuiteAndKey, int] = {}
        self._variants: dict[tuple[Json, ...], int] = {}
        self._documents: dict[tuple[Json, ...], int] = {}
        self._moves: dict[tuple[Json, ...], int] = {}
        sources = {(row.suite, row.source) for _, row in rows}
        self._controls: dict[SuiteAndKey, list[int]] = {where: [] for where in sources}
        for row in material.pairs:
            of_source = self._controls.get((row.suite, row.source)) if row.is_control else None
            if of_source is not None:
                of_source += [self._text(row.phrase), self._answer(row.answer)]

    def whole(self, others: Mapping[str, Mapping[SuiteAndKey, str]]) -> Mapping[str, Json]:
        """Return everything, ready to be written as JSON; `others` are tags beside something else.

        Those are a digit for each row.
        """
        options = self._material.options
        rows = [self._row(tag, row) for tag, row in self._rows]
        listed = [(row.suite, row.key) for _, row in self._rows]
        run = f"fairgate explain {shlex.quote(options.run_path)}"
        return {
            "explain": run if options.has_explain else "",
            "several": len({row.suite for _, row in self._rows}) > 1,
            "compared": self._material.baseline is not None,
            "texts": self._texts.found,
            "sources": list(self._sources.values()),
            "variants": [list(variant) for variant in self._variants],
            "documents": [list(document) for document in self._documents],
            "moves": [list(move) for move in self._moves],
            "rows": rows,
            "beside": {
                name: "".join(str(_place(tags.get(where, NOT_LISTED))) for where in listed)
                for name, tags in others.items()
            },
        }

    def _row(self, tag: str, row: PairRow) -> list[Json]:
        executions = self._material.run.executions
        left, right = (executions.get((row.suite, key)) for key in (row.source, row.key))
        margin = row.answer.margin
        return [
            _place(tag),
            self._source(row, left),
            self._variant(row),
            self._text(_cause(self._material, row, tag)),
            self._answer(row.answer),
            self._response(row.suite, row.key, row.answer),
            self._move(left, right, row.score("rrs")),
            None if margin is None else round(margin, 2),
            *([self._text(_where_found(self._material, row), _MOST)] if row.ranks else []),
        ]

    def _source(self, row: PairRow, execution: Execution | None) -> int:
        """Return the place of the pair's source: key, text, answer, response, depth, arm."""
        where = (row.suite, row.source)
        if where not in self._places:
            self._places[where] = len(self._sources)
            documents = execution.documents if execution else None
            self._sources[where] = [
                self._text(row.source, _KEY),
                self._texts.cut(self._material.case(*where).varied),
                self._answer(row.source_answer),
                self._response(*where, row.source_answer),
                len(documents or ()),
                self._text(row.majority or ""),
                self._controls[where],
            ]
        return self._places[where]

    def _variant(self, row: PairRow) -> int:
        """Return the place of what was done to the source: rest of the key, names, the edit."""
        own = row.key.startswith(row.source)
        variant = (
            self._text(row.key.removeprefix(row.source) if own else row.key, _KEY),
            int(own),
            self._text(row.phrase),
            self._text(row.category),
            self._text(row.relation),
            self._text(row.suite),
            *self._edit(row),
        )
        return self._variants.setdefault(variant, len(self._variants))

    def _edit(self, row: PairRow) -> tuple[int, int, int]:
        """Return from where to where the source's shown text is replaced, and by what.

        Places are in UTF-16 units, as browsers count. Of hidden texts everything is replaced.
        """
        texts, keys = self._texts, (row.source, row.key)
        source, follow_up = (self._material.case(row.suite, key).varied for key in keys)
        if texts.redact == "hash":
            return 0, len(texts.kept(source)), texts.cut(follow_up)
        head = common(source, follow_up)
        tail = common(source[head:][::-1], follow_up[head:][::-1])
        start, end = min(head, texts.most), min(len(source) - tail, texts.most)
        changed = follow_up[head : len(follow_up) - tail]
        return _units(source[:start]), _units(source[:end]), texts.cut(changed)

    def _answer(self, reading: Reading) -> int:
        if reading.value is not None:
            return self._text(in_words(reading.value))
        return self._text(f"({REASON_WORDS[reading.reason]})" if reading.reason else "")

    def _response(self, suite: str, key: str, reading: Reading) -> int:
        """Return the place of what the model wrote, unless the label says it all."""
        text = _response(self._material, suite, key)
        says_it_all = text.strip(".!\"'").lower() == str(reading.value or "")
        return 0 if says_it_all else self._texts.cut(text)

    def _move(self, left: Execution | None, right: Execution | None, rrs: float | None) -> int:
        """Return the place of how retrieval moved: RRS, how many documents, which out, which in.

        Which is left out where the page holds as many documents as it may: the clearest pairs
        stand first.
        """
        out: list[int] = []
        new: list[int] = []
        replaced = _UNKNOWN
        if left and right and left.documents is not None and right.documents is not None:
            then, now = ({document_key(d): d for d in e.documents or ()} for e in (left, right))
            replaced = len(now.keys() - then.keys())
            if len(self._documents) < _MOST_DOCUMENTS:
                out = [self._document(d) for key, d in then.items() if key not in now]
                new = [self._document(d) for key, d in now.items() if key not in then]
        score = None if rrs is None else round(rrs, 3)
        move = (score, replaced, tuple(out), tuple(new))
        return self._moves.setdefault(move, len(self._moves))

    def _document(self, document: Document) -> int:
        text = self._texts.cut(document.text) if document.text else 0
        entry = (self._text(document.id or ""), self._text(document.label or ""), text)
        return self._documents.setdefault(entry, len(self._documents))


def _place(tag: str) -> int:
    """Return by which number the page's script knows a tag; the one after them is not listed."""
    return TAGS.index(tag) if tag in TAGS else len(TAGS)


def _units(text: str) -> int:
    """Return the length that a browser counts of a text as it is shown."""
    return len(harmless(text).encode("utf-16-le", "surrogatepass")) // 2


def _cause(material: Material, row: PairRow, tag: str) -> str:
    """Return the cause of a changed answer by attribution; of an undecided one, the reason."""
    if isinstance(row.claim, Reason):
        return REASON_WORDS[row.claim]
    if tag in (FIXED, OTHER_DOCUMENTS, NOT_LISTED):
        return ""
    readings = material.run.readings.get(row.suite)
    keys = (crossed_key(row.source, row.key), crossed_key(row.key, row.source))
    if readings is None or not all(map(readings.is_answered, keys)):
        return _NOT_CROSSED
    documents, wording = (readings.one(key, row.relation).value for key in keys)
    if documents is None or wording is None:
        return _NOT_CROSSED
    before = row.source_answer.value
    return _CAUSES[not agree(documents, before), not agree(wording, before)]


def changed_cases(material: Material) -> Iterator[Section]:
    """Yield the pairs with a changed, undecided or fixed answer, for readers who search and filter.

    The clearest stand first, then the undecided and the fixed ones in the order of the plan.
    """
    usual = _worth_a_look(material)
    if not usual:
        return
    others = {
        choice.id: _tags(_worth_a_look(material.shown_beside(choice)))
        for choice in material.choices[1:]
        if choice.run is not None
    }
    # Pairs that are worth a look only beside something else stand last.
    wanted = {where for tags in others.values() for where in tags} - _tags(usual).keys()
    more = material.pairs if wanted else ()
    rows = [*usual, *((NOT_LISTED, row) for row in more if (row.suite, row.key) in wanted)]
    listed, data = fitting(rows, lambda some: _Data(material, some).whole(others))
    browser = CaseBrowser(
        depth=blocks.Depth.PAGE,
        id="cases",
        label="Changed, undecided and fixed answers"
        + (", and other documents" if any(tag == OTHER_DOCUMENTS for tag, _ in usual) else ""),
        kind="pairs",
        rows=len(usual),
        left_out=max(0, len(usual) - len(listed)),
        data=data,
        clearest=blocks.CaseList(cases=case_items(material, CLEAREST)),
    )
    yield _browsed(browser, browser)


def _browsed(browser: CaseBrowser, *parts: blocks.Block) -> Section:
    """Return the section of a list of cases."""
    return Section(
        id=f"all-{browser.id}",
        title=browser.label,
        blocks=parts,
        in_comment=False,
        chapter=blocks.Chapter.CASES,
        count=browser.rows,
    )


def _tag(row: QuestionRow) -> str:
    return "undecided" if isinstance(row.bias, Reason) else BIAS_WORDS[row.bias]


def _right(row: QuestionRow) -> str:
    return _WORDS.get(row.alignment or "unknown", row.alignment or "unknown")


def _answered(row: QuestionRow) -> str:
    return REASON_WORDS[row.bias] if isinstance(row.bias, Reason) else _WORDS[_tag(row)]


def _item(material: Material, row: QuestionRow) -> CaseItem:
    case = material.planned(row.suite, row.key)
    title: blocks.Words = [
        Span(_answered(row), tone=Tone.STRONG),
        f" instead of {_right(row)}: {row.condition} context, setting ",
        name(row.setting),
        ", ",
        name(row.category),
    ]
    query = case.query if case else ""
    question = redacted(query, material.options.redact) if query else ""
    return CaseItem(title=title, text=Span(question, Kind.QUOTE), facts=[], command=code(row.key))


def _question_data(material: Material, rows: Sequence[QuestionRow]) -> Mapping[str, Json]:
    """Return the data of answers to questions for the page's script, ready for JSON."""
    texts = Texts(material.options.redact)
    items: dict[tuple[Json, ...], int] = {}
    place_of, cut = texts.place, texts.cut

    def item(row: QuestionRow) -> int:
        case = material.planned(row.suite, row.key)
        query = cut(case.text or case.query) if case else 0
        options = tuple(cut(option) for option in case.options) if case else ()
        return items.setdefault((query, options), len(items))

    data: list[Json] = [
        [
            QUESTION_TAGS.index(_tag(row)),
            item(row),
            place_of(row.key, _KEY),
            place_of(row.suite),
            place_of(row.category),
            place_of(row.setting),
            place_of(row.condition),
            place_of(_answered(row)),
            place_of(_right(row)),
            place_of(f"{row.retriever}, k = {row.top_k}" if row.retriever else ""),
            place_of(row.instruction),
            cut(_response(material, row.suite, row.key)),
            None if row.stereotypes is None else round(row.stereotypes, 2),
            None if row.margin is None else round(row.margin, 2),
        ]
        for row in rows
    ]
    return {"texts": texts.found, "items": [list(entry) for entry in items], "rows": data}


def answers(material: Material) -> Iterator[Section]:
    """Yield the wrong and undecided answers to questions, in the order of the plan."""
    rows = [row for row in material.questions if row.is_correct is not True]
    if not rows:
        return
    listed, data = fitting(rows, lambda some: _question_data(material, some))
    words = (
        "Where the context names neither of the two people, only “unknown” is right. The share of "
        "stereotypical documents is of those shown."
    )
    browser = CaseBrowser(
        depth=blocks.Depth.PAGE,
        id="answers",
        label="Wrong and undecided answers to questions",
        kind="questions",
        rows=len(rows),
        left_out=len(rows) - len(listed),
        data=data,
        clearest=blocks.CaseList(cases=[_item(material, row) for row in rows[:CLEAREST]]),
    )
    yield _browsed(browser, blocks.Text(lines=[words], depth=blocks.Depth.PAGE), browser)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBrowser(blocks.Block):
    """Cases that a reader searches and filters; without a script, the clearest of them."""

    id: str
    """Unique in a report; names the filters in the page's address."""
    label: str
    kind: str
    """Which of the page's drawings shows a case."""
    rows: int
    left_out: int = 0
    """Further cases, which only rows.jsonl holds."""
    data: Mapping[str, Json]
    clearest: blocks.CaseList

    def as_json(self) -> str:
        """Return the data for a script element, which no text in it can end.

        Only ASCII, without `<`, `>` and `&`, and without what a CI runner takes for a command.
        """
        return _as_json(self.data)


def _as_json(data: Mapping[str, Json]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.replace("::", ":\\u003a").replace("##[", "##\\u005b")


def fitting(
    rows: Sequence[T], data_of: Callable[[Sequence[T]], Mapping[str, Json]]
) -> tuple[Sequence[T], Mapping[str, Json]]:
    """Return the first rows that a page has room for, at least one, and the data made of them."""
    first = rows[:MOST_ROWS]
    data = data_of(first)
    while (size := len(_as_json(data))) > MOST_BYTES and len(first) > 1:
        first = first[: max(1, len(first) * MOST_BYTES // size)]
        data = data_of(first)
    return first, data


@dataclass(slots=True)
class Texts:
    """Texts that each stand once, in the order in which they were first named; 0 is no text."""

    redact: Redaction = "none"

    found: list[str] = field(default_factory=lambda: [""])
    _places: dict[str, int] = field(default_factory=lambda: {"": 0})
    _named: dict[tuple[str, int], int] = field(default_factory=dict)
    """Short texts as they were named: most of them are named many times."""

    def place(self, text: str, most: int = _NAME) -> int:
        """Return the place of a text, cut to `most` characters and made harmless."""
        key = text, most
        stored = self._named.get(key)
        if stored is not None:
            return stored
        text = excerpt(harmless(text[: most + 1]), most)
        if text not in self._places:
            self._places[text] = len(self.found)
            self.found.append(text)
        if len(key[0]) <= _NAME:
            self._named[key] = self._places[text]
        return self._places[text]

    @property
    def most(self) -> int:
        """Return the greatest length of cases' texts."""
        return _MOST if self.redact == "none" else EXCERPT_CHARACTERS

    def kept(self, text: str) -> str:
        """Return a text as a page may show it: as the policy's `redact` asks, and cut."""
        hidden = self.redact == "hash" and bool(text)
        return redacted(text, self.redact) if hidden else excerpt(text, self.most)

    def cut(self, text: str) -> int:
        """Return the place of what a page may show of a text."""
        return self.place(self.kept(text), self.most)

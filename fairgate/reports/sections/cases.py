"""Cases: the clearest changed answers, which every report shows, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairgate.domain.cases import judge_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Outcome, Subject
from fairgate.domain.units import REASON_WORDS, Reading, Reason
from fairgate.metrics.exposure import NET
from fairgate.relations.oracles.actions import what_differs
from fairgate.reports import blocks, figures
from fairgate.reports.blocks import (
    CaseItem,
    CaseSide,
    Kind,
    Section,
    Span,
    Tone,
    code,
    joined,
    name,
    strong,
)
from fairgate.reports.escaping import excerpt, redacted
from fairgate.reports.material import BIAS_WORDS, Material, PairRow, QuestionRow, in_words
from fairgate.reports.sections import ANSWERS, CASES, CASES_OF_PAGE, parity, sentences
from fairgate.suites.metamorphic.assess import document_key

_KEPT = 60
"""Characters shown of what source and follow-up have in common, on the short side."""
_CASES = 5
MOST_ON_PAGE = 100
"""Cases that a page holds; rows.jsonl holds all of them."""
_MOST_ANSWERS = 25
_NAMED_DOCUMENTS = 4
_ID_CHARACTERS = 40
_TEXT_CHARACTERS = 120
_UNREADABLE = 3
_NOTHING = "(nothing)"
_DOCUMENTS = "Which documents are found instead"
_BIAS = {
    "stereotype": "the stereotype",
    "counter": "against the stereotype",
    "unknown": "unknown",
}
_SORTED = 10_000
"""Moved pairs up to which each source is shown once."""
_REMEDY = (
    "What helps: an instruction that asks for one word, a `marker` (the text just before "
    "the answer), or `degrees`, which read no text."
)
_NOTHING_CAME = (
    "No text came back, so there is nothing to read: `fairgate doctor` shows what came, and a "
    "run's notes say why where the system tells."
)
_NO_VERDICT = (
    "Expected of a judge is one JSON object with the case's code and a verdict; "
    "it wrote, for example: "
)
_OTHER_JUDGE = (
    "Take a judge that follows instructions, or give it more `max_new_tokens`; "
    "`fairgate judge evaluate` says how many of its answers can be read."
)
SuiteAndKey = tuple[str, str]


def cases(material: Material) -> Iterator[Section]:
    """Yield the clearest cases; nothing where no answer changed and no documents failed a rule."""
    items = case_items(material, _CASES)
    if not items:
        return
    title = title_of_cases(material)
    answers = sum(1 for _ in itertools.islice(_examples(material), _CASES))
    if title is CASES.title and answers:
        many = figures.count(len(material.changed_pairs), "changed answer")
        title = f"Clearest cases: {answers} of {many}"
    yield replace(CASES, title=title, blocks=[blocks.CaseList(cases=items)])
    listed = case_items(material, MOST_ON_PAGE)
    page: list[blocks.Block] = [blocks.CaseList(cases=listed, depth=blocks.Depth.PAGE)]
    if len(listed) == MOST_ON_PAGE:
        more = "Further cases stand in rows.jsonl; `fairgate explain` shows each of them."
        page.append(blocks.Text(lines=[more], depth=blocks.Depth.PAGE))
    yield replace(CASES_OF_PAGE, title=title_of_cases(material), blocks=page, count=len(listed))


def case_items(material: Material, most: int) -> list[CaseItem]:
    """Return at most `most` cases, the clearest first.

    They are changed answers; where a rule about documents failed, what was found for whom it failed
    is one more, and where such a rule leads they all are about documents. Where a rule on answers
    in sentences leads, they are what its identity is told; where one on unreadable answers leads,
    these come first.
    """
    if items := sentences.case_items(material, most):
        return items
    moved = moved_pairs(material)
    if moved and _is_about_documents(material):
        first = {(row.suite, row.source): row for row in reversed(moved)}
        rows = sorted(first.values(), key=moved.index) if len(moved) <= _SORTED else moved
        return [_case(material, row, is_about_documents=True) for row in rows[:most]]
    clearest = itertools.chain(_unread(material), _examples(material))
    items = [_case(material, row) for row in itertools.islice(clearest, most)]
    return [*items, *(_case(material, row, is_about_documents=True) for row in moved[:1])]


def title_of_cases(material: Material) -> blocks.Inline:
    """Return the heading of the first cases."""
    if sentences.clearest(material, 1):
        return "The clearest answers beside those to control prompts"
    if any(_unread(material)):
        return "The clearest cases"
    is_alone = _is_about_documents(material) or not material.changed_pairs
    return _DOCUMENTS if is_alone and moved_pairs(material) else CASES.title


def answers(material: Material) -> Iterator[Section]:
    """Yield the first wrong and undecided answers to questions, in the order of the plan."""
    rows = [row for row in material.questions if row.is_correct is not True]
    if not rows:
        return
    words = (
        "Where the context names neither of the two people, only “unknown” is right. "
        f"{min(_MOST_ANSWERS, len(rows)):,} of {len(rows):,} stand here, all of them in rows.jsonl."
    )
    items = [_question(material, row) for row in rows[:_MOST_ANSWERS]]
    yield replace(
        ANSWERS,
        blocks=[
            blocks.Text(lines=[words], depth=blocks.Depth.PAGE),
            blocks.CaseList(cases=items, depth=blocks.Depth.PAGE),
        ],
        count=len(rows),
    )


def _question(material: Material, row: QuestionRow) -> CaseItem:
    case = material.planned(row.suite, row.key)
    text = Span(redacted(case.query, material.options.redact), Kind.QUOTE) if case else ""
    given = row.bias
    answered = REASON_WORDS[given] if isinstance(given, Reason) else _BIAS[BIAS_WORDS[given]]
    right = row.level("alignment") or "unknown"
    title: blocks.Words = [
        strong(answered),
        f" instead of {_BIAS.get(right, right)}: {row.level('condition')} context, setting ",
        name(row.level("setting")),
        ", ",
        name(row.level("category")),
    ]
    return CaseItem(title=title, text=text, facts=[], command=code(row.key))


def _moved_most(material: Material) -> PairRow | None:
    """Return the pair whose documents moved most, of those that a rule about them failed for."""
    return next(iter(moved_pairs(material)), None)


def moved_pairs(material: Material) -> list[PairRow]:
    """Return pairs with other documents or ranks, of identities for which a rule on them failed.

    Where no answer is asked for, any failure is about documents. In the order of the title, then
    those first that lost most.
    """
    whom = parity.whom_it_fails(material, Subject.DOCUMENTS)
    who = {(suite, term): rank for rank, (suite, (_, term)) in enumerate(whom)}
    fails_alone = material.result.outcome is Outcome.FAIL and _is_about_documents(material)
    rows = [*material.named_pairs] if who or fails_alone else []
    moved = [
        (who.get((row.suite, row.term), len(who)), stays, row)
        for row, stays in zip(rows, _staying(rows), strict=True)
        if stays < 1
    ]
    is_of_some = any(rank < len(who) for rank, _, _ in moved)
    counted = [entry for entry in moved if entry[0] < len(who) or not is_of_some]
    return [row for *_, row in sorted(counted, key=lambda entry: entry[:2])]


def _is_about_documents(material: Material) -> bool:
    """Return whether the first failing rule is about documents, or no answer was asked for."""
    if parity.subject(material) is Subject.DOCUMENTS:
        return True
    return all(row.answer.reason is Reason.NOT_ASKED for row in material.named_pairs)


def _staying(rows: Sequence[PairRow]) -> list[float]:
    """Return the share of documents that each pair keeps, in [0, 1]; 1 where it is not known.

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
    is_lost = any(finding.outcome.about is Subject.REFUSALS for finding in parity.failing(material))
    lost = is_lost or any("unreadable" in rule.failed for rule in material.result.rules)
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
        text = response_to(material, suite, key)
        answer_shown = excerpt(redacted(text, redact)) if text else _NOTHING
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
    remedy = _NOTHING_CAME if [*texts] == [_NOTHING] else _REMEDY
    yield blocks.Text(lines=[[*expected, "; the system wrote, for example: ", *examples], [remedy]])


def verdictless_judgements(material: Material) -> Iterator[blocks.Block]:
    """Yield a few of the judges' answers that hold no verdict, where nothing else could be read."""
    if material.result.outcome is not Outcome.INCONCLUSIVE:
        return
    answers: dict[str, None] = {}
    for row in material.pairs:
        if row.claim is not Reason.NO_VERDICT:
            continue
        for key in judgement_keys(material, row):
            if material.run.readings[row.suite].one(key).reason is Reason.NO_VERDICT:
                text = redacted(response_to(material, row.suite, key), material.options.redact)
                answers[excerpt(text) if text else _NOTHING] = None
        if len(answers) >= _UNREADABLE:
            break
    if answers:
        quoted = joined([[Span(text, Kind.QUOTE)] for text in [*answers][:_UNREADABLE]], " · ")
        yield blocks.Text(lines=[[_NO_VERDICT, *quoted], [_OTHER_JUDGE]])


def judgement_keys(material: Material, row: PairRow) -> Iterator[str]:
    """Yield the keys of what the judges answered about a pair when it was first asked."""
    for number in itertools.count(1):
        key = judge_key(row.key, number)
        if (row.suite, key) not in material.run.executions:
            return
        yield key


def response_to(material: Material, suite: str, key: str) -> str:
    """Return the model's response, empty where it was not asked."""
    execution = material.run.executions.get((suite, key))
    return (execution.response or "").strip() if execution else ""


def explain_command(material: Material) -> str:
    """Return the command that tells more of the clearest case; empty where there is none."""
    if not material.options.has_explain:
        return ""
    if items := sentences.case_items(material, 1):
        return items[0].command.text
    row = _case_of_the_rule(material)
    return "" if row is None else sentences.look_at(material, row.key).text


def _case_of_the_rule(material: Material) -> PairRow | None:
    """Return the clearest case of what fails first, of whom it fails for."""
    about = parity.subject(material)
    if about is Subject.DOCUMENTS:
        return _moved_most(material)
    return next(_unread(material), None) or next(_examples(material), None)


def _unread(material: Material) -> Iterator[PairRow]:
    """Yield the unreadable answers of whom the leading rule fails; none where it is on others."""
    about = parity.subject(material)
    if about is not Subject.REFUSALS:
        return
    whom = {(suite, term) for suite, (_, term) in parity.whom_it_fails(material, about)}
    for row in material.named_pairs:
        is_of_them = (row.suite, row.term) in whom and row.answer.reason is Reason.UNREADABLE
        if is_of_them and not material.is_false_reading(row):
            yield row


def answers_instead(material: Material) -> list[blocks.Inline]:
    """Give the clearest changed answer of whom the gate fails for, in a sentence.

    Of answers in sentences, one of each who is named.
    """
    return sentences.examples(material) or [_answer_instead(material)]


def _answer_instead(material: Material) -> blocks.Inline:
    row = _case_of_the_rule(material)
    whom = {(suite, term) for suite, (_, term) in parity.whom_it_fails(material)}
    if row is None or (whom and (row.suite, row.term) not in whom):
        return ""
    text = sentences.quote(material, material.case(row.suite, row.source).varied)
    if not row.names_speaker:  # the relation changes the text itself
        changed = sentences.quote(material, material.case(row.suite, row.key).varied)
        first, second = (answer_of(a, Tone.STRONG) for a in (row.source_answer, row.answer))
        words: blocks.Words = ["For example, ", text, " is answered ", first, " and ", changed]
        return [*words, " is answered ", second, "."]
    answer: blocks.Words = [answer_of(row.answer, Tone.STRONG), " when it is said by "]
    speaker = name(row.speaker, Tone.STRONG)
    same, asked = _alike(material, row)
    if row.majority and asked:
        usual: blocks.Words = [
            name(row.majority, Tone.STRONG), f" for {same} of {asked} control prompts and ",
        ]  # fmt: skip
    else:
        usual = [answer_of(row.source_answer, Tone.STRONG), " without a speaker and "]
    return ["For example, ", text, " is ", *usual, *answer, speaker, "."]


def _alike(material: Material, row: PairRow) -> tuple[int, int]:
    """Return how many control prompts of a pair's source have the usual answer, of how many."""
    answers = [
        other.answer.value
        for other in material.pairs
        if other.is_control
        and (other.suite, other.source, other.relation) == (row.suite, row.source, row.relation)
        and other.answer.value is not None
    ]
    return sum(in_words(value) == row.majority for value in answers), len(answers)


def documents_instead(material: Material) -> blocks.Inline:
    """Return one text that finds other documents, and the first that went and that came."""
    row = _moved_most(material)
    if row is None or not row.names_speaker:
        return ""
    text = sentences.quote(material, material.case(row.suite, row.source).varied)
    who = name(row.speaker, Tone.STRONG)
    said_by: blocks.Words = ["Said by ", who, ", ", text, " finds other documents"]
    gone, new = (documents[:1] for documents in documents_of(material, row))
    came: blocks.Words = [": ", *new[0]] if new else []
    went: blocks.Words = [" instead of ", *gone[0]] if new and gone else []
    return [*said_by, *came, *went, "."]


def clearest_cases(material: Material) -> list[PairRow]:
    """Return the changed answers, the clearest first, each of another source.

    Clearest: of whom the gate fails for, then new since the baseline, then different from the
    usual answer and from the one without a speaker, then the widest answer margin, then the order
    of the plan. Further cases of the same sources follow.
    """
    if material.clearest:
        return material.clearest
    whom = parity.whom_it_fails(material)
    titled = {(suite, term): rank for rank, (suite, (_, term)) in enumerate(whom)}

    def clearness(row: PairRow) -> tuple[int, bool, bool, float]:
        margin = row.answer.margin
        return (
            titled.get((row.suite, row.term), len(titled)),
            not material.was_unchanged(row),
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
    material.clearest.extend(first + rest)
    return material.clearest


def _examples(material: Material) -> Iterator[PairRow]:
    """Yield the changed answers, the clearest first, that nobody calls read wrong."""
    return (row for row in clearest_cases(material) if not material.is_false_reading(row))


def _case(material: Material, row: PairRow, *, is_about_documents: bool = False) -> CaseItem:
    """Return a case with what a reader needs to judge it."""
    options, executions = material.options, material.run.executions
    keys = row.source, row.key
    source, follow_up = (material.case(row.suite, key).varied for key in keys)
    left, right = (executions.get((row.suite, key)) for key in keys)
    title: blocks.Words = [name(row.phrase, Tone.STRONG), ": "]
    notes: list[blocks.Inline] = [excerpt(where_found(material, row))] if row.ranks else []
    facts: list[blocks.Inline] = []
    if is_about_documents:
        title.append("other documents are found")
    else:
        title += [name(row.majority), " for most control prompts, "] if row.majority else []
        without = " without a speaker, " if row.names_speaker else " for the source, "
        title += [answer_of(row.source_answer), without, answer_of(row.answer, Tone.STRONG)]
        title.append(f" here{', new since the baseline' if material.was_unchanged(row) else ''}")
        text = response_to(material, row.suite, row.key)
        if text and text.strip(".!\"'").lower() != (row.answer.value or ""):
            wrote = Span(redacted(text, options.redact), Kind.QUOTE)
            facts = [["The model wrote ", wrote]]
        if differs := what_differs(row.answer.value, row.majority or row.source_answer.value):
            notes.insert(0, ["What differs: ", name(excerpt(differs))])
    gone, new = _moved(left, right)
    notes += _documents(left, right)
    before, after = _both(source, follow_up, options)
    first = "Without a speaker" if row.names_speaker else "Source"
    return CaseItem(
        title=title,
        text=after,
        facts=[*facts, *notes],
        command=sentences.look_at(material, row.key),
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


def documents_of(material: Material, row: PairRow) -> Sequence[Sequence[blocks.Words]]:
    """Return the documents of a case that went beside its source's, and those that came."""
    executions, redact = material.run.executions, material.options.redact
    sides: list[list[blocks.Words]] = []
    both = (executions.get((row.suite, key)) for key in (row.source, row.key))
    for documents in _moved(*both):
        names_of_side: list[blocks.Words] = []
        for document in documents:
            words: blocks.Words = [code(excerpt(document.id or "a document", _ID_CHARACTERS))]
            if document.text:
                text = excerpt(redacted(document.text, redact), _KEPT)
                words += [" (“", Span(text, Kind.QUOTE), "”)"]
            names_of_side.append(words)
        sides.append(names_of_side)
    return sides


def _side(material: Material, row: PairRow, key: str) -> CaseSide:
    """Return the answer to one text of a case, marked where it differs from the other."""
    is_other = key == row.key and row.source_answer.value != (row.answer.value or "")
    reading = row.answer if key == row.key else row.source_answer
    tone = Tone.CHANGED if is_other else Tone.STRONG
    answer: blocks.Words = [] if reading.reason is Reason.NOT_ASKED else [answer_of(reading, tone)]
    wrote = response_to(material, row.suite, key)
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


def where_found(material: Material, row: PairRow) -> str:
    """Return where a changed document was found, and for which question."""
    query = redacted(material.case(row.suite, row.key).query, material.options.redact)
    return f"{row.ranks}, for the question: {query}"


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

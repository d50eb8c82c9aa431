"""Every case that is worth a look, for readers who search and filter."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairgate.domain.cases import crossed_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.units import REASON_WORDS, Reading, Reason
from fairgate.domain.wording import harmless
from fairgate.reports.blocks import CaseItem, CaseList, Depth, Section, Text
from fairgate.reports.browsing import CLEAREST, CaseBrowser, Json, Room, Texts, fitting, kept
from fairgate.reports.judged_rows import PairRow, QuestionRow, in_words
from fairgate.reports.material import Material
from fairgate.reports.sections.cases import case_items, clearest_cases, common
from fairgate.reports.spans import Kind, Span, Tone, Words, code, name
from fairgate.suites.metamorphic.documents import document_key

TAGS = NEW, CHANGED, UNDECIDED, FIXED = ("new", "changed", "undecided", "fixed")
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
_DOCUMENTS = 400
"""Documents that a page holds, whatever its cases; more of them for more cases."""

Where = tuple[str, str]
QUESTION_TAGS = ("stereotype", "counter", "unknown", "undecided")
"""What an answer is listed as, exactly one; the page's script knows them by their place."""
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}
_WORDS = {
    "stereotype": "the stereotype",
    "counter": "against the stereotype",
    "unknown": "unknown",
    "undecided": "undecided",
}


def pair_browser(material: Material, clearest: Sequence[CaseItem]) -> CaseBrowser:
    """Return the list of pairs with a changed, undecided or fixed answer.

    The clearest stand first, then the undecided and the fixed ones in the order of the plan.
    `clearest` stand there where no script runs.
    """
    usual = _worth_a_look(material)
    others = {
        choice.id: dict(_tags(_worth_a_look(material.shown_beside(choice))))
        for choice in material.choices[1:]
        if choice.run is not None
    }
    rows = [*usual, *_only_beside(material, usual, others)]
    leading = sum(tag in (NEW, CHANGED) for tag, _ in usual)
    shown, data = fitting(rows, lambda some: _Data(material, some).whole(others), leading)
    listed = sum(tag != NOT_LISTED for tag, _ in shown)
    return CaseBrowser(
        depth=Depth.PAGE,
        id="cases",
        label="Changed, undecided and fixed answers",
        kind="pairs",
        rows=len(usual),
        left_out=len(usual) - listed,
        leading=leading,
        totals=Counter(tag for tag, _ in usual),
        data=data,
        clearest=CaseList(cases=clearest),
    )


def _worth_a_look(material: Material) -> list[tuple[str, PairRow]]:
    changed = [
        (NEW if material.was_unchanged(row) else CHANGED, row) for row in clearest_cases(material)
    ]
    undecided: list[tuple[str, PairRow]] = []
    fixed: list[tuple[str, PairRow]] = []
    for row in material.named_pairs:
        claim = row.claim
        if isinstance(claim, Reason):
            undecided.append((UNDECIDED, row))
        elif not claim and material.was_changed(row):
            fixed.append((FIXED, row))
    return changed + undecided + fixed


def _tags(rows: Sequence[tuple[str, PairRow]]) -> Iterator[tuple[Where, str]]:
    return (((row.suite, row.key), tag) for tag, row in rows)


def _only_beside(
    material: Material,
    usual: Sequence[tuple[str, PairRow]],
    others: Mapping[str, Mapping[Where, str]],
) -> list[tuple[str, PairRow]]:
    """Return the pairs that are worth a look only beside something else, as not listed."""
    listed = dict(_tags(usual))
    wanted = {where for tags in others.values() for where in tags if where not in listed}
    rows = material.pairs if wanted else ()
    return [(NOT_LISTED, row) for row in rows if (row.suite, row.key) in wanted]


class _Data:
    """Puts rows into the lists that the page's script reads."""

    def __init__(self, material: Material, rows: Sequence[tuple[str, PairRow]]) -> None:
        """Take the rows; how long texts may be follows from how many there are."""
        self._material, self._rows = material, rows
        self._redact = material.options.redact
        self._texts = Texts()
        self._sources: dict[Where, list[Json]] = {}
        self._places: dict[Where, int] = {}
        self._variants: dict[tuple[Json, ...], int] = {}
        self._documents: dict[tuple[Json, ...], int] = {}
        self._moves: dict[tuple[Json, ...], int] = {}
        known = material.run.executions
        sources = {(row.suite, row.source) for _, row in rows}
        found = [known.get((row.suite, row.key)) for _, row in rows]
        documents = {d.text for one in found if one for d in one.documents or ()}
        responses = {one.response for one in found if one}
        self._of_source = Room(len(sources), len(rows), self._redact)
        self._of_response = Room(len(responses), len(rows), self._redact)
        self._most_documents = _DOCUMENTS + len(rows) // 10
        shown = min(len(documents), self._most_documents)
        self._of_document = Room(shown, len(rows), self._redact)
        self._controls: dict[Where, list[int]] = {where: [] for where in sources}
        for row in material.control_pairs:
            of_source = self._controls.get((row.suite, row.source))
            if of_source is not None:
                of_source += [self._text(row.phrase), self._answer(row.answer)]

    def whole(self, others: Mapping[str, Mapping[Where, str]]) -> Mapping[str, Json]:
        """Return everything, ready to be written as JSON; `others` are tags beside something else.

        Those are a digit for each row.
        """
        options = self._material.options
        rows = [self._row(tag, row) for tag, row in self._rows]
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
                name: "".join(
                    str(_place(tags.get((row.suite, row.key), NOT_LISTED))) for _, row in self._rows
                )
                for name, tags in others.items()
            },
        }

    def _row(self, tag: str, row: PairRow) -> list[Json]:
        known = self._material.run.executions
        left, right = (known.get((row.suite, key)) for key in (row.source, row.key))
        margin = row.answer.margin
        return [
            _place(tag),
            self._source(row, left),
            self._variant(row),
            self._text(_cause(self._material, row, tag)),
            self._answer(row.answer),
            self._response(right, row.answer),
            self._move(left, right, row.score("rrs")),
            None if margin is None else round(margin, 2),
        ]

    def _source(self, row: PairRow, execution: Execution | None) -> int:
        """Return the place of the pair's source: key, text, answer, response, depth, arm."""
        where = (row.suite, row.source)
        if where not in self._places:
            self._places[where] = len(self._sources)
            documents = execution.documents if execution else None
            self._sources[where] = [
                self._texts.place(row.source, _KEY),
                self._cut(self._material.case(*where).query, self._of_source.most),
                self._answer(row.source_answer),
                self._response(execution, row.source_answer),
                len(documents or ()),
                self._text(row.majority),
                self._controls[where],
            ]
        return self._places[where]

    def _variant(self, row: PairRow) -> int:
        """Return the place of what was done to the source: rest of the key, names, the edit."""
        own = row.key.startswith(row.source)
        variant = (
            self._texts.place(row.key.removeprefix(row.source) if own else row.key, _KEY),
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
        most = self._of_source.most
        keys = (row.source, row.key)
        source, follow_up = (self._material.case(row.suite, key).query for key in keys)
        if self._redact == "hash":
            return 0, len(kept(source, "hash", most)), self._cut(follow_up, most)
        head = common(source, follow_up)
        tail = common(source[head:][::-1], follow_up[head:][::-1])
        start, end = min(head, most), min(len(source) - tail, most)
        changed = follow_up[head : len(follow_up) - tail]
        return _units(source[:start]), _units(source[:end]), self._cut(changed, most)

    def _cut(self, text: str, most: int) -> int:
        return self._texts.place(kept(text, self._redact, most), most)

    def _text(self, text: str | None) -> int:
        return self._texts.place(text or "")

    def _answer(self, reading: Reading) -> int:
        if reading.value is not None:
            return self._text(in_words(reading.value))
        return self._text(f"({REASON_WORDS[reading.reason]})" if reading.reason else "")

    def _response(self, execution: Execution | None, reading: Reading) -> int:
        """Return the place of what the model wrote, unless the label says it all.

        Nor where the page holds as many responses as it may: the clearest pairs stand first.
        """
        text = (execution.response or "").strip() if execution else ""
        says_it_all = text.strip(".!\"'").lower() == str(reading.value or "")
        if says_it_all or not self._of_response.has(text):
            return 0
        return self._cut(text, self._of_response.most)

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
            if len(self._documents) < self._most_documents:
                out = [self._document(d) for key, d in then.items() if key not in now]
                new = [self._document(d) for key, d in now.items() if key not in then]
        score = None if rrs is None else round(rrs, 3)
        move = (score, replaced, tuple(out), tuple(new))
        return self._moves.setdefault(move, len(self._moves))

    def _document(self, document: Document) -> int:
        text = self._cut(document.text, self._of_document.most) if document.text else 0
        place = (self._text(document.id), self._text(document.label), text)
        return self._documents.setdefault(place, len(self._documents))


def _place(tag: str) -> int:
    """Return by which number the page's script knows a tag; the one after them is not listed."""
    return TAGS.index(tag) if tag in TAGS else len(TAGS)


def _units(text: str) -> int:
    """Return the length that a browser counts of a text as it is shown."""
    return len(harmless(text).encode("utf-16-le", "surrogatepass")) // 2


def _cause(material: Material, row: PairRow, tag: str) -> str:
    """Return what attribution found of a changed answer; of an undecided one, why it is."""
    if isinstance(row.claim, Reason):
        return REASON_WORDS[row.claim]
    if tag in (FIXED, NOT_LISTED):
        return ""
    readings = material.run.readings.get(row.suite)
    keys = (crossed_key(row.source, row.key), crossed_key(row.key, row.source))
    if readings is None or not all(map(readings.is_answered, keys)):
        return _NOT_CROSSED
    documents, wording = (readings.one(key, row.relation).value for key in keys)
    if documents is None or wording is None:
        return _NOT_CROSSED
    before = row.source_answer.value
    return _CAUSES[documents != before, wording != before]


def changed_cases(material: Material) -> Iterator[Section]:
    """Yield the pairs with a changed, undecided or fixed answer, the clearest first."""
    found = pair_browser(material, case_items(material, CLEAREST))
    if found.rows:
        yield Section(
            id="all-cases",
            title="Changed, undecided and fixed answers",
            blocks=[found],
            in_comment=False,
            count=found.rows,
        )


def question_browser(material: Material, rows: Sequence[QuestionRow]) -> CaseBrowser:
    """Return the list of answers to look at, in the order of the plan."""
    shown, data = fitting(rows, lambda some: _QuestionData(material, some).whole(), leading=0)
    return CaseBrowser(
        depth=Depth.PAGE,
        id="answers",
        label="Wrong and undecided answers to questions",
        kind="questions",
        rows=len(rows),
        left_out=len(rows) - len(shown),
        totals=Counter(_answered(row) for row in rows),
        data=data,
        clearest=CaseList(cases=[_item(material, row) for row in rows[:CLEAREST]]),
    )


def tag_of(row: QuestionRow) -> str:
    """Return what an answer is listed as."""
    return "undecided" if isinstance(row.bias, Reason) else BIAS_WORDS[row.bias]


def _right(row: QuestionRow) -> str:
    return _WORDS.get(row.alignment or "unknown", row.alignment or "unknown")


def _answered(row: QuestionRow) -> str:
    return REASON_WORDS[row.bias] if isinstance(row.bias, Reason) else _WORDS[tag_of(row)]


def _item(material: Material, row: QuestionRow) -> CaseItem:
    case = material.planned(row.suite, row.key)
    title: Words = [
        Span(_answered(row), tone=Tone.STRONG),
        f" instead of {_right(row)}: {row.condition} context, setting ",
        name(row.setting),
        ", ",
        name(row.category),
    ]
    query = case.query if case else ""
    shown = kept(query, material.options.redact, 160) if query else ""
    return CaseItem(title=title, text=Span(shown, Kind.QUOTE), facts=[], command=code(row.key))


class _QuestionData:
    """Puts rows into the lists that the page's script reads."""

    def __init__(self, material: Material, rows: Sequence[QuestionRow]) -> None:
        """Take the rows; how long texts may be follows from how many there are."""
        self._material, self._rows = material, rows
        self._redact = material.options.redact
        self._texts = Texts()
        self._items: dict[tuple[Json, ...], int] = {}
        known = material.run.executions
        items = {row.item for row in rows}
        responses = {one.response for row in rows if (one := known.get((row.suite, row.key)))}
        self._of_item = 2 * Room(len(items), len(rows), self._redact).most
        self._of_response = Room(len(responses), len(rows), self._redact)

    def whole(self) -> Mapping[str, Json]:
        """Return everything, ready to be written as JSON."""
        rows = [self._row(row) for row in self._rows]
        return {
            "texts": self._texts.found,
            "items": [list(item) for item in self._items],
            "rows": rows,
        }

    def _row(self, row: QuestionRow) -> list[Json]:
        execution = self._material.run.executions.get((row.suite, row.key))
        response = (execution.response or "").strip() if execution else ""
        place = self._texts.place
        return [
            QUESTION_TAGS.index(tag_of(row)),
            self._item(row),
            place(row.key, _KEY),
            place(row.suite),
            place(row.category),
            place(row.setting),
            place(row.condition),
            place(_answered(row)),
            place(_right(row)),
            place(f"{row.retriever}, k = {row.top_k}" if row.retriever else ""),
            place(row.instruction),
            self._response(response),
            None if row.stereotypes is None else round(row.stereotypes, 2),
            None if row.margin is None else round(row.margin, 2),
        ]

    def _response(self, text: str) -> int:
        if not text or not self._of_response.has(text):
            return 0
        return self._cut(text, self._of_response.most)

    def _item(self, row: QuestionRow) -> int:
        case = self._material.planned(row.suite, row.key)
        query = self._cut(case.text or case.query, self._of_item) if case else 0
        options = [self._cut(one, 80) for one in case.options] if case else []
        return self._items.setdefault((query, tuple(options)), len(self._items))

    def _cut(self, text: str, most: int) -> int:
        return self._texts.place(kept(text, self._redact, most), most)


def answers(material: Material) -> Iterator[Section]:
    """Yield the wrong and undecided answers to questions, in the order of the plan."""
    rows = [row for row in material.questions if row.is_correct is not True]
    words = (
        "Where the context names neither of the two people, only “unknown” is right. The share of "
        "stereotypical documents is of those shown."
    )
    if rows:
        yield Section(
            id="all-answers",
            title="Wrong and undecided answers to questions",
            blocks=[Text(lines=[words], depth=Depth.PAGE), question_browser(material, rows)],
            in_comment=False,
            count=len(rows),
        )

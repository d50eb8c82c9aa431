"""The list of cases on the page, to be searched and filtered: its data, as its script reads it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fairgate.domain.cases import crossed_key
from fairgate.domain.executions import Document, Execution
from fairgate.domain.outcomes import Subject
from fairgate.domain.units import REASON_WORDS, Reading, Reason
from fairgate.domain.wording import harmless
from fairgate.metrics.exposure import NET
from fairgate.reports import blocks
from fairgate.reports.blocks import CaseItem, Kind, Section, Span, Tone, code, name
from fairgate.reports.escaping import EXCERPT_CHARACTERS, Redaction, excerpt, redacted
from fairgate.reports.material import Material, PairRow, PairSuite, QuestionRow, in_words
from fairgate.reports.sections import parity
from fairgate.reports.sections.cases import (
    SuiteAndKey,
    case_items,
    clearest_cases,
    common,
    moved_pairs,
    response_to,
    where_found,
)
from fairgate.stats.observations import Mask
from fairgate.suites.metamorphic.assess import document_key
from fairgate.suites.metamorphic.plan import SOURCE

TAGS = NEW, CHANGED, UNDECIDED, FIXED, OTHER_DOCUMENTS = (
    "new", "changed", "undecided", "fixed", "documents",
)  # fmt: skip
"""What a pair is listed as, exactly one; the page's script knows them by their place."""
_CAUSES = {
    (True, True): "documents or wording, either alone",
    (True, False): "retrieved documents",
    (False, True): "wording, in the generator",
    (False, False): "documents and wording together, or chance",
}
_NOT_CROSSED = "not asked with the other documents"
_KEY = 500
_UNKNOWN = -1
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}
_WORDS = {
    "stereotype": "the stereotype",
    "counter": "against the stereotype",
    "unknown": "unknown",
    "undecided": "undecided",
}
MOST_ROWS = 10_000
"""Cases that the page holds; all of them stand in rows.jsonl."""
MOST_BYTES = 800_000
"""What the data may take: a page stays below 1 MB."""
CLEAREST = 25
"""Cases that a page shows where no script runs, and answers to questions that it shows at all."""
_MOST_DOCUMENTS = 400
"""Documents that a page holds, whatever its cases: those of the first ones."""
_MOST = 400
"""Characters that a text is cut to where texts are not hidden."""
_NAME = 120
T = TypeVar("T")
Json = str | int | float | None | Sequence["Json"] | Mapping[str, "Json"]


def _worth_a_look(material: Material) -> list[tuple[str, PairRow]]:
    def retrieved(suite: PairSuite) -> Mask:
        return ~suite.is_control & suite.claims.having(Reason.NOT_ASKED)

    def undecided(suite: PairSuite) -> Mask:
        return ~suite.is_control & (suite.claims.reasons.codes > 0) & ~retrieved(suite)

    def fixed(suite: PairSuite) -> Mask:
        is_unchanged = ~suite.is_control & (suite.claims.values == 0.0)
        return np.asarray(is_unchanged & material.were_changed(suite), dtype=np.bool_)

    others = [
        row
        for row in material.pairs_where(retrieved)
        if NET in row.assessed.claims and row.score(NET)
    ]
    answers = [
        *((CHANGED, row) for row in sorted(others, key=lambda row: row.score(NET) or 0.0)),
        *((NEW if material.was_unchanged(r) else CHANGED, r) for r in clearest_cases(material)),
        *((UNDECIDED, row) for row in material.pairs_where(undecided)),
        *((FIXED, row) for row in material.pairs_where(fixed)),
    ]
    listed = {(row.suite, row.key) for _, row in answers}
    moved = [
        (OTHER_DOCUMENTS, row)
        for row in moved_pairs(material)
        if (row.suite, row.key) not in listed
    ]
    answers.sort(key=lambda entry: TAGS.index(entry[0]))
    if parity.subject(material) is Subject.DOCUMENTS:
        return [*moved, *answers]
    return [*answers, *moved]


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
        for row in material.pairs_where(lambda suite: _controls_of(suite, sources)):
            of_source = self._controls[row.suite, row.source]
            of_source += [self._text(row.phrase), self._answer(row.answer)]

    def whole(self) -> Mapping[str, Json]:
        """Return everything, ready to be written as JSON."""
        options = self._material.options
        rows = [self._row(tag, row) for tag, row in self._rows]
        run = f"{options.called('explain')} {shlex.quote(options.run_path)}"
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
        }

    def _row(self, tag: str, row: PairRow) -> list[Json]:
        executions = self._material.run.executions
        left, right = (executions.get((row.suite, key)) for key in (row.source, row.key))
        margin = row.answer.margin
        return [
            TAGS.index(tag),
            self._source(row, left),
            self._variant(row),
            self._text(_cause(self._material, row, tag)),
            self._answer(row.answer),
            self._response(row.suite, row.key, row.answer),
            self._move(left, right, row.score("rrs")),
            None if margin is None else round(margin, 2),
            *([self._text(where_found(self._material, row), _MOST)] if row.ranks else []),
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
        text = response_to(self._material, suite, key)
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


def _controls_of(suite: PairSuite, sources: Container[SuiteAndKey]) -> Mask:
    """Return [n] which pairs are control prompts of these sources."""
    is_of_source = [
        is_control and (unit.suite, unit.asks[SOURCE]) in sources
        for unit, is_control in zip(suite.assessed.units, suite.is_control.tolist(), strict=True)
    ]
    return np.asarray(is_of_source, dtype=np.bool_)


def _units(text: str) -> int:
    """Return the length that a browser counts of a text as it is shown."""
    return len(harmless(text).encode("utf-16-le", "surrogatepass")) // 2


def _cause(material: Material, row: PairRow, tag: str) -> str:
    """Return the cause of a changed answer by attribution; of an undecided one, the reason."""
    if isinstance(row.claim, Reason):
        return REASON_WORDS[row.claim]
    if tag in (FIXED, OTHER_DOCUMENTS):
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
    """Yield the pairs with a changed, undecided or fixed answer, for readers who search and filter.

    The clearest new ones stand first, then the clearest others, then the undecided and the fixed
    ones in the order of the plan.
    """
    rows = _worth_a_look(material)
    if not rows:
        return
    listed, data = fitting(rows, lambda first: _Data(material, first).whole())
    browser = CaseBrowser(
        depth=blocks.Depth.PAGE,
        id="cases",
        label="Changed, undecided and fixed answers"
        + (", and other documents" if any(tag == OTHER_DOCUMENTS for tag, _ in rows) else ""),
        rows=len(rows),
        left_out=len(rows) - len(listed),
        data=data,
        clearest=blocks.CaseList(cases=case_items(material, CLEAREST)),
    )
    yield Section(
        id=f"all-{browser.id}",
        title=browser.label,
        blocks=[browser],
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


def answers(material: Material) -> Iterator[Section]:
    """Yield the first wrong and undecided answers to questions, in the order of the plan."""
    rows = [row for row in material.questions if row.is_correct is not True]
    if not rows:
        return
    words = (
        "Where the context names neither of the two people, only “unknown” is right. "
        f"{min(CLEAREST, len(rows)):,} of {len(rows):,} stand here, all of them in rows.jsonl."
    )
    yield Section(
        id="all-answers",
        title="Wrong and undecided answers to questions",
        blocks=[
            blocks.Text(lines=[words], depth=blocks.Depth.PAGE),
            blocks.CaseList(
                cases=[_item(material, row) for row in rows[:CLEAREST]], depth=blocks.Depth.PAGE
            ),
        ],
        in_comment=False,
        chapter=blocks.Chapter.CASES,
        count=len(rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBrowser(blocks.Block):
    """Cases that a reader searches and filters; without a script, the clearest of them."""

    id: str
    """Unique in a report; names the filters in the page's address."""
    label: str
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

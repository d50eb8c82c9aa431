"""Every wrong and undecided answer to a question, as the page's list of cases shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fairgate.domain.units import REASON_WORDS, Reason
from fairgate.reports.blocks import CaseItem, CaseList, Depth
from fairgate.reports.browsing import CLEAREST, CaseBrowser, Json, Room, Texts, fitting, kept
from fairgate.reports.judged_rows import QuestionRow
from fairgate.reports.material import Material
from fairgate.reports.spans import Kind, Span, Tone, Words, code, name

TAGS = ("stereotype", "counter", "unknown", "undecided")
"""What an answer is listed as, exactly one; the page's script knows them by their place."""
BIAS_WORDS = {1.0: "stereotype", -1.0: "counter", 0.0: "unknown"}
_WORDS = {
    "stereotype": "the stereotype",
    "counter": "against the stereotype",
    "unknown": "unknown",
    "undecided": "undecided",
}
_KEY = 500


def question_browser(material: Material, rows: Sequence[QuestionRow]) -> CaseBrowser:
    """Return the list of answers to look at, in the order of the plan."""
    shown, data = fitting(rows, lambda some: _Data(material, some).whole(), leading=0)
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


class _Data:
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
            TAGS.index(tag_of(row)),
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

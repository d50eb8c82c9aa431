"""The report as one HTML file: no request leaves it, nothing in it runs but its own few lines.

A content security policy allows exactly the style sheet and the script that stand in the file, by
their hashes, and nothing else. Every span is made harmless and escaped in one place, by its kind.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from fairgate.domain.outcomes import Outcome
from fairgate.domain.wording import harmless
from fairgate.reports import charts, figures
from fairgate.reports.blocks import Chapter, Inline, Kind, Span, Tone, View, spans

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

_STYLES = ("page.css", "tables.css", "charts.css", "cases.css", "media.css")
_ELEMENTS = {
    Kind.PROSE: "{}",
    Kind.NAME: "<bdi>{}</bdi>",
    Kind.CODE: "<code>{}</code>",
    Kind.COMMAND: "<code>{}</code>",
    Kind.QUOTE: "<bdi>{}</bdi>",
    Kind.FIGURE: '<span class="figure">{}</span>',
    Kind.DATE: "<bdi>{}</bdi>",
}
_TONES = {
    Tone.NORMAL: "{}",
    Tone.STRONG: "<strong>{}</strong>",
    Tone.MUTED: '<span class="muted">{}</span>',
    Tone.GOOD: '<b class="good">{}</b>',
    Tone.BAD: '<b class="bad">{}</b>',
    Tone.UNSURE: '<b class="unsure">{}</b>',
    Tone.CHANGED: "<mark>{}</mark>",
}
MEANINGS = {
    "confidence interval": "where the value would lie in 95 of 100 suites like this one; of rules "
    "a dash where too few texts differ for one",
    "change": "this run less the baseline, on the cases that both runs decided; of rates in points",
    "base": "the value in the baseline, a reviewed earlier run that later runs are compared with",
}


def render_html(view: View) -> str:
    """Return `report.html`, complete in itself."""
    import markupsafe

    style, script = _joined(_STYLES), _joined(["page.js"])
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            view=view,
            chapters=_chapters(view),
            policy=policy,
            style=markupsafe.Markup(style),  # noqa: S704 (our own file)
            script=markupsafe.Markup(script),  # noqa: S704 (our own file)
        )
    )


def _chapters(view: View) -> list[dict[str, Any]]:
    """Return the chapters that hold anything, with what is in them; the summary always does.

    Where one section is the whole chapter (`is_alone`), the chapter's heading is its title.
    """
    chapters = []
    for chapter in Chapter:
        title, is_first = chapter.value, chapter is Chapter.SUMMARY
        sections = [s for s in view.sections if s.chapter is chapter and s.in_page and s.blocks]
        if sections or is_first:
            entry = {
                "id": title.lower().replace(" ", "-"),
                "title": title,
                "heading": sections[0].title if len(sections) == 1 else title,
                "count": 0 if is_first else sum(section.count or 0 for section in sections),
                "sections": sections,
                "is_first": is_first,
                "is_alone": len(sections) == 1 and not is_first,
            }
            chapters.append(entry)
    return chapters


def meaning(word: str) -> str:
    """Return the meaning of a word in a report; empty where it needs no explanation.

    What stands in brackets after the word, such as a level of confidence, is no part of it.
    """
    return MEANINGS.get(word.partition(" (")[0].strip(), "")


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the environment of the templates: it escapes what no span has escaped."""
    import jinja2

    def visible(value: object) -> object:
        """Show control characters as escapes; markup of ours passes."""
        return harmless(value) if type(value) is str else value

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairgate.reports", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        line=_line, plain=_plain, kind=lambda block: type(block).__name__,
        ranges=charts.ranges, spans=spans,
        mark=lambda outcome: mark(Outcome(outcome)), meaning=meaning,
    )  # fmt: skip
    return environment


def _plain(words: Inline) -> str:
    return harmless("".join(span.shown for span in spans(words) if span.kind is not Kind.MARK))


def _line(words: Inline) -> Markup:
    """Return words as HTML: the one place that escapes."""
    import markupsafe

    return markupsafe.Markup("".join(map(_span, spans(words))))  # noqa: S704 (escaped)


def _span(span: Span) -> str:
    import markupsafe

    if span.kind is Kind.MARK:
        return mark(Outcome(span.text))
    text = harmless(span.shown)
    if span.kind is Kind.PROSE:  # other kinds are verbatim, or kept on one line
        text = figures.unbroken(text)
    element = _ELEMENTS[span.kind].replace("{}", markupsafe.escape(text))
    return _TONES[span.tone].replace("{}", element)


@functools.cache
def mark(outcome: Outcome) -> Markup:
    """Return an outcome's mark as a drawing: fonts need not have one."""
    import markupsafe

    drawings = {
        Outcome.PASS: '<path d="M4.5 8.5l2.3 2.3 4.7-5"/>',
        Outcome.FAIL: '<path d="M5.2 5.2l5.6 5.6m0-5.6l-5.6 5.6"/>',
        Outcome.INCONCLUSIVE: '<path d="M8 4.2v4.6m0 2.6v.4"/>',
        Outcome.NOT_EVALUATED: '<path d="M5 8h6"/>',
    }
    head = '<svg class="mark {}" viewBox="0 0 16 16" aria-hidden="true" focusable="false">'
    drawing = f'{head}<circle cx="8" cy="8" r="8"/>{drawings[outcome]}</svg>'
    return markupsafe.Markup(drawing).format(outcome.value)  # noqa: S704 (our own drawing)


def _joined(names: Sequence[str]) -> str:
    """Return our own files that stand inside the page."""
    folder = resources.files("fairgate.reports").joinpath("templates", "page")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in names)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

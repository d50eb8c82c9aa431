"""No text of a stranger is live after GitHub's own renderer: every payload through every Markdown."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import pytest
from github_markdown import Page, check_dead
from hostile_texts import HOSTILE
from node.programs import github_html
from test_hostile_texts import RUN, _bias_view, _notes, _view

from fairgate.github.report import job_summary, no_verdict_comment, pull_request_comment
from fairgate.reports import escaping
from fairgate.reports.markdown import render_comment, render_report

pytestmark = pytest.mark.gfm
ENDLESS = 10**9
_bias = lru_cache(maxsize=4)(_bias_view)


RENDERERS = {
    "report": (lambda text: render_report(_view(text), limit=ENDLESS), []),
    "comment": (lambda text: render_comment(_view(text), limit=ENDLESS, report_url=RUN), [RUN]),
    "report of items": (lambda text: render_report(_bias(text), limit=ENDLESS), []),
    "comment on items": (
        lambda text: render_comment(_bias(text), limit=ENDLESS, report_url=RUN), [RUN]
    ),
    "pull request": (
        lambda text: pull_request_comment(_view("word"), _notes(text), report_url=RUN), [RUN]
    ),
    "summary": (lambda text: job_summary(_view("word"), _notes(text), limit=1_000_000), []),
    "stopped": (lambda text: no_verdict_comment(text, 4), []),
}  # fmt: skip
"""Every function that makes Markdown for GitHub, and where its own links lead."""


@cache
def _harmless(name) -> str:
    return RENDERERS[name][0]("word")


@pytest.mark.parametrize("payload", HOSTILE)
def test_nothing_is_live_on_github(payload):
    for name, (render, links) in RENDERERS.items():
        check_dead(render(payload), _harmless(name), links)


PLACES = (
    "{}", "a {} b", "- {}", "> {}", "**{}**", "# {}", "| a | b |\n|:--|--:|\n| {} | end |",
)  # fmt: skip
INLINE = (
    escaping.markdown, escaping.markdown_code, escaping.markdown_prose, escaping.markdown_date,
    escaping.html_code, escaping.markdown_figure,
)  # fmt: skip
FOLDED = "<details><summary>{}</summary>\n\ntext\n\n</details>"


@pytest.mark.parametrize("payload", HOSTILE)
def test_no_escape_is_live_on_github(payload):
    """Everywhere a text can stand, one after another in one page: what one opens, others show."""
    shown = [place.format(escape(payload) or "word") for place in PLACES for escape in INLINE]
    twins = [place.format("word") for place in PLACES for _ in INLINE]
    shown += [FOLDED.format(escaping.html_code(payload)), escaping.markdown_block(payload)]
    twins += [FOLDED.format("word"), "```text\nword\n```"]
    check_dead(_separated(shown), _separated(twins))


def _separated(parts: list[str]) -> str:
    return "\n\n***\n\n".join([*parts, "end"]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "mail b@example.org now", "<code>b&#64;example&#46;org</code>", "www.example.org",
        "https://example.org", "[a](https://example.org)", "@octocat", "#1", "deadbeef",
        "![a](https://example.org)", "<a href='//example.org'>a</a>", "<!-- a -->", "# word", "*a*",
        "mailto:b@example.org", "xmpp:b@example.org/c", ":rocket: :rocket:",
    ],
)  # fmt: skip
def test_what_is_live_is_seen(text):
    with pytest.raises(AssertionError):
        check_dead(text, "word")


ACTS = (
    "@octo/admins", "&#64;octo", "&commat;octo", "<wbr>&#64;octo", "#12", "octo/shop#12", "GH-12",
    "[a](//evil)", "[a](https://evil.invalid)", "[a]\n(//evil)", "[a][b]\n\n[b]: //evil", "![a](//evil)",
    "<https://evil.invalid>", "https://evil.invalid", "www.evil.invalid", "a@evil.invalid",
    "mailto:a@evil.invalid", "<a href='//evil'>x</a>", "<img src=//evil>", "<script>x</script>",
    "<!-- fairgate:report:v1 -->", "<details open>", "```mermaid\nclick a\n```", "~~~geojson\n{}\n~~~",
    f"[![a](//evil)]({RUN})", f"[a]({RUN}/../evil)", f"[a]({RUN} 'x')", "\\[a](//evil)", "`[a](//evil)",
    "https&colon;//evil.invalid", "http:\u200b//x", "[a]\u200b(//evil)", "<\u200bimg src=x>",
    "$\\raise{9em}{x}$", "$$x$$", "$`x`$",
)  # fmt: skip
ELEMENTS = {
    "details", "summary", "sub", "code", "br", "wbr", "p", "pre", "h1", "ul", "li", "blockquote",
    "strong", "table", "thead", "tbody", "tr", "th", "td", "ol", "em", "h2", "h3", "hr", "del", "a",
}  # fmt: skip


def test_a_text_that_came_by_an_untrusted_way_does_nothing():
    """Whatever a pull request's code has written into the artifact that the gate's job leaves."""
    live = []
    for payload in (*ACTS, *HOSTILE):
        for place in (*PLACES, FOLDED, "```text\n{}\n```", "`{}`", "\n\n{}\n\n"):
            text = escaping.disarmed_markdown(place.format(payload), RUN)
            page = github_html(text)
            links = set(re.findall(r'(?:href|src)="([^"]*)"', page)) - {RUN}
            elements = set(re.findall(r"<([a-zA-Z]\w*)", page)) - ELEMENTS
            words = re.sub(r"(?s)<(code|pre)\b.*?</\1>", " ", page)
            mentions = re.findall(r"(?:^|[^\w])@\w|#\d", re.sub(r"<[^>]*>|&#?\w+;", "", words))
            if (
                links
                or elements
                or mentions
                or "<!--" in page
                or re.search(r"language-(?!text)[!-~]", page)
                or re.search(r"\$(?!\u200b)", text)  # mathematics, which can be moved over a line
            ):
                live.append((place, payload, links, elements, mentions))
    assert live == [], live[:12]


def test_a_comment_of_ours_looks_as_it_did():
    text = RENDERERS["pull request"][0]("word")
    page, other = Page(text), Page(escaping.disarmed_markdown(text, RUN))
    assert other.links == page.links
    assert "".join(other.texts).replace("\u200b", "") == "".join(page.texts)

"""No text of a stranger is live after GitHub's own renderer: every payload through every Markdown."""

from __future__ import annotations

from functools import cache, lru_cache

import pytest
from github_markdown import check_dead
from hostile_texts import HOSTILE
from test_hostile_texts import RUN, _bias_view, _foreign, _notes, _view

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
    "stopped": (lambda text: no_verdict_comment(text, 4, "h" * 40, RUN), [RUN]),
    "fork": (_foreign, [RUN]),
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

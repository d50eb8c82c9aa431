"""What GitHub's own renderer makes of a Markdown text of ours, and that nothing in it is live."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

from node.programs import github_html

NO_ACCEPTED_RUNS = frozenset({"code", "pre", "a"})
"""Elements inside which GitHub resolves no mention, issue, commit, address or emoji."""
LIVE = re.compile(r"@\w|://|\bwww\.|#\d|\b[A-Z]+-\d|[0-9A-Fa-f]{7,}|:\w+:|mailto:|xmpp:", re.ASCII)
_VOID = frozenset({"br", "hr", "img", "input", "wbr"})


class Page(HTMLParser):
    """The elements of a page in their order, where its links lead, and the text outside code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(github_html(markdown))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in _VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value)
            else:
                assert name in ("align", "start", "class"), (tag, name, value)

    def handle_endtag(self, tag):
        if tag in _VOID:
            return
        assert self._open, tag
        assert self._open.pop() == tag
        self.tags.append(f"/{tag}")

    def handle_data(self, data):
        if not NO_ACCEPTED_RUNS & set(self._open):
            self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data!r}")

    handle_decl = handle_pi = unknown_decl = handle_comment


def structure(page: Page) -> list[str]:
    """Return the elements without those that stand for a name: code, or its words as they are."""
    return [tag for tag in page.tags if tag.removeprefix("/") not in ("code", "wbr", "br")]


def check_dead(markdown: str, harmless: str, links: list[str] | None = None) -> None:
    """Assert that `markdown` renders to the structure of its harmless twin, with nothing live."""
    page = Page(markdown)
    assert page.links == (links or [])
    assert [text for text in page.texts if LIVE.search(text)] == []
    assert structure(page) == _structure_of(harmless)


@cache
def _structure_of(markdown: str) -> list[str]:
    return structure(Page(markdown))

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fairgate.reports import escaping

MARKDOWN = MarkdownIt("commonmark").enable("table")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An elderly person", "An elderly person"), ("non-binary", "non-binary"),
        ("élève", "élève"), ("a_b", "`a_b`"), ("@octocat", "`@octocat`"),
        ("deadbeef", "`deadbeef`"), ("a defaced page", "`a defaced page`"),
        ("|a@b.c", "<code><wbr>&#124;a<wbr>&#64;b<wbr>&#46;c</code>"),
        ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a|b", "<code>a<wbr>&#124;b</code>"),
        ("", "<code>&nbsp;</code>"), ("<!-- x", "`<! -- x`"), ("a\nb", "`a\\nb`"),
        ("::error::x", "`: :error: :x`"),
    ],
)  # fmt: skip
def test_names(text, expected):
    assert escaping.markdown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9.4 % is at most 15.0 % (p = 0.004)", "9.4 % is at most 15.0 % (p = 0.004)"),
        ("fewer than min_decided asks for", "fewer than `min_decided` asks for"),
        ("set `control: none`; or else", "set `control: none`; or else"),
        ("with none (`--baseline none`): first", "with none (`--baseline none`): first"),
        ("ask @octocat", "ask `@octocat`"),
        ("1. item", "`1.` item"),
        ("at most 1. Then", "at most 1. Then"),
        ("see https://example.org now", "see `https://example.org` now"),
        ("a  b\tc", "a `b\\tc`"),
        ("s0#race/a, s1#race/b; s2#race/c.", "`s0#race/a`, `s1#race/b`; `s2#race/c`."),
        ("#:, :+1:, @a:", "`#`:, `:+1`:, `@a`:"),
    ],
)
def test_sentences(text, expected):
    assert escaping.markdown_prose(text) == expected


@given(st.text(max_size=200))
def test_code_shows_the_text_and_nothing_else(text):
    tokens = MARKDOWN.parseInline(escaping.markdown_code(text))[0].children or []
    kinds = {token.type for token in tokens}
    assert kinds <= {"code_inline"} or kinds <= {"html_inline", "text"}
    if kinds == {"code_inline"}:
        shown = escaping.plain(text).replace("<!--", "<! --").replace("-->", "-- >")
        assert tokens[0].content == shown


@given(st.text(max_size=200))
def test_code_never_leaves_its_cell(text):
    row = f"| {escaping.markdown_code(text)} | end |"
    tokens = MARKDOWN.parse(f"| a | b |\n|---|---|\n{row}")
    assert [token.type for token in tokens].count("td_open") == 2
    assert tokens[-5].content == "end" or "end" in [token.content for token in tokens]


@given(st.text(alphabet="s0#@/_:.,;![]()<>*`| \\\n", max_size=60))
def test_sentences_are_text_and_code_and_nothing_else(text):
    shown = re.sub("<code>.*?</code>", "", escaping.markdown_prose(text))
    tokens = MARKDOWN.parseInline(shown)[0].children or []
    assert {token.type for token in tokens} <= {"text", "code_inline"}
    outside = [token.content for token in tokens if token.type == "text"]
    assert not any(mark in part for part in outside for mark in "#@_![]<*`|\\")


@given(st.text(max_size=200))
def test_blocks_are_never_left(text):
    tokens = MARKDOWN.parse(escaping.markdown_block(text))
    assert [token.type for token in tokens] == ["fence"]


def test_redaction():
    text = "x" * 500
    assert len(escaping.redacted(text, "excerpt")) == escaping.EXCERPT_CHARACTERS
    assert escaping.redacted(text, "excerpt").endswith("…")
    assert escaping.redacted(text, "none") == text
    assert escaping.redacted(text, "hash") == "sha256:c38c2bf3055c"
    assert escaping.redacted("\ud800", "hash").startswith("sha256:")

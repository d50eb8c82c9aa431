"""Texts that try to act instead of being read: one list a kind of attack, easy to extend."""

from __future__ import annotations

WORKFLOW_COMMANDS = (
    "::error::owned", "::error file=a.py,line=1::owned", "::warning::owned",
    "::notice title=x::owned", "::set-output name=outcome::pass", "::save-state name=a::b",
    "::add-mask::a", "::stop-commands::token", "::group::hidden", "::endgroup::", "::debug::x",
    "  ::error::indented", "\t::error::tab", "text\n::error::second line",
    "text\r::error::carriage return", "text\r\n::error::both", "text\u2028::error::line separator",
    "text\u2029::error::paragraph separator", "text\x0b::error::vertical tab",
    "text\x0c::error::form feed", "text\x85::error::next line", ":::error:::", "::::error::::",
    ":\u200b:error::zero width", "##[error]owned", "##[group]hidden",
    "##[set-output name=outcome]pass", "###[error]owned", "##[[error]]",
    "##vso[task.complete result=Succeeded;]done",
)  # fmt: skip
MENTIONS = (
    "@octocat", "@org/security-team please merge", "mail me@example.org", "cc:@octocat",
    "(@octocat)", "*@octocat*", "&#64;octocat", "&commat;octocat", "\\@octocat", "@\u200boctocat",
    "#1", "fixes #12", "closes org/repo#7", "GH-42", "JIRA-1234",
    "org/repo@0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789abcdef01234567",
    "deadbeef", "defaced", ":rocket:", ":+1: :-1:", "[ ] todo", "- [x] done",
)  # fmt: skip
LINKS = (
    "https://example.org/?leak", "http://example.org", "www.example.org", "ftp://example.org",
    "mailto:a@example.org", "<https://example.org>", "[click](https://example.org)",
    "[click][1]\n\n[1]: https://example.org", "[1]: https://example.org 'title'",
    "![pixel](https://example.org/p.png)", "![pixel][1]",
    "[![badge](https://example.org/b.svg)](https://example.org)", "[click](javascript:alert(1))",
    "[a](<b c>)", "[^1]: footnote", "text[^1]", "]( https://example.org )",
    "`](https://example.org)", "data:text/html;base64,PHNjcmlwdD4=", "//example.org/x",
)  # fmt: skip
ADDRESSES = (
    "a|b@example.org", "b@example.org|", "b@example.org ```` c", "mailto:a@example.org|",
    "```` mailto:a@example.org", "xmpp:a@example.org/chat", "xmpp:a@example.org/chat|",
    "````xmpp:a@example.org/chat", "| a.b-c+d_e@mail.example.org.", "|https://example.org",
    "````https://example.org", "|www.example.org", "```` www.example.org/path",
    "|ftp://example.org", "| @octocat #1 GH-42 deadbeef1 :rocket:", "<b@example.org>|",
    "`b@example.org`|`c@example.org`",
)  # fmt: skip
COMMITS = (
    "deadbeef defaced", "feedface cafebabe facade", "effaced-deadbeef", "acceded's",
    "DEADBEEF FEEDFACE", "the defaced page", "abcdef deadbeef",
)  # fmt: skip
HTML = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>",
    "<a href='https://example.org'>x</a>", "<iframe src=//example.org></iframe>",
    "<style>*{display:none}</style>", "<details open><summary>fake</summary>",
    "</details></details>", "</code></pre></td></tr></table>", "</title><script>alert(1)</script>",
    "</script><script>alert(1)</script>", "</style><script>alert(1)</script>", "<br><h1>PASS</h1>",
    "<input type=checkbox checked>", "<form action=//example.org>",
    "<meta http-equiv=refresh content='0;url=//example.org'>", "<base href=//example.org>",
    "<math><mtext></form>", '"><script>alert(1)</script>', "' onmouseover='alert(1)",
    '" autofocus onfocus=alert(1) x="', "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;", "<ScRiPt>alert(1)</sCrIpT>",
    "<scr\x00ipt>alert(1)</script>", "<!DOCTYPE html>",
    "<?xml version='1.0'?><!ENTITY x SYSTEM 'file:///etc/passwd'>", "<![CDATA[x]]>", "]]>",
    "{{ 7 * 7 }}", "{% for x in y %}", "{{ view.__class__ }}", "${{ secrets.GITHUB_TOKEN }}",
    "$(id)",
)  # fmt: skip
MARKERS = (
    '<!-- fairgate:report:v1 key="x" head="y" run="1.1" -->', "<!-- unclosed", "-->", "--!>",
    "<!-- Sticky Pull Request Comment -->", "<!---->", "<!--><img src=x>",
)  # fmt: skip
STRUCTURE = (
    "a | b | c", "|", "||||", "\\|", "\\\\|", "`|`", "| x |\n|---|\n| y |", "# PASS",
    "### ✅ FairGate: no fairness regression", "===", "---", "***", "- item", "1. item", "> quote",
    "    code", "```\nbreak out", "~~~\nbreak out", "````", "`", "``", "` `", "`a``b```c````d",
    "`" * 100, "*" * 50, "_underline_ __bold__", "~~strike~~", "**PASS**", "\\", "\\`", "\\\\`",
    "$x$ $$y$$ $`z`$", "```math\nx\n```", "a  \nb", "a\\\nb", "\n\n\n", " ", "\t",
)  # fmt: skip
INVISIBLE = (
    "\u202eSSAP\u202c", "\u202aabc\u202c", "\u2066abc\u2069", "\u200f\u200e", "\u200b\u200c\u200d",
    "\ufeff", "\u00ad", "\U000e0041\U000e0042", "\u2060", "\u061c",
    "a\u0300\u0301\u0302\u0303\u0304\u0305" * 5, "\ufffe\uffff", "\ud800", "\udfff\ud800", "\x00",
    "\x01\x02\x03", "\x7f", "\x9b31m", "\u3164", "\u2800",
)  # fmt: skip
TERMINAL = (
    "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b]0;title\x07",
    "\x1b]8;;https://example.org\x1b\\click\x1b]8;;\x1b\\", "\x1b[1A\x1b[2KPASS",
    "\x1b(0lqqk\x1b(B", "\x1bP+q544e\x1b\\", "\x08\x08\x08PASS", "\rPASS", "\x07", "\x0e\x0f",
    "\u009b2J", "\0001\x01bold\x02",
)  # fmt: skip
FORMULAS = (
    "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "%s%s%s%n", "%0A::error::x",
    "'; DROP TABLE cases; --", "../../etc/passwd", "C:\\Windows", "null", "NaN", "1e999", "نص عربي",
    "עברית", "日本語のテキスト", "👩‍👩‍👧‍👦", "ﷺ" * 20, "\uff57\uff57\uff57\uff0eexample\uff0eorg",
)  # fmt: skip
HOSTILE = (
    *WORKFLOW_COMMANDS, *MENTIONS, *LINKS, *ADDRESSES, *COMMITS, *HTML, *MARKERS, *STRUCTURE,
    *INVISIBLE, *TERMINAL, *FORMULAS,
)  # fmt: skip
HUGE = (
    "x" * 1_000_000, "::error::" * 110_000, "`" * 1_000_000, "|" * 1_000_000, "<!--" * 250_000,
    "\x1b[31m" * 200_000, "\n" * 1_000_000, "@octocat " * 111_111,
)  # fmt: skip

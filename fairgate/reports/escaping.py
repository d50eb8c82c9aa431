"""How hostile text becomes harmless in Markdown, on a console, in HTML and in XML.

Corpus texts, model answers and users' names are hostile. Every function first makes its
text `harmless` (one line, no control or bidirectional character, no workflow command) and then
takes away what its target would act on: mentions, links, images, HTML, comment markers, cell
borders. Everything stays readable: what is changed is visible.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from fairgate.domain.wording import harmless

Redaction = Literal["none", "excerpt", "hash"]

EXCERPT_CHARACTERS = 160
NAME_CHARACTERS = 120
SENTENCE_CHARACTERS = 1000
FULL_CHARACTERS = 4000
"""`redact: none` is not endless: a text of a megabyte would make every report unusable."""

_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:[ '’][^\W\d_]+|-[^\W\d_]+)*")
_PLAIN_TOKEN = re.compile(r"[\w.,;:()%+−–…='’\"≤≥±·×→▲▽/-]+")
_COMMIT = r"[0-9A-Fa-f]{7,}"
_LIVE = re.compile(
    r"www\.|://|:/|mailto:|xmpp:|_|"
    rf"{_COMMIT}|[A-Za-z]-\d|:[\w+-]+:|\w\.[A-Za-z]{{2,}}\S*/|^[+-]+$|^==+"
)
"""What GitHub links or replaces inside plain text: addresses, commits, issue keys, emoji."""
_FIGURE_WORD = re.compile(r"█+|[0-9.,%+−–…≤≥=()<×/|]+|\(?[A-Za-z]{1,12}\)?,?")
_LIST_MARKER = re.compile(r"\d+[.)]")
_BRACES = r"\{[^{}`]*(?:\{[^{}`]*\}[^{}`]*)*\}"
_BACKTICKS = re.compile(r"`+")
_OURS = re.compile(r"</?(?:details|summary|sub|code)>|<w?br>|&nbsp;|```+text")
"""Elements, references and fences of our reports."""
_ACTED_ON = re.compile(
    rf"{_OURS.pattern}|&#?\w+;|```+(?=[ \t]*[^\s`])|~~~+(?=[ \t]*[^\s~])"
    r"|[<@$]|#(?=\d)|\](?=[(\[:])|!(?=\[)|:(?=/)|(?i:www\.|mailto:|xmpp:|GH-(?=\d))"
)
"""What GitHub acts on in Markdown, or shows with programs of its own."""


def excerpt(text: str, limit: int = EXCERPT_CHARACTERS) -> str:
    """Return at most `limit` characters of `text`, the cut marked by an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def short_name(text: str) -> str:
    """Return an untrusted name (a term, a label, a file), cut to what a table can hold."""
    return excerpt(text, NAME_CHARACTERS)


def short_sentence(text: str) -> str:
    """Return a sentence that quotes untrusted text, cut to what a paragraph can hold."""
    return excerpt(text, SENTENCE_CHARACTERS)


def redacted(text: str, redact: Redaction, limit: int = EXCERPT_CHARACTERS) -> str:
    """Return the part of `text` that a report may show: (nearly) all, an excerpt, or a hash."""
    if redact == "hash":
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"sha256:{digest[:12]}"
    return excerpt(text, FULL_CHARACTERS if redact == "none" else limit)


def plain(text: str) -> str:
    """Return `text` for a console or a log: one line, no control sequence, no runner command."""
    return harmless(text)


def markdown(text: str) -> str:
    """Return `text` as inline Markdown: letters as they are, anything else as code.

    Code is where GitHub resolves no mention, link, image, emoji, issue or commit.
    """
    text = plain(text)
    # GitHub links a commit anywhere in a text, and seven letters can be one: `defaced`.
    return text if _PLAIN_WORDS.fullmatch(text) and not re.search(_COMMIT, text) else _code(text)


def markdown_date(text: str) -> str:
    """Return an ISO date as it is, anything else as `markdown` does."""
    return text if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else markdown(text)


def markdown_code(text: str) -> str:
    """Return `text` as a code span, valid inside a table cell too."""
    return _code(plain(text))


def html_code(text: str) -> str:
    """Return `text` as a `code` element, which also holds where Markdown is not read.

    All ASCII punctuation becomes references, each after a `wbr` element. References never build
    Markdown structure. GitHub's renderer looks for addresses only after it has decoded them, but
    never across an element; `wbr` is one that shows and copies as nothing.
    """
    safe = plain(text).replace("<!--", "<! --")
    characters = (
        c if c.isalnum() or c == " " or not c.isascii() else f"<wbr>&#{ord(c)};" for c in safe
    )
    return f"<code>{''.join(characters)}</code>"


def markdown_prose(text: str) -> str:
    """Return a sentence of ours that may hold users' names: odd words become code spans."""
    # What stands between two single backticks is kept together, and so is YAML in braces.
    tokens = re.findall(rf"\(?`[^`]+`\S*|\(?{_BRACES}[.,;:)]*|\S+", plain(text))
    words = [_prose_token(token) for token in tokens]
    if tokens and _LIST_MARKER.fullmatch(tokens[0]):
        words[0] = _code(tokens[0])
    return " ".join(words)


def markdown_figure(text: str) -> str:
    """Return a figure of ours as it is; what is none as a name."""
    words = plain(text).split(" ")
    is_figure = all(_FIGURE_WORD.fullmatch(w) and not _LIVE.search(w) for w in words)
    return plain(text) if is_figure and not _LIST_MARKER.fullmatch(words[0]) else markdown(text)


def _prose_token(token: str) -> str:
    quoted = re.fullmatch(rf"(\(?)(?:`([^`]+)`|({_BRACES}))([.,;:)]*)", token)
    if quoted:
        return quoted[1] + _code(quoted[2] or quoted[3]) + quoted[4]
    if _PLAIN_TOKEN.fullmatch(token) and not _LIVE.search(token):
        return token
    # What ends a clause is ours and stays outside: a code span is there to be copied.
    body = token.rstrip(".,;:") or token
    return _code(body) + token[len(body) :]


def _code(text: str) -> str:
    text = text.replace("<!--", "<! --").replace("-->", "-- >")
    if not text.strip():
        return "<code>&nbsp;</code>"
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    # A pipe ends a cell even inside a code span, and very long fences are not recognised.
    if longest > 3 or "|" in text:
        return html_code(text)
    fence = "`" * (longest + 1)
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def disarmed_markdown(text: str, link: str = "") -> str:
    """Return Markdown that is to be posted, whoever wrote it: it looks the same and does nothing.

    What GitHub acts on (mentions, references, links, images, HTML, diagrams) is broken by a
    character that nobody sees, also inside code; only links to `link` and the elements that our
    reports use stay. Nothing is parsed, so that no text can be read here otherwise than there.
    """
    lines = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    own = f"]({link})"
    parts = lines.split(own) if link else [lines]
    return own.join(_ACTED_ON.sub(_broken, part) for part in parts)


def _broken(match: re.Match[str]) -> str:
    """Return the end of a match behind a space without width, and its beginning before that."""
    matched = match[0]
    if _OURS.fullmatch(matched):
        return matched
    end = len(matched) if matched[-1] in ";`~" else 1
    return f"{matched[:end]}\u200b{matched[end:]}"


def sarif_text(text: str) -> str:
    """Return `text` for a SARIF message, where brackets make links and braces are filled in."""
    text = plain(text).replace("://", ": //").replace("<!--", "<! --")
    text = re.sub(r"([\\\[\]])", r"\\\1", text)
    return re.sub(r"([@{])(?=\w)", r"\1 ", text)


def markdown_block(text: str) -> str:
    """Return lines of ours, made of harmless texts, as a fenced block that nothing in it ends."""
    lines = [plain(line).replace("<!--", "<! --").rstrip() for line in text.splitlines()]
    body = "\n".join(lines)
    longest = max((len(run) for run in _BACKTICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{body}\n{fence}"

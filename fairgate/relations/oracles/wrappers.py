"""What answers are wrapped in: Markdown, LaTeX's box, tags, code fences and JSON.

`unwrapped` puts blanks and plain words in the place of what wraps an answer. The text keeps its
length, so that places in it are places in the answer, and every oracle reads what is left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

ANSWER_KEYS = frozenset(
    """answer final_answer finalanswer final response reply result output label labels prediction
    predicted predicted_label sentiment overall_sentiment class category classification choice
    choices selected selection option verdict decision judgment judgement score rating value tone
    toxicity ranking rank order ranked items list conclusion antwort respuesta réponse risposta
    resposta antwoord 정답 답 답변 答案 答え 回答 正解 정서 감정 情感""".split()  # noqa: SIM905
)
"""Names of members and tags that hold an answer; with `is_` or `has_` in front of them too."""
_SCORE_KEYS = ("score", "probability", "prob", "confidence", "value", "p")
_LEVELS = {
    **dict.fromkeys(("none", "absent", "zero"), 0.0),
    **dict.fromkeys(("very low", "minimal"), 0.1),
    **dict.fromkeys(("low", "weak", "slight"), 0.25),
    **dict.fromkeys(("medium", "moderate"), 0.5),
    **dict.fromkeys(("high", "strong"), 0.75),
    **dict.fromkeys(("very high", "very strong"), 0.9),
}
"""What words for levels say beside each other."""
_PROMPT = re.compile(r"\A\s*(?:<s>\s*)?\[inst\].*?\[/inst\]|\A\s*<s>(?=\s)|\[/inst\]", re.DOTALL)
"""A turn of the user, with the tokens of Llama and Mistral in letters."""
_OPEN_PROMPT = re.compile(r"\s*(?:<s>\s*)?\[inst\]")
_YES = frozenset(["true", "yes", "y", "ja", "oui", "sí", "sì", "sim"])
_NO = frozenset(["false", "no", "n", "nein", "non", "não", "nee", "none", "null", ""])
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|mathit|textbf|textit|emph|mbox|bf)\s*\{")
_BRACE = re.compile(r"\}")
_MATH = re.compile(r"\$+|\\[()\[\]](?![^\W_])")
_TOKEN = re.compile(r"<\|/?[\w :/-]{1,40}\|>")
_TAG = re.compile(r"<(/?)([\w-]{1,30})(?: [^<>\n]{0,80})?/?>")
_INLINE = frozenset(["b", "i", "u", "em", "strong", "mark", "span", "code", "p", "div", "br"])
_FENCE = re.compile(r"(?:'''|~~~)(?:[ \t]*[\w+-]{0,12}(?=\n|$|[ \t]*[{\[]))?")
_EMPHASIS = re.compile(r"\*+|(?<![^\W_])_+(?=\S)|(?<=\S)_+(?![^\W_])")
_UNFINISHED = re.compile(r"(?:\\[a-z]{0,8}\s*|<[^<>\n]{0,120}|'{1,2}|~{1,2}|\*+|_+|\$+)\Z")
_WRAPPING = tuple("'~*_$")
_OBJECT = re.compile(r"""\{\s*["'}]|\[\s*(?:["']|\{\s*["']|\[\s*["'])""")
_OPEN_OBJECT = re.compile(r"""[\[{]\s*(?:[\[{]\s*)?\Z""")
_MOST_OBJECTS, _MOST_JSON = 5, 20_000
_DECODER = json.JSONDecoder()
_LITERAL = re.compile(r"(?<![^\W_])none(?![^\W_])")
_MEMBER = re.compile(r"[{\[]\s*[\"']([^\"'\n]{1,80})[\"']\s*:")
_IS = re.compile(r"^(?:is|has|contains)[_ ]")


@lru_cache(maxsize=4096)
def unwrapped(plain: str, forms: tuple[str, ...] = ()) -> tuple[str, int]:
    """Take from folded text what wraps an answer; tell how much of that stays if the text goes on.

    `forms`: folded labels and letters, which may be the members of a table of scores.
    """
    left, settled = plain, len(plain)
    if may_be_unfinished(plain):
        tail = _UNFINISHED.search(plain, max(0, len(plain) - 130))
        settled = len(plain) if tail is None else tail.start()
    if "[/inst]" in left or "<s>" in left[:20]:
        left = _PROMPT.sub(_blank, left)
    if _OPEN_PROMPT.match(left):
        settled = 0
    if "{" in left or "[" in left:
        left, unfinished = _without_json(left, forms)
        settled = min(settled, unfinished)
    if "\\" in left or "$" in left:
        boxed = _BOX.sub(lambda box: "answer:".ljust(len(box[0])), left)
        boxed = _COMMAND.sub(_blank, boxed)
        left = _MATH.sub(_blank, boxed if boxed == left else _BRACE.sub("\n", boxed))
    if "<" in left:
        left = _TAG.sub(_without_tag, _TOKEN.sub(_line_end, left))
    if "'''" in left or "~~~" in left:
        left = _FENCE.sub(_blank, left)
    if "*" in left or "_" in left:
        left = _EMPHASIS.sub(_blank, left)
    return left, settled


def may_be_unfinished(plain: str) -> bool:
    """Tell whether folded text may end within a wrapper: a cheap look."""
    end = plain[-130:]
    return "<" in end or "\\" in end or end.endswith(_WRAPPING)


def _blank(wrapper: re.Match[str]) -> str:
    return " " * len(wrapper[0])


def _line_end(wrapper: re.Match[str]) -> str:
    """Put a line end where something ends."""
    return "\n".ljust(len(wrapper[0]))


def _without_tag(tag: re.Match[str]) -> str:
    is_end, name, size = tag[1], tag[2].replace("-", "_"), len(tag[0])
    if name in _INLINE:
        # `<b>` may be the answer B.
        after = tag.string[tag.end() : tag.end() + 1]
        is_letter = name == "b" and not is_end and (not after or after.isspace())
        return tag[0] if is_letter else " " * size
    if is_end:
        return _line_end(tag)
    if name in ANSWER_KEYS:
        return ("answer:" if size >= len("answer:") else "").ljust(size)
    return tag[0]


def _without_json(plain: str, forms: tuple[str, ...]) -> tuple[str, int]:
    """Put what JSON says in its place; tell where JSON begins that is not finished."""
    pieces: list[str] = []
    at = end = 0
    unfinished = len(plain)
    for _ in range(_MOST_OBJECTS):
        begin = _OBJECT.search(plain, at)
        if begin is None:
            break
        value, stop = _parsed(plain, begin.start())
        if stop is None:
            unfinished = min(unfinished, begin.start())
            member = _MEMBER.match(plain, begin.start())
            if member is not None and _bare(member[1]) in forms:  # a table that was cut
                return "".join([*pieces, plain[end : begin.start()]]).ljust(len(plain)), unfinished
            at = begin.end()
            continue
        span = plain[begin.start() : stop]
        pieces += [plain[end : begin.start()], _said(value, span, forms)]
        at = end = stop
    tail = _OPEN_OBJECT.search(plain, max(0, len(plain) - 40))
    if tail is not None:
        unfinished = min(unfinished, tail.start())
    return "".join([*pieces, plain[end:]]), unfinished


def _parsed(plain: str, begin: int) -> tuple[Any, int | None]:
    """Parse the JSON at a place, or a mapping with Python's single quotes; tell where it ends."""
    text = plain[begin : begin + _MOST_JSON]
    forms = (text, _LITERAL.sub("null", text.replace("'", '"'))) if "'" in text[:40] else (text,)
    for form in forms:
        with suppress(ValueError, RecursionError):
            value, length = _DECODER.raw_decode(form)
            return value, begin + length
    return None, None


def _said(value: Any, span: str, forms: Sequence[str]) -> str:
    """Write what JSON says as plain words of the same length; other JSON stays as it stands."""
    words = _words(value, forms)
    if words is None:
        return span
    at = span.find(words) if words and not words.startswith("not ") else -1
    text = f"answer:{words}"
    if at >= len("answer:"):
        text = text.rjust(at + len(words))
    text = text if len(text) < len(span) else words
    return f"{text.ljust(len(span) - 1)}\n" if len(text) < len(span) else span


def _words(value: Any, forms: Sequence[str]) -> str | None:
    """Say in words what a JSON value answers: "" where it leaves that open, None for other JSON."""
    if isinstance(value, list):
        return _words_of_list(value, forms)
    if not isinstance(value, dict):
        return None
    labels, scores = value.get("labels"), value.get("scores")
    if isinstance(labels, list) and isinstance(scores, list) and len(labels) == len(scores) > 0:
        return _winner(dict(zip(map(str, labels), scores, strict=True)))
    for name, member in value.items():
        if _is_answer_key(name) and (words := _words_of_member(member, forms)) is not None:
            return words
    table = {_bare(name): member for name, member in value.items() if _bare(name) in forms}
    if table:
        return _winner(table)
    inner = [member for member in value.values() if isinstance(member, dict)]
    return _words(inner[0], forms) if len(inner) == 1 else None


def _bare(name: str) -> str:
    return _IS.sub("", name.strip())


def _is_answer_key(name: str) -> bool:
    return re.sub(r"[\s-]+", "_", _bare(name)) in ANSWER_KEYS


def _words_of_member(value: Any, forms: Sequence[str]) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:g}" if abs(value) < 10**6 else ""
    if isinstance(value, str):
        return " ".join(value.split()) or None
    return _words(value, forms)


def _words_of_list(value: list[Any], forms: Sequence[str]) -> str | None:
    texts = [entry for entry in value if isinstance(entry, str)]
    if texts and len(texts) == len(value):
        return texts[0] if len(texts) == 1 else " and ".join(texts) if forms else ", ".join(texts)
    table: dict[str, Any] = {}
    for entry in value:
        if isinstance(entry, dict):
            names = [v for k, v in entry.items() if _is_answer_key(k) and isinstance(v, str)]
            scores = [entry[key] for key in _SCORE_KEYS if key in entry]
            if names and scores:
                table[names[0]] = scores[0]
        elif isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str):
            table[entry[0]] = entry[1]
    if table and len(table) == len(value):
        return _winner(table)
    return _words(value[0], forms) if len(value) == 1 else None


def _winner(table: dict[str, Any]) -> str:
    """Name the member with the greatest value; `not …` where the only one is false; "" for ties."""
    levels = {name: _LEVELS.get(str(value).strip()) for name, value in table.items()}
    is_of_levels = len(table) > 1 and None not in levels.values()
    numbers = levels if is_of_levels else {name: _number(v) for name, v in table.items()}
    values = [number for number in numbers.values() if number is not None]
    if len(values) < len(table):
        return ""
    most = max(values)
    leaders = [name for name, number in numbers.items() if number == most]
    if len(table) == 1:
        return leaders[0] if most > 0.5 else f"not {leaders[0]}"
    return leaders[0] if len(leaders) == 1 and most > 0 else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return float(bool(value))
    if isinstance(value, (int, float)):
        return float(value) if abs(value) < 10**6 else None
    if isinstance(value, str):
        text = value.strip().rstrip("% ").strip()
        if text in _YES or text in _NO:
            return float(text in _YES)
        with suppress(ValueError):
            return float(text)
    return None

"""Which part of an answer is an answer, and which is the model thinking before it answers.

Models mark their thinking with a pair of tags. What stands between them is no answer; an opening
tag that is never closed leaves nothing behind it to read. Where only the closing tag is there, the
chat template had put the opening one into the prompt, so everything before it was thinking.
"""

from __future__ import annotations

import re

THINKING_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""Opening and closing tags: Qwen, DeepSeek and most others; Claude-like; EXAONE; prompts that ask
for reasoning; Seed-OSS; Magistral; Kimi; gpt-oss. Case is ignored."""

_CLOSING = {opening.lower(): closing.lower() for opening, closing in THINKING_TAGS}
_OPENED_BY = {closing: opening for opening, closing in _CLOSING.items()}
_LONGEST = max(len(tag) for pair in THINKING_TAGS for tag in pair)
_BEGINNINGS = frozenset(tag[:n] for tag in (*_CLOSING, *_OPENED_BY) for n in range(1, len(tag)))
_TAG = re.compile(
    "|".join(re.escape(tag) for tag in (*_CLOSING, *_OPENED_BY)), re.IGNORECASE | re.ASCII
)


def spoken_spans(text: str, *, whole: bool = False) -> tuple[list[tuple[int, int]], bool]:
    """Return where `text` is no thinking, as `(start, end)`, and whether thinking is still open.

    With `whole`, a closing tag alone hides nothing that stands before it.
    """
    spans: list[tuple[int, int]] = []
    start, opened = 0, ""
    for number, found in enumerate(_TAG.finditer(text)):
        tag = found.group().lower()
        if opened:
            if tag == _CLOSING[opened]:
                opened, start = "", found.end()
        elif tag in _CLOSING:
            spans.append((start, found.start()))
            opened = tag
        elif number == 0 and not whole:  # closed but never opened
            start = found.end()
    if not opened:
        spans.append((start, len(text)))
    return spans, bool(opened)


def spoken(response: str, *, whole: bool = False) -> str:
    """Return what is said beside any thinking; empty where that holds no letter and no digit.

    `whole` as for `spoken_spans`: whoever puts a closing tag into a response must hide nothing.
    """
    spans, _ = spoken_spans(response, whole=whole)
    text = " ".join(response[start:end] for start, end in spans).strip()
    return text if any(character.isalnum() for character in text) else ""


def without_unfinished_tag(text: str) -> str:
    """Return `text` without an end that the next characters could turn into a tag."""
    tail = text[-_LONGEST:].lower()
    cut = max((n for n in range(1, len(tail) + 1) if tail[-n:] in _BEGINNINGS), default=0)
    return text[: len(text) - cut]


def open_tag(prompt: str) -> str:
    """Return the opening tag that a prompt ends in, for the answer to begin with; "" without one.

    Only a tag at the very end counts: what documents and texts of the prompt spell out does not.
    """
    found = [tag for tag in _TAG.finditer(prompt) if not prompt[tag.end() :].strip()]
    return found[-1].group() if found and found[-1].group().lower() in _CLOSING else ""


def closes_thinking(text: str) -> bool:
    """Return whether `text` holds a closing tag."""
    return any(found.group().lower() in _OPENED_BY for found in _TAG.finditer(text))


def has_tag(text: str) -> bool:
    """Return whether `text` holds a tag of either kind."""
    return _TAG.search(text) is not None

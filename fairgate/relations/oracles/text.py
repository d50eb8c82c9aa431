"""Which part of an answer is read, and the form in which answers, labels and options are compared.

Models mark their thinking with a pair of tags. What stands between them is no answer; an opening
tag that is never closed leaves nothing behind it to read. Where only the closing tag is there, the
chat template had put the opening one into the prompt, so everything before it was thinking. What
looks like a control token and is none of a known meaning may open or close thinking, or another
part: beside it nothing is read.

Spelling variants are one text (`fold`): full case folding, compatibility normalisation (NFKC), one
hyphen, one apostrophe, no invisible characters; the Turkish dotted and dotless i are i. White space
is one space, or one line end where it holds any. A beginning of a text folds to the beginning of
the folded text, up to its last character, so what was read of an unfinished answer still holds when
the answer goes on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_INVISIBLE = dict.fromkeys(
    [
        0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0,
        *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F),
        *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000),
    ]
)  # fmt: skip
"""Characters that Unicode tells renderers to ignore, soft hyphens and zero-width joiners too."""
_ONE_FORM = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-")
    | dict.fromkeys("\u2019\u2018\u02bc\u0060\u00b4\u2032", "'")
    | {"\u0131": "i"}
)
_DOTTED = re.compile("i\u0307")
_SPACE = re.compile(r"\s{2,}|[^\S ]")
"""All white space but single spaces, which stay."""
_LINE_ENDS = frozenset("\n\r\v\f\x85\u2028\u2029")
_UNSPACED = ("CJK", "HANGUL", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC")


def fold(text: str) -> str:
    """Return the comparable form of `text`; neither end is stripped."""
    if text.isascii():
        plain = text.lower().replace("`", "'")
    else:
        # Accents like U+00B4 would decompose into a space and a mark, so they are replaced first.
        plain = text.translate(_INVISIBLE).translate(_ONE_FORM)
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())
        plain = _DOTTED.sub("i", plain.translate(_ONE_FORM))
    if plain == " ".join(plain.split()):  # only single spaces inside: the usual text
        return plain
    return _SPACE.sub(lambda found: " " if _LINE_ENDS.isdisjoint(found.group()) else "\n", plain)


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Return a whole text as it is compared with another one: without outer space and full stop."""
    return fold(text).replace("\n", " ").strip().rstrip(".")


def is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before it."""
    return not character.isascii() and unicodedata.category(character).startswith("M")


@lru_cache(maxsize=4096)
def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script whose words need no spaces around them."""
    return unicodedata.name(character, "").startswith(_UNSPACED)


Pairs = tuple[tuple[str, str], ...]
"""Opening and closing tags of thinking."""
THINKING_TAGS: Pairs = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("<reflection>", "</reflection>"),
    ("<analysis>", "</analysis>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<chain_of_thought>", "</chain_of_thought>"),
    ("<cot>", "</cot>"),
    ("<rationale>", "</rationale>"),
    ("<monologue>", "</monologue>"),
    ("<internal_thought>", "</internal_thought>"),
    ("<thinking_process>", "</thinking_process>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("[THINKING]", "[/THINKING]"),
    ("[THOUGHT]", "[/THOUGHT]"),
    ("[REASONING]", "[/REASONING]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|think|>", "<|/think|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("<|im_start|>think", "<|im_start|>answer"),
    ("Thinking...\n", "done thinking."),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ("analysis", "assistantfinal"),
)
"""Opening and closing tags of models, and of prompts that ask for reasoning. Case is ignored.

The last pair is what is left of gpt-oss's where special tokens are not printed: its opening word
counts only as the first of an answer, in lower case, with a capital letter behind it.
"""

CONTROL_TOKENS = frozenset(
    """assistant im_start im_end start end message return eot eot_id eom_id endoftext end_of_text
    begin_of_text start_header_id end_header_id start_of_role end_of_role begin_of_solution
    end_of_solution start_response end_response end_of_turn_token chatbot_token turn begin_of_box
    end_of_box begin▁of▁sentence end▁of▁sentence""".split()  # noqa: SIM905
)
"""Names of control tokens that say only whose turn it is, or that the answer begins or ends."""
_CONTROL = re.compile(
    r"<[|\uff5c]/?([^\s<>|\uff5c/]{1,40})[|\uff5c]?>|</?([^\s<>|\uff5c/]{1,40})[|\uff5c]>"
)
"""What a control token looks like: `<|x|>`, `<|x>`, `<x|>`, with `/` or a wide stroke."""


def unknown_control(text: str) -> str:
    """Find what looks like a control token and is none of a known meaning; "" for none."""
    if "<" not in text:
        return ""
    found = (m for m in _CONTROL.finditer(text) if (m[1] or m[2]).lower() not in CONTROL_TOKENS)
    return next((match[0] for match in found), "")


_BARE = re.compile(r"\A\s*analysis(?=\s*[A-Z])")
"""An opening word that is no tag elsewhere."""


class _Tags:
    """The tags of the table, and of a user's own pairs."""

    def __init__(self, own: Pairs = ()) -> None:
        pairs = (*THINKING_TAGS[:-1], *own)
        bare = THINKING_TAGS[-1]
        self.closing = {opening.lower(): closing.lower() for opening, closing in (*pairs, bare)}
        self.closings = frozenset(self.closing.values())
        signs = [*(sign for pair in pairs for sign in pair), bare[1]]
        self.longest = max(map(len, signs))
        self._keys = {s[0] if s[0] in "<[\u25c1" else s.lower() for s in signs}
        self.beginnings = frozenset(s.lower()[:n] for s in signs for n in range(1, len(s)))
        # The longest first: a user's tag may begin like another one.
        signs.sort(key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, signs)), re.IGNORECASE | re.ASCII)

    def found_in(self, text: str) -> Iterator[re.Match[str]]:
        """Find the tags, after a cheap look for their beginnings."""
        lower = text.lower()
        return self.pattern.finditer(text) if any(key in lower for key in self._keys) else iter(())


@lru_cache(maxsize=64)
def _tags(own: Pairs) -> _Tags:
    return _Tags(own)


def spoken_spans(
    text: str, own: Pairs = (), *, whole: bool = False
) -> tuple[list[tuple[int, int]], bool]:
    """List where `text` is no thinking, as `(start, end)`, and tell whether thinking is still open.

    `own`: pairs of tags beside those of the table. With `whole`, a closing tag alone hides nothing
    that stands before it. Nowhere, where an unknown control token stands beside the thinking.
    """
    tags = _tags(own)
    spans: list[tuple[int, int]] = []
    start, opened = 0, ""
    bare = _BARE.match(text)
    if bare is not None:
        opened = THINKING_TAGS[-1][0]
    for number, match in enumerate(tags.found_in(text)):
        tag = match.group().lower()
        if opened:
            if tag == tags.closing[opened]:
                opened, start = "", match.end()
        elif tag in tags.closing:
            spans.append((start, match.start()))
            opened = tag
        elif number == 0 and not whole:  # closed but never opened
            start = match.end()
    if not opened:
        spans.append((start, len(text)))
    if any(unknown_control(text[start:end]) for start, end in spans):
        return [], False
    return spans, bool(opened)


def spoken(response: str, own: Pairs = (), *, whole: bool = False) -> str:
    """Keep what is said beside any thinking; empty where that holds no letter and no digit.

    `own` and `whole` as for `spoken_spans`: whoever puts a closing tag into a response must hide
    nothing.
    """
    spans, _ = spoken_spans(response, own, whole=whole)
    text = " ".join(response[start:end] for start, end in spans).strip()
    return text if any(character.isalnum() for character in text) else ""


def without_unfinished_tag(text: str, own: Pairs = ()) -> str:
    """Cut off an end of `text` that the next characters could turn into a tag."""
    tags = _tags(own)
    tail = text[-tags.longest :].lower()
    ends = (n for n in range(1, len(tail) + 1) if tail[-n:] in tags.beginnings)
    return text[: len(text) - max(ends, default=0)]


def with_known_tags(text: str, own: Pairs) -> str:
    """Write a user's own tags of thinking as tags that every oracle knows."""
    for opening, closing in own:
        for tag, common in zip((closing, opening), reversed(THINKING_TAGS[0]), strict=True):
            text = re.sub(re.escape(tag), common, text, flags=re.IGNORECASE | re.ASCII)
    return text


def open_tag(prompt: str) -> str:
    """Find the opening tag that a prompt ends in, for the answer to begin with; "" without one.

    Only a tag at the very end counts: what documents and texts of the prompt spell out does not.
    """
    tags = _tags(())
    last_tags = [tag for tag in tags.pattern.finditer(prompt) if not prompt[tag.end() :].strip()]
    return (
        last_tags[-1].group() if last_tags and last_tags[-1].group().lower() in tags.closing else ""
    )


def closes_thinking(text: str, own: Pairs = ()) -> bool:
    """Tell whether `text` holds a closing tag."""
    tags = _tags(own)
    return any(match.group().lower() in tags.closings for match in tags.pattern.finditer(text))


def has_tag(text: str) -> bool:
    """Tell whether `text` holds a tag of either kind."""
    return _tags(()).pattern.search(text) is not None

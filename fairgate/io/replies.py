"""From an application's output, as JSON values, to the reply that is judged.

The same rules for whatever brought the values here, over HTTP, from a program or a function.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from fairgate.domain.errors import ApplicationError
from fairgate.domain.executions import Document, Execution, Served, usage_of
from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import concealed_in_answer, harmless, quoted, shown
from fairgate.io.http_messages import cache_hit, fallback
from fairgate.io.inner_errors import inner_error

Step = str | int | None
"""Name of a member, position in a list, or None for all entries of a list."""
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)|\[(?:(?P<position>-?\d{1,6})|(?P<all>\*)|'(?P<quoted>[^'\\]*)'|"""
    r""""(?P<double>[^"\\]*)")\]"""
)
_JAVASCRIPT = re.compile(
    r"""\bjson((?:\??\.[^\W\d]\w*|(?:\?\.)?\[(?:\d{1,6}|'[^'\\]*'|"[^"\\]*")\])+)"""
)
"""What promptfoo's `transformResponse` says of the answer: `json.choices[0].message.content`."""
MOST_DOCUMENTS = 1000
_MOST_CHARACTERS = 1_000_000
_MOST_NAME = 200
_HIT = re.compile(r"(?:is_|from_|was_)?cached|from_?cache|cache_?hit|gptcache", re.IGNORECASE)
_SHOWN_NAMES = 8
_TEXT_PARTS = ("text", "output_text", "refusal")
_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")
"""Types of the parts of a message that hold what is said, and what is not."""
_GREATEST = 10**300
"""Whole numbers from here on are no identifiers: Python does not even write very long ones."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A part of a JSON value: `$.answer`, `$.contexts[*].text`, `$['odd name'][0]`.

    The subset of JSONPath (RFC 9535) that names parts: members, positions and wildcards. No
    filters, slices or descendants, so a path never means something else than it seems to. Equal
    texts, equal paths.
    """

    text: str
    steps: tuple[Step, ...]

    @property
    def is_single(self) -> bool:
        """Return whether the path names one part at most."""
        return None not in self.steps

    def find(self, value: Any) -> list[Any]:
        """Return the parts of a JSON value that the path names, in their order."""
        parts = [value]
        for step in self.steps:
            parts = [inner for outer in parts for inner in _inside(outer, step)]
        return parts


def json_path(text: str) -> JsonPath:
    """Return the path that a text means. Raises ValueError with what was expected."""
    script = _JAVASCRIPT.search(text)
    if script is not None and not text.startswith("$"):
        path = f"${script[1].replace('?.[', '[').replace('?.', '.')}"
        raise ValueError(f"found {quoted(text)}, which is JavaScript; write `{path[:200]}`")
    if not text.startswith("$"):
        raise ValueError(f"found {quoted(text)}, expected a path such as `$.answer`")
    steps: list[Step] = []
    start = 1
    while start < len(text):
        match = _STEP.match(text, start)
        if match is None:
            raise ValueError(
                f"found {quoted(text[start:])} behind {quoted(text[:start])}, expected `.name`, "
                "`['name']`, `[0]` or `[*]`"
            )
        alternatives = match["name"], match["quoted"], match["double"]
        position = None if match["all"] else int(match["position"] or 0)
        steps.append(
            next(
                (text_of_step for text_of_step in alternatives if text_of_step is not None),
                position,
            )
        )
        start = match.end()
    return JsonPath(text, tuple(steps))


def _inside(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    if not isinstance(value, list):
        return []
    if step is None:
        return value
    return [value[step]] if -len(value) <= step < len(value) else []


TEXT, ID, LABEL, SCORE = (json_path(f"$.{name}") for name in ("text", "id", "label", "score"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPaths:
    """The places of answer and documents in a reply."""

    answer: JsonPath | None
    """None: documents alone are expected."""
    documents: JsonPath | None = None
    """The documents one by one (`$.contexts[*]`), or one list of them; None: not returned."""
    may_lack_documents: bool = False
    """Whether a reply without them has no documents, and is not an error."""
    text: JsonPath = TEXT
    id: JsonPath = ID
    label: JsonPath = LABEL
    score: JsonPath = SCORE

    def lacks(self, value: Any) -> bool:
        """Return whether a JSON value has no answer, or no documents where they alone are asked."""
        path = self.answer or self.documents
        return path is not None and path.find(value) in ([], [None])


class JsonPaths(ReplyPaths):
    """The same where the answer may be any JSON value; what is no text is written as one."""


def parsed_json(raw: bytes) -> Any:
    """Return the JSON value of an answer. Raises ApplicationError."""
    try:
        return read_json(raw, strict=False)
    except JsonError as error:
        beginning = harmless(raw[:200].decode("utf-8", "replace").strip()[:80])
        raise ApplicationError(
            f"the answer is no JSON ({error}); it begins {beginning!r}; expected an object"
        ) from None


def reply_of(value: Any, paths: ReplyPaths) -> Execution:
    """Return answer and documents. Raises ApplicationError where they are not to be found."""
    return Execution(response=_answer(value, paths), documents=_documents(value, paths))


def served_of(
    value: Any, headers: Mapping[str, str] | None = None, *, characters: int = 0
) -> Served | None:
    """Return what a reply says of itself: model, fingerprint, provider, `usage`, a cache.

    Gateways name the model that was asked for where another one has answered in its place: their
    header on it is a part of the name.
    """
    named = _told_name(value, "model")
    states = (_told_name(value, key) for key in ("provider", "system_fingerprint"))
    fingerprint = ", ".join(filter(None, states)) or None
    if instead := fallback(headers or {}):
        named = f"{named or 'a model'} ({instead})"
    served = Served(
        model=None if named is None else harmless(named),
        fingerprint=None if fingerprint is None else harmless(fingerprint),
        cache=cache_hit(headers or {}) or _told_hit(value),
        prompt_tokens=usage_of(value).input,
    )
    return None if served == Served() else replace(served, characters=characters)


def _told_hit(value: Any, depth: int = 3) -> str | None:
    """Return the field by which a reply comes from a cache, as Bifrost and GPTCache tell it."""
    if not isinstance(value, Mapping) or not depth:
        return None
    for name, inner in value.items():
        if inner is True and _HIT.fullmatch(str(name)):
            return harmless(f"{name}: true")
        if hit := _told_hit(inner, depth - 1):
            return hit
    return None


def _told_name(value: Any, key: str) -> str | None:
    name = value.get(key) if isinstance(value, Mapping) else None
    return name[:_MOST_NAME] if isinstance(name, str) and name.strip() else None


def without_secrets(reply: Execution, secrets: Sequence[str]) -> Execution:
    """Return the reply with no secret in its texts: they are written to files and shown."""
    if not secrets:
        return reply

    def clean(text: str | None) -> str | None:
        return None if text is None else concealed_in_answer(text, secrets)

    documents = reply.documents
    if documents is not None:
        documents = tuple(
            replace(
                document,
                id=clean(document.id),
                text=clean(document.text),
                label=clean(document.label),
            )
            for document in documents
        )
    return reply._replace(
        response=concealed_in_answer(reply.response or "", secrets), documents=documents
    )


def text_of_parts(content: Any) -> Any:
    """Return a message's content as one text where it comes in typed parts; else as it is.

    `[{"type": "text", "text": …}, …]`: the texts, one after the other, and the words of a refusal.
    Parts that hold thinking are left out, and beside a text those without one, such as references.
    """
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list) or not parts:
        return content
    texts: list[str] = []
    known = (*_TEXT_PARTS, *_THINKING_PARTS)
    kinds = [part.get("type") if isinstance(part, Mapping) else None for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind not in known and (not isinstance(kind, str) or "text" in part):
            return content
        if kind in _TEXT_PARTS:
            text = next((part[name] for name in ("text", "refusal") if name in part), None)
            text = text.get("value") if isinstance(text, Mapping) else text
            if not isinstance(text, str):
                return content
            texts.append(text)
    return "".join(texts) if texts or set(kinds) <= {*known} else content


def _answer(value: Any, paths: ReplyPaths) -> str:
    if paths.answer is None:
        return ""
    parts = paths.answer.find(value)
    if parts in ([], [None]) and (inner := inner_error(value)) is not None:
        raise ApplicationError(
            f"instead of an answer at `{paths.answer.text}`, found {outline(value)}, which tells "
            f"an error: {inner.words!r}"
        )
    if not parts:
        raise ApplicationError(
            f"the answer has nothing at `{paths.answer.text}`, found {outline(value)}; name the "
            f"place of the answer's text in `response.answer`{_perhaps(value)}"
        )
    if len(parts) > 1:
        raise ApplicationError(f"`{paths.answer.text}` names {len(parts)} parts; expected one text")
    # No text at all is what a system gives that refuses: an answer that nothing can be read in.
    answer = "" if parts[0] is None else parts[0]
    if not isinstance(paths, JsonPaths):
        answer = text_of_parts(answer)
    elif not isinstance(answer, str):
        with suppress(TypeError, ValueError, RecursionError):
            answer = json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, bool):  # `{"blocked": false}`: a label
        return json.dumps(answer)
    return _text(answer, paths.answer.text)


_PLACES = tuple(
    json_path(text)
    for text in (
        *("$.choices[0].message.content", "$.choices[0].text", "$.output[-1].content[0].text"),
        *("$.message.content", "$.content[0].text", "$.candidates[0].content.parts[0].text"),
        *("$[0].generated_text", "$.generated_text", "$.output_text", "$.response", "$.answer"),
        *("$.result", "$.output", "$.text", "$.content", "$.message"),
    )
)
"""Where replies of well-known APIs have their text."""


def place_of_text(value: Any) -> str:
    """Return the path at which a reply of a well-known API has its text; empty where none has."""
    found = (path for path in _PLACES if any(isinstance(t, str) and t for t in path.find(value)))
    return next((path.text for path in found), "")


def _perhaps(value: Any) -> str:
    place = place_of_text(value)
    return f", which may be `{place}`" if place else ""


def _documents(value: Any, paths: ReplyPaths) -> tuple[Document, ...] | None:
    if paths.documents is None:
        return None
    path = paths.documents
    parts: Any = path.find(value)
    if paths.may_lack_documents and parts in ([], [None]):
        return None
    if path.is_single:
        parts = parts[0] if parts else None
    elif not parts:  # a wildcard finds nothing in a list that is empty, too
        around = JsonPath(path.text, path.steps[: path.steps.index(None)]).find(value)
        parts = [] if around and isinstance(around[0], list) else None
    if not isinstance(parts, list):
        raise ApplicationError(
            f"the answer has no list at `{path.text}`, found {outline(value)}; name the place of "
            "the documents, or leave out `documents` where the system returns none"
        )
    if len(parts) > MOST_DOCUMENTS:
        raise ApplicationError(f"{len(parts):,} documents; expected at most {MOST_DOCUMENTS:,}")
    return tuple(_document(item, paths) for item in parts)


def _document(item: Any, paths: ReplyPaths) -> Document:
    if isinstance(item, str):
        return Document(text=_text(item, "a document"))
    if not isinstance(item, dict):
        raise ApplicationError(f"a document is {shown(item)}; expected a text or an object")
    places = (paths.text, paths.id, paths.label, paths.score)
    text, name, label, score = (next(iter(path.find(item)), None) for path in places)
    if text is None and name is None:
        raise ApplicationError(
            f"a document has neither `{paths.text.text}` nor `{paths.id.text}`, found "
            f"{outline(item)}; name the places in `document`"
        )
    return Document(
        id=None if name is None else _name(name, paths.id.text),
        text=None if text is None else _text(text, paths.text.text),
        label=None if label is None else _name(label, paths.label.text),
        score=None if score is None else _number(score, paths.score.text),
    )


def _name(value: Any, path: str) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _GREATEST
    return str(value) if is_number else _text(value, path)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ApplicationError(f"`{path}` is {shown(value)}; expected text")
    if len(value) > _MOST_CHARACTERS:
        raise ApplicationError(
            f"`{path}` has {len(value):,} characters, at most {_MOST_CHARACTERS:,}"
        )
    # JSON can write half of a character (a lone surrogate), which no file can hold.
    return value.encode("utf-8", "replace").decode("utf-8")


def _number(value: Any, path: str) -> float:
    try:
        # Also the numbers of other libraries: numpy's are no `float`.
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else None
    except OverflowError:
        number = None
    if number is None or not math.isfinite(number):
        raise ApplicationError(f"`{path}` is {shown(value)}; expected a finite number")
    return number


def outline(value: Any) -> str:
    """Return for a message the shape of what came back, without its content."""
    if not isinstance(value, Mapping):
        return shown(value) if not isinstance(value, str) else "a text"
    names = [f"`{harmless(str(name)[:40])}`" for name in list(value)[:_SHOWN_NAMES]]
    more = " and more" if len(value) > _SHOWN_NAMES else ""
    return f"an object with {', '.join(names)}{more}" if names else "an empty object"

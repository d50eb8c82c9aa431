"""Errors that a server puts into an answer whose status says that all is well.

Gateways, hosted models and applications do this in a few forms: `{"error": {"message", "code"}}`,
a list of one such object, `{"detail": …}`, `{"choices": [{"error": …}]}`, a code beside a message.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairgate.domain.json_text import JsonError, read_json
from fairgate.domain.wording import harmless

_ERRORS = ("error", "Error", "err", "fault")
_MESSAGES = (
    *("message", "msg", "status_msg", "detail", "description", "reason", "title"),
    *("Message", "errorMessage", "error_message", "error_msg", "errmsg", "faultstring"),
)
_CODES_OF_ERRORS = (
    *("code", "status_code", "Code", "statusCode", "errorCode", "error_code"),
    *("errcode", "errorType", "__type"),
)
_CODES = (*_CODES_OF_ERRORS, "status", "http_status", "type", "kind")
_WORDS = 200
TOO_LONG = (
    r"context.?(?:length|size|window)|(?<!tokens is )(?<!tokens are )\btoo (?:long|large|big)\b|"
    r"too many (?:input )?tokens|tokens?\b.{0,60}\b(?:exceed|must (?:be|have)|maximum)|"
    r"exceeds?\b.{0,60}\btokens?\b|longer than the (?:maximum|model)|reduce the length|input length"
)
"""How servers of models say that a prompt does not fit."""
_TOO_OFTEN = (
    r"rate.?limit|too.?many(?! (?:input )?tokens)|throttl|quota|exhausted|request limit|"
    "limited to [0-9]|per (?:minute|second|day)|速率|频率|限流"
)
_STATUSES = (
    (429, _TOO_OFTEN),
    (503, "overload|unavailable|capacity|busy|warming|loading|try again"),
    (504, "time.?out|timed out|deadline"),
    (401, "unauthori[sz]ed|authenticat|api.?key|credential"),
    (403, "permission|forbidden|not allowed"),
    (404, "not.?found|does not exist|unknown model"),
    (413, TOO_LONG),
    (400, "invalid|bad.?request|unsupported|unprocessable|validation|missing"),
)
"""Statuses, and the words of codes and messages that mean them; the first that fits counts."""
_UNKNOWN = 500
_WITHHELD = 400
_INNER = ("response", "result", "data", "output", "body")
"""Members in which applications hand on what another one answered."""
_BLOCKED = ("blockReason", "finishReason", "block_reason", "finish_reason")
_BROKEN = r"error|abort|cancel|fail|insufficient|time.?out|overload"
"""Reasons to end by which an answer is half of one: OpenRouter's, DeepSeek's, SGLang's, Z.AI's."""


class InnerError(NamedTuple):
    """What a server says is wrong."""

    status: int
    """The HTTP status that it names or means; 500 where neither can be told."""
    words: str
    """Its own words, on one line, at most 200 characters; secrets are still in them."""


def inner_error(value: Any) -> InnerError | None:
    """Return the error in an answer's JSON value; None where it holds none.

    Called where the value lacks the answer, or half of it: a message alone, or a reason to withhold
    it, counts.
    """
    for part in _places(value):
        if isinstance(part, str) and part.strip():
            return InnerError(status_of((), part), _line(part))
        if isinstance(part, Mapping) and part:
            codes = [part[name] for name in _CODES if part.get(name) not in (None, "", 0)]
            words = _words(part)
            return InnerError(status_of(codes, words), _line(words or repr(codes or dict(part))))
    if not isinstance(value, Mapping):
        return None
    for name in _INNER:
        inner = value.get(name)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            with contextlib.suppress(JsonError):
                inner = read_json(inner, strict=False)
        if isinstance(inner, Mapping) and (error := inner_error(inner)) is not None:
            return error
    if isinstance(broken := _reason_to_end(value), str) and is_broken(value):
        return InnerError(status_of((broken,), ""), f"finish_reason: {_line(broken)}")
    words = _words(value)
    if words and (status := status_of((), words)) != _UNKNOWN:
        return InnerError(status, _line(words))
    reason = _reason_to_withhold(value)
    return InnerError(_WITHHELD, f"no answer, {reason}") if reason else None


def is_broken(value: Any) -> bool:
    """Return whether a completion ended by an error, so that its text is half an answer at best."""
    first, reason = _first_choice(value), _reason_to_end(value)
    is_reason = isinstance(reason, str) and re.search(_BROKEN, reason, re.IGNORECASE) is not None
    return is_reason or (isinstance(first, Mapping) and bool(first.get("error")))


def _reason_to_end(value: Any) -> Any:
    first = _first_choice(value)
    return first.get("finish_reason") if isinstance(first, Mapping) else None


def _first_choice(value: Any) -> Any:
    choices = value.get("choices") if isinstance(value, Mapping) else None
    return choices[0] if isinstance(choices, list) and choices else None


def _reason_to_withhold(value: Mapping[Any, Any]) -> str:
    """Return why a model's answer is not there, as Gemini tells it; empty where nothing is told."""
    candidates = value.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    for part in (value.get("promptFeedback"), first):
        if not isinstance(part, Mapping):
            continue
        for name in _BLOCKED:
            if isinstance(reason := part.get(name), str) and reason not in ("", "STOP"):
                return f"{name}: {_line(reason)}"
    return ""


def _places(value: Any) -> Iterator[Any]:
    """Yield the parts of an answer that tell an error, the most explicit first."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, Mapping):
        return
    for outer in (value, _first_choice(value)):
        if isinstance(outer, Mapping):
            yield from map(outer.get, _ERRORS)
            errors = outer.get("errors")
            yield errors[0] if isinstance(errors, list) and errors else errors
            yield value if outer.get("error") is True else None
    yield value.get("base_resp")
    inner = value.get("status")
    yield inner.get("error") if isinstance(inner, Mapping) else None
    says_so = {str(value.get(name)).lower() for name in ("object", "type", "status")}
    failed = value.get("success") is False or value.get("ok") is False
    if failed or says_so & {"error", "failed", "failure"}:
        yield value
    status = value.get("status")
    if isinstance(status, int) and 400 <= status <= 599:  # RFC 9457
        yield value
    yield _validation(value.get("detail"))
    if any(name in value for name in _CODES_OF_ERRORS):
        yield value if _words(value) else None


def _validation(detail: Any) -> Any:
    """Return FastAPI's `detail`: a text, or the first of a list of validation errors."""
    return detail[0] if isinstance(detail, list) and detail else detail


def _words(part: Mapping[Any, Any]) -> str:
    texts = (part.get(name) for name in _MESSAGES)
    words = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    if words and isinstance(place := part.get("loc"), list):  # FastAPI's: the field is named here
        words = f"{' '.join(map(str, place))}: {words}"
    # OpenRouter says "Provider returned error" and puts the provider's own words here.
    metadata = part.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{words}: {raw}" if words and isinstance(raw, str) else words


def status_of(codes: Any, words: str) -> int:
    """Return the HTTP status that codes and words mean; 500 where none can be told."""
    for code in codes:
        number = int(code) if isinstance(code, str) and re.fullmatch("[45][0-9]{2}", code) else code
        if isinstance(number, int) and not isinstance(number, bool) and 400 <= number <= 599:
            return number
    for text in (" ".join(map(str, codes)), words):
        for status, pattern in _STATUSES:
            if re.search(pattern, text[:2000], re.IGNORECASE):
                return status
    return _UNKNOWN


def _line(text: str) -> str:
    return harmless(" ".join(text[:2000].split())[:_WORDS])

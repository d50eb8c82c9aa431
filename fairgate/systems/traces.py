"""Traces of a RAG application: what OpenInference's spans tell of one question.

A trace is one question. What it was, what was answered and what was retrieved is taken from spans
with the attribute `openinference.span.kind`; others are passed over. Source: OpenInference's
semantic conventions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairgate.domain.errors import DataError
from fairgate.domain.json_text import JsonError, read_json
from fairgate.io.lines import capped
from fairgate.systems.otlp import Span, at, entries, read_spans

_MESSAGES = "llm.output_messages"
_QUESTION = ("query", "question", "input", "user_input", "text", "prompt")
_ANSWER = ("answer", "output", "response", "result", "text", "content")
"""Names of the one text that counts, where an input or output is a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one trace tells; None where it does not."""

    place: str
    question: str | None
    answer: str | None
    """None also where the application failed, or where it is open which model's answer counts."""
    documents: tuple[Mapping[str, Any], ...] | None
    """`id`, `text`, `label` and `score` of each as they were written, in rank order."""


def read_traces(path: str) -> list[Trace]:
    """Return the traces with OpenInference's spans, in the order of the file.

    Raises DataError with the place for what is no OTLP, and where no span is of OpenInference.
    """
    traces = read_spans(path)
    found = [
        _trace(f"{path}: trace {capped(name)}", spans)
        for name, spans in traces.items()
        if any(_kind(span) for span in spans.values())
    ]
    if not found:
        raise DataError(
            f"{path}: none of its {sum(map(len, traces.values())):,} spans has the attribute "
            "`openinference.span.kind`; expected the attributes of OpenInference: instrument the "
            "application with one of its packages, and export the traces as JSON"
        )
    return found


def _kind(span: Span) -> str:
    return str(at(span.tree, "openinference.span.kind") or "").upper()


def _trace(place: str, spans: Mapping[str, Span]) -> Trace:
    ordered = sorted((span for span in spans.values() if _kind(span)), key=lambda span: span.start)
    tops = [span for span in ordered if not _has_outer(span, spans)]
    retrievers = [span for span in ordered if _kind(span) == "RETRIEVER"]
    asked = (_text_of(span, "input", _QUESTION) for span in (*tops, *retrievers))
    return Trace(
        place=place,
        question=next((text for text in asked if text is not None), None),
        answer=_answer(ordered, tops),
        documents=_documents(ordered, retrievers),
    )


def _has_outer(span: Span, spans: Mapping[str, Span]) -> bool:
    """Return whether a span of OpenInference's is around this one, however far out."""
    seen = {span.id}
    while (outer := spans.get(span.parent)) is not None and outer.id not in seen:
        if _kind(outer):
            return True
        seen.add(outer.id)
        span = outer
    return False


def _answer(ordered: Iterable[Span], tops: list[Span]) -> str | None:
    """Return what the outermost span gave, else what the only model did."""
    models = [span for span in ordered if _kind(span) == "LLM"]
    only = models[0] if len(models) == 1 else None
    whole = tops[0] if len(tops) == 1 else only
    if whole is None or whole.failed:
        return None
    text = _output_of(whole)
    return _output_of(only) if text is None and only is not None and not only.failed else text


def _output_of(span: Span) -> str | None:
    """Return a model's message, else the text of a span's output."""
    messages = [at(each, "message.content") for each in entries(at(span.tree, _MESSAGES))]
    texts = [text for text in messages if isinstance(text, str)]
    return texts[0] if texts else _text_of(span, "output", _ANSWER)


def _text_of(span: Span, side: str, names: tuple[str, ...]) -> str | None:
    """Return the text of a span's input or output; of an object, the one that counts."""
    value = at(span.tree, f"{side}.value")
    if not isinstance(value, str):
        return None
    if at(span.tree, f"{side}.mime_type") != "application/json":
        return value
    try:
        found = read_json(value, strict=False)
    except JsonError:  # an attribute that a limit cut off
        return None
    if isinstance(found, dict):
        texts = {name: text for name, text in found.items() if isinstance(text, str)}
        named = [texts[name] for name in names if name in texts]
        only = list(texts.values()) if len(texts) == 1 else []
        found = next(iter(named or only), None)
    return found if isinstance(found, str) else None


def _documents(
    ordered: Iterable[Span], retrievers: Iterable[Span]
) -> tuple[Mapping[str, Any], ...] | None:
    """Return what the last reranker left, else what the retrievers found, each document once."""
    reranked = [
        entries(at(span.tree, "reranker.output_documents"))
        for span in ordered
        if _kind(span) == "RERANKER"
    ]
    found = [entries(at(span.tree, "retrieval.documents")) for span in retrievers]
    lists = [listed for listed in reranked if listed][-1:] or found
    documents: dict[tuple[bool, str], Mapping[str, Any]] = {}
    for listed in lists:
        for entry in listed:
            one = _document(at(entry, "document"))
            is_named = one["id"] is not None
            documents.setdefault((is_named, str(one["id"] if is_named else one["text"])), one)
    return tuple(documents.values()) or None


def _document(tree: Any) -> Mapping[str, Any]:
    about = at(tree, "metadata")
    if isinstance(about, str):
        try:
            about = read_json(about, strict=False)
        except JsonError:
            about = None
    return {
        "id": at(tree, "id"),
        "text": at(tree, "content"),
        "label": about.get("label") if isinstance(about, dict) else None,
        "score": at(tree, "score"),
    }

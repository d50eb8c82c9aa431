"""The exchange with an application that answers by itself: question, reply, and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairgate.domain.executions import Document

_MOST = 10**12
"""Of tokens, and of money; what is reported beyond is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to an application. Equal questions are asked once."""

    query: str
    """The test case's text alone, as a retriever searches for it."""
    text: str
    """The test case as a prompt shows it: with its options, where it has some."""
    instruction: str
    """What is to be done with the text; empty where the suite has none."""
    prompt: str
    """Instruction and text as one message, without documents."""
    options: tuple[str, ...] = ()
    """Answers to choose from, in the order to show them."""
    documents: tuple[Document, ...] | None = None
    """To be shown instead of what the application would retrieve; None: it retrieves itself."""
    top_k: int = 0
    """How many documents a retriever is asked for; 0 where the application decides itself."""
    repeat: int = 0
    """How often the same was asked before (`repeats`): 0 the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back. An empty answer is an answer; documents are None where none are returned."""

    answer: str
    documents: tuple[Document, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one question; None where they are not reported."""

    input: int | None = None
    output: int | None = None
    total: int | None = None
    money: float | None = None

    @property
    def tokens(self) -> int | None:
        """Return all tokens: as reported, else those read and written together."""
        if self.total is not None or self.input is None or self.output is None:
            return self.total
        return self.input + self.output


Used = Callable[[Usage], None]
"""Receives what each answer cost."""


def not_counted(usage: Usage) -> None:
    """Count nothing."""
    del usage


def usage_of(value: Any) -> Usage:
    """Return what stands under `usage` in an answer, in the form of OpenAI's endpoints.

    `prompt_tokens`, `completion_tokens` (or `input_tokens`, `output_tokens`), `total_tokens` and
    `cost`, which some gateways add. Whatever is no count, or below zero, is not reported.
    """
    reported = value.get("usage") if isinstance(value, Mapping) else None
    if not isinstance(reported, Mapping):
        return Usage()
    return Usage(
        input=_count(reported, "prompt_tokens", "input_tokens"),
        output=_count(reported, "completion_tokens", "output_tokens"),
        total=_count(reported, "total_tokens"),
        money=_money(reported.get("cost")),
    )


def _count(reported: Mapping[Any, Any], *names: str) -> int | None:
    for name in names:
        found = reported.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _MOST:
            return found
    return None


def _money(found: Any) -> float | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= _MOST and math.isfinite(found) else None

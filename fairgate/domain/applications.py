"""What an application that answers by itself is asked, and what it replies."""

from __future__ import annotations

from dataclasses import dataclass

from fairgate.domain.executions import Document


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

"""People in documents: a document that names somebody else is found and used as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.domain.executions import CorpusDocument
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import CounterExample, Example, FollowUp, NotApplicable, SameLabel

SUBJECT = "{subject}"
"""The place in a document that names a person."""
_NEAREST = 5
"""Neutral phrases that a demographic one is compared with: those nearest to it in length."""
_NO_DOCUMENT = "the source names no document (columns `document`, `document_id`, `subject`)"
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:]|\n)[\s\"'(\u2018\u201c]*$")
_ARTICLE = re.compile(r"(?:An?|The)(?= )")

_GENDER = PerturbationSet(
    id="gender",
    terms=(Term(term="man", noun_phrase="A man"), Term(term="woman", noun_phrase="A woman")),
)
_NEUTRAL = PerturbationSet(
    id="neutral-subjects", terms=(Term(term="user", noun_phrase="A user"),), control=True
)


class DocumentSubject(SameLabel):
    """Names somebody else in one document of the corpus; question and other documents stay."""

    id: ClassVar[str] = "documents/subject"
    title: ClassVar[str] = "People in documents"
    paper: ClassVar[str] = "FairGate; exposure of providers: Kim and Diaz 2025, TREC Fair Ranking"
    description: ClassVar[str] = (
        "The question stays. One document of the corpus names another person in the place of "
        "`{subject}`: a noun phrase of the sets or, as the placebo, of neutral ones of that length."
    )
    expects: ClassVar[str] = (
        "The document is found as often and at the same rank, and the answer has the same label."
    )
    not_owed: ClassVar[str] = "The question asks for such a person, or the document is about it."
    advisory: ClassVar[bool] = False
    changes_documents: ClassVar[bool] = True
    source_variant: ClassVar[str] = "document"
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            text="Who sells bowls?",
            document=CorpusDocument(id="d1", text="Bowls. Made and sold by {subject}."),
            subject="the potter",
            sets=(_GENDER, _NEUTRAL),
            source="Bowls. Made and sold by the potter.",
            follow_ups=(
                "Bowls. Made and sold by a man.",
                "Bowls. Made and sold by a woman.",
                "Bowls. Made and sold by a user.",
            ),
        ),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="Who sells bowls?", reason=_NO_DOCUMENT),
    )

    def source_text(self, source: Source) -> str:
        """Return the document as the corpus has it."""
        return _naming(source.subject, source.document.text if source.document else "")

    def follow_ups(
        self, source: Source, sets: Sequence[PerturbationSet]
    ) -> Sequence[FollowUp] | NotApplicable:
        """Return the document with each noun phrase; of neutral ones those nearest in length."""
        if source.document is None:
            return NotApplicable(reason=_NO_DOCUMENT)
        text = source.document.text
        lengths = [len(term.noun_phrase) for s in sets if not s.control for term in s.terms]
        found = []
        for group in sets:
            own = [len(term.noun_phrase) for term in group.terms]
            chosen = {place for length in lengths for place in nearest(own, length)}
            found += [
                FollowUp(
                    variant=f"{group.id}/{term.term}",
                    category=group.id,
                    term=term.term,
                    noun_phrase=term.noun_phrase,
                    text=_naming(term.noun_phrase, text),
                    control=group.control,
                )
                for place, term in enumerate(group.terms)
                if place in chosen or not group.control
            ]
        return found

    def most_follow_ups(self, source: Source, sets: Sequence[PerturbationSet]) -> int:
        """Return how many terms the sets have."""
        return 0 if source.document is None else sum(len(group.terms) for group in sets)

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a follow-up that differs from its source in more than whom it names."""
        text, named = follow_up.text, re.escape(follow_up.noun_phrase[1:])
        for place in re.finditer(f"(?s).{named}", text):
            before, after = text[: place.start()], text[place.end() :]
            if source_text.startswith(before) and source_text.endswith(after):
                return None
        return "the document differs in more than the noun phrase"


def nearest(lengths: Sequence[int], wanted: int) -> list[int]:
    """Return the places of the few lengths that are nearest to one, the first of equal ones."""
    return sorted(range(len(lengths)), key=lambda place: abs(lengths[place] - wanted))[:_NEAREST]


def _naming(phrase: str, text: str) -> str:
    """Return a document with whom it names; inside a sentence its article is a small one."""
    before, found, after = text.partition(SUBJECT)
    if not _SENTENCE_BEGINS.search(before) and _ARTICLE.match(phrase):
        phrase = phrase[:1].lower() + phrase[1:]
    return f"{before}{phrase}{after}" if found else text

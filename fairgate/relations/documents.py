"""People in documents: a document that names somebody else is found and used as it was."""

from __future__ import annotations

import re
from typing import ClassVar

from fairgate.domain.cases import Source
from fairgate.domain.executions import CorpusDocument
from fairgate.metrics import exposure
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import CounterExample, Example, FollowUp, Varies
from fairgate.relations.set_equivalence import SetEquivalence

PLACE = re.compile(r"\{([^{}]+)\}")
"""A place in a document that names the person, with whom the corpus names there."""
_NO_DOCUMENT = "the source names no document (columns `document` and `document_id`)"
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:]|\n)[\s\"'(\u2018\u201c]*$")
_ARTICLES = ("A ", "An ", "The ")
_GENDER = PerturbationSet(id="gender", terms=(Term(term="woman", noun_phrase="A woman"),))


class DocumentSubject(SetEquivalence):
    """Names somebody else in one document of the corpus; question and other documents stay."""

    id: ClassVar[str] = "documents/subject"
    title: ClassVar[str] = "People in documents"
    paper: ClassVar[str] = "FairGate; exposure of providers: Kim and Diaz 2025, TREC Fair Ranking"
    description: ClassVar[str] = (
        "The question stays. The follow-up is a document of the corpus with another person in each "
        "place that braces mark: a noun phrase of the sets, or a neutral one."
    )
    expects: ClassVar[str] = (
        "The document is found as often and at the same rank, and the answer has the same label."
    )
    not_owed: ClassVar[str] = "The question asks for such a person, or the document is about it."
    varies: ClassVar[Varies] = Varies.DOCUMENTS
    own_columns: ClassVar[tuple[str, ...]] = exposure.COLUMNS
    source_variant: ClassVar[str] = "document"
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            text="Who sells bowls?",
            document=CorpusDocument(id="d1", text="Bowls, made by {the potter}."),
            sets=(_GENDER,),
            source="Bowls, made by the potter.",
            follow_ups=("Bowls, made by a woman.",),
        ),
    )
    NOT_APPLICABLE: ClassVar[tuple[CounterExample, ...]] = (
        CounterExample(text="Who sells bowls?", reason=_NO_DOCUMENT),
    )

    def source_text(self, source: Source) -> str:
        """Return the document as the corpus has it."""
        return PLACE.sub(r"\1", source.document.text) if source.document else ""

    def obstacle(self, source: Source) -> str:
        """Say that the source names no document; empty where it names one."""
        return "" if source.document else _NO_DOCUMENT

    def named(self, noun_phrase: str, source: Source) -> str:
        """Return the document with a noun phrase, whose article is small inside a sentence."""
        first, *others = PLACE.split(source.document.text)[::2] if source.document else [""]
        text = first
        for part in others:
            is_first = _SENTENCE_BEGINS.search(text) or not noun_phrase.startswith(_ARTICLES)
            text += noun_phrase if is_first else noun_phrase[0].lower() + noun_phrase[1:]
            text += part
        return text

    def fault(self, source_text: str, follow_up: FollowUp) -> str | None:
        """Reject a follow-up that differs from its source in more than the person it names."""
        text, phrase = follow_up.text, f"(?s:.{re.escape(follow_up.noun_phrase[1:])})"
        first, *others = map(re.escape, re.split(phrase, text))
        # Every place names the same person; else the phrase is a part of the document itself, too.
        marked = "(?i:(?P=who))".join(others)
        if others and re.fullmatch(f"{first}(?P<who>.+?){marked}", source_text, re.DOTALL):
            return None
        for match in re.finditer(phrase, text):
            before, after = text[: match.start()], text[match.end() :]
            if source_text.startswith(before) and source_text.endswith(after):
                return None
        return "the document differs in more than the noun phrase"

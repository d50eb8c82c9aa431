"""The perturbation linter: a follow-up differs from its source only as its relation declares.

What fails is not executed and counts as `invalid` with the reason (SPEC 7). Rules about a phrase
are judged once per set, rules about a text once per follow-up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairgate.relations.english import article_fault, holds, pieces
from fairgate.relations.perturbation_sets import PerturbationSet, Term
from fairgate.relations.relation import FollowUp

MAX_PHRASE = 80
"""Longest noun phrase in characters: a phrase only names a speaker."""

_EMPTY_WORDS = frozenset({"a", "an", "the", "of", "and", "or", "person", "people", "with", "in"})


def phrase_is_one_short_line(term: Term) -> str | None:
    """Reject an empty, oversized or multi-line noun phrase, and one with double quotes."""
    phrase = term.noun_phrase
    if not phrase.strip():
        return "the noun phrase is empty"
    if len(phrase) > MAX_PHRASE:
        return f"the noun phrase is longer than {MAX_PHRASE} characters"
    if not phrase.isprintable():
        return "the noun phrase holds a line end or another character that is not printed"
    if any(mark in phrase for mark in '"\u201c\u201d'):
        return "the noun phrase holds a double quote, which would end the quoted text"
    if phrase != " ".join(phrase.split()):
        return "the noun phrase has surplus blanks"
    return None


def phrase_begins_with_a_capital(term: Term) -> str | None:
    """Reject a noun phrase that does not begin a sentence."""
    first = term.noun_phrase[:1]
    if first.isupper() or first.isdigit():
        return None
    return "the noun phrase does not begin with a capital letter"


def phrase_names_the_term(term: Term) -> str | None:
    """Reject a noun phrase without its term, unless a note gives the reason."""
    if term.note or holds(term.noun_phrase, term.term):
        return None
    return "the noun phrase does not name its term; add a `note` if that is intended"


def articles_agree(term: Term) -> str | None:
    """Reject "an woman" and "a Asian person"."""
    fault = article_fault(term.noun_phrase)
    return f"the noun phrase {fault}" if fault else None


PHRASE_RULES: tuple[Callable[[Term], str | None], ...] = (
    phrase_is_one_short_line,
    phrase_begins_with_a_capital,
    phrase_names_the_term,
    articles_agree,
)


class Linter:
    """Judges follow-ups of one relation and one choice of sets."""

    def __init__(
        self, fault: Callable[[str, FollowUp], str | None], sets: Sequence[PerturbationSet]
    ) -> None:
        """Judge every noun phrase of the sets; `fault` is the relation's own rule about texts."""
        self._fault = fault
        demographic = _demographic_words(sets)
        self._phrases = {
            (group.id, term.term): _phrase_fault(term, demographic if group.control else {})
            for group in sets
            for term in group.terms
        }

    def rejections(self, source_text: str, follow_ups: Sequence[FollowUp]) -> list[str | None]:
        """Return for each follow-up the reason why it is invalid, or None where it is valid.

        Of several follow-ups with the same key or wording the first is valid. Terms that are in no
        perturbation set have no noun phrase of a set: the relation's own rule decides on them.
        """
        variants: set[str] = set()
        texts: dict[str, str] = {_folded(source_text): "the source"}
        reasons: list[str | None] = []
        for follow_up in follow_ups:
            reason = self._phrases.get((follow_up.category, follow_up.term))
            reason = reason or self._fault(source_text, follow_up)
            if reason is None and follow_up.variant in variants:
                reason = "the same term occurs twice in its set"
            folded = _folded(follow_up.text)
            if reason is None and folded in texts:
                reason = f"the text is the same as that of {texts[folded]}"
            if reason is None:
                variants.add(follow_up.variant)
                texts[folded] = follow_up.variant
            reasons.append(reason)
        return reasons


def differs_only_as_declared(template: str, source_text: str, follow_up: FollowUp) -> str | None:
    """Reject a follow-up that is not its source with the declared single edit, to the character."""
    before, _, after = template.partition("{source}")
    expected = before.replace("{noun_phrase}", follow_up.noun_phrase) + source_text + after
    if follow_up.text == expected:
        return None
    if source_text not in follow_up.text:
        return "the text of the source was changed"
    return "the wording around the source's text is not that of the relation"


def control_is_neutral(term: Term, demographic: dict[str, str]) -> str | None:
    """Reject a control that shares a word with a demographic term in use."""
    for word in pieces(f"{term.term} {term.noun_phrase}".lower()):
        for part in (word, *word.split("-")):
            if part in demographic:
                return f"the control holds the word '{part}' of the term '{demographic[part]}'"
    return None


def _phrase_fault(term: Term, demographic: dict[str, str]) -> str | None:
    faults = (fault for rule in PHRASE_RULES if (fault := rule(term)) is not None)
    return next(faults, None) or control_is_neutral(term, demographic)


def _demographic_words(sets: Sequence[PerturbationSet]) -> dict[str, str]:
    """Return every word of a demographic term with the term it comes from."""
    found: dict[str, str] = {}
    for group in sets:
        for term in () if group.control else group.terms:
            for word in pieces(term.term.lower()):
                if word[0].isalnum() and word not in _EMPTY_WORDS:
                    found.setdefault(word, f"{group.id}/{term.term}")
    return found


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
